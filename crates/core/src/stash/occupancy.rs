//! How full the stash was.

use alloc::vec::Vec;

/// Counters of the blocks left in the stash after each access. Secret: never let storage see them.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    peak_blocks: usize,
    /// `histogram[n]`: after how many accesses `n` blocks were left. Empty while switched off.
    histogram: Option<Vec<u64>>,
}

impl Occupancy {
    /// The most blocks that were ever left in the stash after an access.
    pub fn peak_blocks(&self) -> usize {
        self.peak_blocks
    }

    /// After how many accesses `n` blocks were left, for each `n`; empty unless switched on by
    /// `record_histogram`.
    pub fn histogram(&self) -> &[u64] {
        self.histogram.as_deref().unwrap_or_default()
    }

    /// Starts a histogram of what is counted from now on.
    pub(crate) fn start_histogram(&mut self) {
        self.histogram = Some(Vec::new());
    }

    #[inline]
    pub(crate) fn count(&mut self, blocks: usize) {
        self.peak_blocks = self.peak_blocks.max(blocks);
        if let Some(histogram) = &mut self.histogram {
            if histogram.len() <= blocks {
                histogram.resize(blocks + 1, 0);
            }
            histogram[blocks] += 1;
        }
    }
}
