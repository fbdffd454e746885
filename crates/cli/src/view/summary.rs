//! A summary of what storage saw of one tree's paths, for pictures.

use oblivio_core::store::TreeId;
use oblivio_core::view::Tally;

use super::leaves::BucketVisit;

/// The part of a view that the picture of a tree shows. Public.
pub(crate) struct TreeSummary {
    pub(crate) tree: TreeId,
    /// Visits of buckets on the level of the leaves: all, or a sample if there are many.
    pub(crate) visits: Vec<BucketVisit>,
    pub(crate) accesses: u64,
    /// Number of bucket positions on the level of the leaves, including those that are free for the
    /// next evictions.
    pub(crate) leaf_buckets: u64,
    /// Totals of the whole view, not only of this tree.
    pub(crate) tally: Tally,
}

/// Maximum number of visits in a sample. A picture does not show more.
const SAMPLE_MAX: usize = 10_000;

/// Collects a sample of a sequence of visits of any length. The sampled visits are equally far
/// apart in the sequence.
pub(super) struct Sample {
    every: u64,
    offered: u64,
    visits: Vec<BucketVisit>,
}

impl Default for Sample {
    fn default() -> Self {
        Self { every: 1, offered: 0, visits: Vec::new() }
    }
}

impl Sample {
    pub(super) fn offer(&mut self, visit: BucketVisit) {
        if self.offered.is_multiple_of(self.every) {
            if self.visits.len() == SAMPLE_MAX {
                self.thin_out();
            }
            if self.offered.is_multiple_of(self.every) {
                self.visits.push(visit);
            }
        }
        self.offered += 1;
    }

    /// Drops every second visit of the sample.
    fn thin_out(&mut self) {
        self.every *= 2;
        let mut is_kept = false;
        self.visits.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
    }

    pub(super) fn into_visits(self) -> Vec<BucketVisit> {
        self.visits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_bounded_and_spread_evenly() {
        for offered in [3, SAMPLE_MAX as u64, SAMPLE_MAX as u64 + 1, 1_234_567] {
            let mut sample = Sample::default();
            for access in 0..offered {
                sample.offer(BucketVisit { access, bucket: 0, is_eviction: false });
            }
            let accesses: Vec<_> = sample.into_visits().iter().map(|visit| visit.access).collect();
            assert!(
                accesses.len() <= SAMPLE_MAX
                    && accesses.len() * 2 >= SAMPLE_MAX.min(offered as usize)
            );
            let every = accesses[1] - accesses[0];
            assert!(accesses.iter().copied().eq((0..offered).step_by(every as usize)), "{offered}");
        }
    }
}
