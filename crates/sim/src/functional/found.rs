//! Where data blocks were when they were asked for (IR-ORAM, Fig. 6).

use std::io::{self, Read, Write};

use oblivio_core::geometry::{LEAF_LEVEL_MAX, Leaf};
use oblivio_core::image::{Image, read_below, read_count, write_number};
use oblivio_core::scheme::{Location, PathScheme, TagTree};
use serde::{Deserialize, Serialize};

use crate::controller::tags::Watch;

/// How many requests for data found their block where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// In the stash.
    pub stash: u64,
    /// In a bucket of each level, from the root down, on the client or not.
    pub levels: Vec<u64>,
    /// Nowhere: it was never asked for before.
    pub nowhere: u64,
}

impl Found {
    /// All requests for data.
    pub fn requests(&self) -> u64 {
        self.stash + self.levels.iter().sum::<u64>() + self.nowhere
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn count(&mut self, at: Option<Location>) {
        match at {
            Some(Location::Stash) => self.stash += 1,
            Some(Location::Bucket(bucket)) => {
                let level = usize::from(bucket.level());
                self.levels.resize(self.levels.len().max(level + 1), 0);
                self.levels[level] += 1;
            }
            None => self.nowhere += 1,
        }
    }
}

impl Watch<PathScheme<TagTree>> for Found {
    fn access(&mut self, tags: &mut PathScheme<TagTree>, level: usize, address: u64, leaf: Leaf) {
        if level == 0 {
            self.count(tags.locate(address, leaf));
        }
    }

    fn hit(&mut self, tags: &PathScheme<TagTree>, level: usize, address: u64) {
        if level == 0 {
            // What was found by its address alone is found whatever the leaf.
            self.count(tags.locate(address, Leaf(0)));
        }
    }

    fn idle(&mut self) {}
}

impl Image for Found {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        [self.stash, self.nowhere, self.levels.len() as u64]
            .iter()
            .chain(&self.levels)
            .try_for_each(|number| write_number(to, *number))
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.stash = read_count(from)?;
        self.nowhere = read_count(from)?;
        let levels = read_below(from, u64::from(LEAF_LEVEL_MAX) + 2, "more levels than any tree")?;
        self.levels = (0..levels).map(|_| read_count(from)).collect::<Result<_, _>>()?;
        Ok(())
    }
}
