//! Counts the moves of blocks when a path is written back (IR-ORAM, section III-C, Fig. 5).

use std::io::{self, Read, Write};

use oblivio_core::geometry::LEAF_LEVEL_MAX;
use oblivio_core::image::{Image, read_below, read_count, write_number};
use oblivio_core::scheme::{BlockMove, Origin};
use serde::{Deserialize, Serialize};

/// Counts of blocks by old and new location. Blocks that stay in the stash are not counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// *Pre-existing* blocks, which were in the stash before the path was read, by their new level,
    /// from the root down.
    pub pre_existing: Vec<u64>,
    /// Requested blocks, which have a new leaf, by their new level. Blocks that moved to the stash
    /// or the PLB are not counted.
    #[serde(rename = "asked")]
    pub requested: Vec<u64>,
    /// The other blocks of the path, by their old level. Each row counts them by new level. The
    /// last entry of a row counts blocks that moved to the stash.
    pub from_path: Vec<Vec<u64>>,
}

impl Migration {
    pub(super) fn new(levels: usize) -> Self {
        Self {
            pre_existing: vec![0; levels],
            requested: vec![0; levels],
            from_path: vec![vec![0; levels + 1]; levels],
        }
    }

    pub(super) fn count(&mut self, BlockMove { from, to }: BlockMove) {
        let place = to.map_or(self.pre_existing.len(), usize::from);
        let counts = match from {
            Origin::Stash => &mut self.pre_existing,
            Origin::Requested => &mut self.requested,
            Origin::Level(level) => &mut self.from_path[usize::from(level)],
        };
        // `None` for pre-existing and requested blocks that go to the stash.
        if let Some(count) = counts.get_mut(place) {
            *count += 1;
        }
    }

    /// Subtracts `before`, an earlier count of the same study.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let since = |now: &[u64], before: &[u64]| -> Vec<u64> {
            now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
        };
        let rows = self.from_path.iter().zip(&before.from_path);
        Self {
            pre_existing: since(&self.pre_existing, &before.pre_existing),
            requested: since(&self.requested, &before.requested),
            from_path: rows.map(|(now, before)| since(now, before)).collect(),
        }
    }

    fn rows(&self) -> impl Iterator<Item = &Vec<u64>> {
        [&self.pre_existing, &self.requested].into_iter().chain(&self.from_path)
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut Vec<u64>> {
        [&mut self.pre_existing, &mut self.requested].into_iter().chain(&mut self.from_path)
    }
}

impl Image for Migration {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        write_number(to, self.pre_existing.len() as u64)?;
        self.rows().flatten().try_for_each(|count| write_number(to, *count))
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        let levels = read_below(from, u64::from(LEAF_LEVEL_MAX) + 2, "more levels than any tree")?;
        *self = Self::new(levels as usize);
        self.rows_mut().flatten().try_for_each(|count| {
            *count = read_count(from)?;
            Ok(())
        })
    }
}
