//! Statistics of the stash's occupancy.

use alloc::vec::Vec;

/// Counts of the blocks left in the stash after each eviction; in Path ORAM, each access evicts.
/// Secret: storage must never see them.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    peak_blocks: usize,
    /// `histogram[n]`: the number of evictions that left `n` blocks. `None` while disabled.
    histogram: Option<Vec<u64>>,
}

impl Occupancy {
    /// Maximum number of blocks ever left in the stash after an eviction.
    pub fn peak_blocks(&self) -> usize {
        self.peak_blocks
    }

    /// The number of evictions that left `n` blocks, for each `n`. Empty unless the ORAM records
    /// it: see `record_stash_histogram` of
    /// [`Scheme`](crate::scheme::Scheme::record_stash_histogram).
    pub fn histogram(&self) -> &[u64] {
        self.histogram.as_deref().unwrap_or_default()
    }

    /// Starts a histogram, which counts all evictions from now on.
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
