//! Counts the locations where requests found their blocks (IR-ORAM, Fig. 6).

use std::io::{self, Read, Write};

use oblivio_core::geometry::{LEAF_LEVEL_MAX, Leaf};
use oblivio_core::image::{Image, read_below, read_count, write_number};
use oblivio_core::scheme::{Location, PathScheme, TagTree};
use serde::{Deserialize, Serialize};

use crate::controller::tags::AccessObserver;

/// Number of requests by the location of their block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundCounts {
    /// Requests whose block was in the stash.
    pub stash: u64,
    /// Requests whose block was in a bucket, by level from the root down. The upper levels may be
    /// on the client (the tree top).
    pub levels: Vec<u64>,
    /// Requests whose block was not in the ORAM, since they were the first request for the block.
    pub nowhere: u64,
}

impl FoundCounts {
    /// The number of all requests.
    pub fn requests(&self) -> u64 {
        self.stash + self.levels.iter().sum::<u64>() + self.nowhere
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

/// Counts for data and for the position map. Position-map look-ups that hit the PLB are not
/// counted.
#[derive(Default)]
pub(crate) struct AllFoundCounts {
    pub(super) data: FoundCounts,
    pub(super) position_map: FoundCounts,
}

impl AllFoundCounts {
    fn of_level(&mut self, level: usize) -> &mut FoundCounts {
        if level == 0 { &mut self.data } else { &mut self.position_map }
    }
}

impl AccessObserver<PathScheme<TagTree>> for AllFoundCounts {
    fn access(&mut self, tags: &mut PathScheme<TagTree>, level: usize, address: u64, leaf: Leaf) {
        self.of_level(level).count(tags.locate(address, leaf));
    }

    fn hit(&mut self, tags: &PathScheme<TagTree>, level: usize, address: u64) {
        self.of_level(level).count(tags.locate_on_client(address));
    }

    fn look_up(&mut self, tags: &PathScheme<TagTree>, level: usize, address: u64) {
        if let Some(at) = tags.locate_on_client(address) {
            self.of_level(level).count(Some(at));
        }
    }

    fn idle(&mut self) {}
}

impl Image for AllFoundCounts {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        self.data.write_image(to)?;
        self.position_map.write_image(to)
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.data.read_image(from)?;
        self.position_map.read_image(from)
    }
}

impl Image for FoundCounts {
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
