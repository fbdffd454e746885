//! Counts of a volume in use, for its owner to watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use oblivio_core::durable::{StashFill, Want};

/// Shows the counts of a volume that another thread uses. Reading them makes no access and blocks
/// no thread. Secret: storage must not see the counts.
#[derive(Clone, Default)]
pub struct Insight(Arc<Counts>);

/// Counts of a volume since it was opened. Secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeCounts {
    /// Number of accesses to blocks of the disk. An access to a range counts once per block.
    pub to_blocks: u64,
    /// Number of accesses to blocks of the position map that were not on the client.
    pub to_positions: u64,
    /// Number of dummy accesses, which a fixed rate makes when there is no work. A dummy access to
    /// a range counts once per block.
    pub dummies: u64,
    /// The fill of the stash. `None` if the scheme does not report it.
    pub stash: Option<StashFill>,
}

#[derive(Default)]
struct Counts {
    to_blocks: AtomicU64,
    to_positions: AtomicU64,
    dummies: AtomicU64,
    stash_blocks: AtomicU64,
    /// The bound of the stash in blocks. 0 if the scheme does not report the stash.
    stash_blocks_max: AtomicU64,
}

impl Insight {
    /// The current counts. Numbers that change together may be read at different times.
    pub fn counts(&self) -> VolumeCounts {
        let Counts { to_blocks, to_positions, dummies, stash_blocks, stash_blocks_max } = &*self.0;
        let [blocks, blocks_max] = [stash_blocks, stash_blocks_max].map(|it| it.load(Relaxed));
        VolumeCounts {
            to_blocks: to_blocks.load(Relaxed),
            to_positions: to_positions.load(Relaxed),
            dummies: dummies.load(Relaxed),
            stash: (blocks_max > 0).then_some(StashFill { blocks, blocks_max }),
        }
    }

    /// Counts the accesses of a plan.
    pub(crate) fn accessed(&self, wanted: &[Want]) {
        for want in wanted {
            let (count, accesses) = match want {
                Want::Block(_) => (&self.0.to_blocks, 1),
                Want::Range { class, .. } => (&self.0.to_blocks, 1 << class),
                Want::Position(_) => (&self.0.to_positions, 1),
                Want::Dummy => (&self.0.dummies, 1),
                Want::DummyRange { class } => (&self.0.dummies, 1 << class),
            };
            count.fetch_add(accesses, Relaxed);
        }
    }

    /// Counts `blocks` accesses of reads that were begun earlier.
    pub(crate) fn read_blocks(&self, blocks: usize) {
        self.0.to_blocks.fetch_add(blocks as u64, Relaxed);
    }

    /// Records the fill of the stash.
    pub(crate) fn stash_is(&self, fill: Option<StashFill>) {
        if let Some(StashFill { blocks, blocks_max }) = fill {
            self.0.stash_blocks.store(blocks, Relaxed);
            self.0.stash_blocks_max.store(blocks_max, Relaxed);
        }
    }
}
