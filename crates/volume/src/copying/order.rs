//! The order in which buckets are copied.

use std::ops::Range;

use oblivio_core::store::{BucketRange, TreeId, TreeShape};

/// Maximum number of bytes that one trip reads.
const TRIP_BYTES_MAX: u64 = 2 << 20;

/// Maximum number of buckets that one trip reads: a store may give each bucket a sector of its own.
const TRIP_BUCKETS_MAX: u64 = 4096;

/// All buckets of some trees in one sequence: tree after tree, level after level from the root, by
/// index. It follows from the shapes alone.
#[derive(Debug)]
pub(super) struct BucketOrder {
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    tree: TreeId,
    level: u8,
    /// The position of the level's first bucket in the sequence.
    first: u64,
    buckets: u64,
    trip_buckets_max: u64,
}

impl BucketOrder {
    /// The order of these trees of a store. Their shapes are not authenticated: `None` if the
    /// number of buckets overflows.
    pub(super) fn new<'s>(trees: impl Iterator<Item = (TreeId, &'s TreeShape)>) -> Option<Self> {
        let mut levels = Vec::new();
        let mut end = 0u64;
        for (tree, shape) in trees {
            for (level, shape) in (0..).zip(shape.levels()) {
                let trip_buckets_max = TRIP_BYTES_MAX / shape.bucket_bytes.max(1);
                let trip_buckets_max = trip_buckets_max.clamp(1, TRIP_BUCKETS_MAX);
                let buckets = shape.buckets;
                levels.push(Level { tree, level, first: end, buckets, trip_buckets_max });
                end = end.checked_add(buckets)?;
            }
        }
        Some(Self { levels })
    }

    /// The number of buckets.
    pub(super) fn buckets(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.first + level.buckets)
    }

    /// The trip that begins with bucket `at` of the sequence; `None` at the end.
    pub(super) fn trip(&self, at: u64) -> Option<BucketRange> {
        // An empty level and the next level begin at the same bucket: take the last such level.
        let following = self.levels.partition_point(|level| level.first <= at);
        let level = &self.levels[following.checked_sub(1)?];
        let start = at - level.first;
        let end = level.buckets.min(start.saturating_add(level.trip_buckets_max));
        let Level { tree, level, .. } = *level;
        (start < end).then_some(BucketRange { tree, level, buckets: start..end })
    }
}

/// The number of buckets of a trip.
pub(super) fn count(Range { start, end }: &Range<u64>) -> u64 {
    end - start
}

#[cfg(test)]
mod tests {
    use oblivio_core::store::LevelShape;

    use super::*;

    fn shape(levels: &[(u64, u64)]) -> TreeShape {
        let level = |&(buckets, bucket_bytes)| LevelShape {
            buckets,
            slots: 0,
            header_bytes: 0,
            slots_offset: 0,
            slot_bytes: 0,
            bucket_bytes,
        };
        TreeShape::new(levels.iter().map(level).collect())
    }

    #[test]
    fn every_bucket_has_its_turn_once_and_trips_are_neither_long_nor_over_two_levels() {
        let shapes = [
            shape(&[(0, 0), (2, TRIP_BYTES_MAX * 3), (4, TRIP_BYTES_MAX / 3)]),
            shape(&[]),
            shape(&[(1, 1), (0, 0), (0, 0), (2 * TRIP_BUCKETS_MAX + 1, 1), (0, 0)]),
        ];
        let order = BucketOrder::new((7..).map(TreeId).zip(&shapes)).unwrap();
        let (mut at, mut trips) = (0, Vec::new());
        while let Some(trip) = order.trip(at) {
            at += count(&trip.buckets);
            trips.push((trip.tree.0, trip.level, trip.buckets));
        }
        assert_eq!(at, order.buckets());
        let many = TRIP_BUCKETS_MAX;
        let expected = [
            (7, 1, 0..1),
            (7, 1, 1..2),
            (7, 2, 0..3),
            (7, 2, 3..4),
            (9, 0, 0..1),
            (9, 3, 0..many),
            (9, 3, many..2 * many),
            (9, 3, 2 * many..2 * many + 1),
        ];
        assert_eq!(trips, expected);
        assert_eq!(order.trip(u64::MAX), None);
        // A trip may begin at any bucket.
        let second = order.trip(1).unwrap();
        assert_eq!((second.level, second.buckets), (1, 1..2));
    }

    #[test]
    fn no_trees_have_no_trips_and_too_many_buckets_are_refused() {
        let nothing = BucketOrder::new([].into_iter()).unwrap();
        assert_eq!((nothing.buckets(), nothing.trip(0)), (0, None));
        let endless = [shape(&[(u64::MAX, 1), (1, 1)])];
        assert!(BucketOrder::new((0..).map(TreeId).zip(&endless)).is_none());
    }
}
