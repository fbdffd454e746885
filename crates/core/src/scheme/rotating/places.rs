//! The places that evictions write: each level of the tree is a ring of places.
//!
//! On level `j`, eviction `e` writes the bucket `e mod 2^j`, as in RAW ORAM, but to the place `e
//! mod (2^j + W)`: there are `W` more places than buckets. So the version of a bucket that eviction
//! `e` wrote stays intact until eviction `e + 2^j + W`, which is `W` evictions after the next
//! version was written. A client that returns to a state of at most `W` evictions ago finds every
//! bucket of that state.
//!
//! ```text
//! level 1, W = 2      places  0    1    2    3
//! evictions 0 to 3            b0   b1   b0'  b1'
//! eviction 4                  b0'' ..              b0' is intact until eviction 6
//! ```
//!
//! Consecutive evictions write neighbouring places on every level, and read neighbouring places.
//! All places follow from the number of the eviction, so they are public and are not stored.

use crate::geometry::{BucketId, Geometry, Leaf, last_eviction_of_bucket};

/// The rings of places of one tree, whose levels from `first_level` on are in storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceRings {
    first_level: u8,
    leaf_level: u8,
}

impl PlaceRings {
    pub(super) fn new(geometry: &Geometry, first_level: u8) -> Self {
        Self { first_level, leaf_level: geometry.leaf_level() }
    }

    /// The levels that are in storage.
    pub(super) fn levels(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        self.first_level..=self.leaf_level
    }

    /// `W`: the number of spare places on a level, and of evictions that a state survives. It is
    /// the number of buckets on the first level in storage. So `2^j + W` places are at most
    /// `2^(j+1)`, and have names on the store's next level.
    pub(super) fn spare(&self) -> u64 {
        1 << self.first_level
    }

    /// Number of places on `level`.
    pub(super) fn on_level(&self, level: u8) -> u64 {
        (1 << level) + self.spare()
    }

    /// Total number of buckets on the levels that are in storage.
    pub(super) fn buckets(&self) -> u64 {
        self.levels().map(|level| 1 << level).sum()
    }

    /// Number of buckets of `level` that the evictions before `g` have written. They have the
    /// lowest indices, because evictions come in order.
    pub(super) fn written_on(&self, g: u64, level: u8) -> u64 {
        g.saturating_sub(self.first_eviction()).min(1 << level)
    }

    /// Number of buckets, on all levels, that the evictions before `g` have written.
    pub(super) fn buckets_written(&self, g: u64) -> u64 {
        self.levels().map(|level| self.written_on(g, level)).sum()
    }

    /// The level of the store that holds the places of `level`. It is the next level, because there
    /// are more than `2^level` places.
    pub(super) fn store_level(level: u8) -> u8 {
        level + 1
    }

    /// The number of the first eviction: the number of leaves. Counting starts as if earlier
    /// evictions had written every bucket without contents.
    pub(super) fn first_eviction(&self) -> u64 {
        1 << self.leaf_level
    }

    /// The place that `eviction` writes on `level`.
    #[inline]
    pub(super) fn written(&self, eviction: u64, level: u8) -> BucketId {
        BucketId::new(Self::store_level(level), eviction % self.on_level(level))
    }

    /// The earlier eviction whose bucket on `level` is overwritten by eviction `g`, if there is
    /// one.
    pub(super) fn before(&self, g: u64, level: u8) -> Option<u64> {
        g.checked_sub(self.on_level(level)).filter(|before| *before >= self.first_eviction())
    }

    /// The bucket on `level` of the path to `leaf`, in the version that is current when eviction
    /// `g` begins.
    #[inline]
    pub(super) fn version(&self, g: u64, leaf: Leaf, level: u8) -> Version {
        let eviction = last_eviction_of_bucket(g, leaf, level);
        Version {
            bucket: BucketId::on_path(leaf, level),
            level,
            eviction,
            is_written: eviction >= self.first_eviction(),
            place: self.written(eviction, level),
        }
    }
}

/// A version of a bucket. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) bucket: BucketId,
    pub(super) level: u8,
    /// The eviction that wrote this version.
    pub(super) eviction: u64,
    /// Whether the bucket was ever written. In a new tree, no bucket was.
    pub(super) is_written: bool,
    pub(super) place: BucketId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::reverse_lexicographic;
    use std::collections::HashMap;

    /// Simulates the evictions of small trees on a table of places. Checks that every bucket of a
    /// state is still in its place after up to `W` more evictions.
    #[test]
    fn a_state_survives_one_eviction_per_spare_place() {
        for (leaf_level, first_level) in [(0, 0), (1, 0), (3, 0), (3, 1), (4, 2), (4, 4)] {
            let geometry = Geometry::uniform(leaf_level, 1).unwrap();
            let places = PlaceRings::new(&geometry, first_level);
            let mut contents = HashMap::new();
            let end = places.first_eviction() + 100;
            for g in places.first_eviction()..end {
                for state in g.saturating_sub(places.spare()).max(places.first_eviction())..=g {
                    for leaf in (0..geometry.leaves()).map(Leaf) {
                        for level in places.levels() {
                            let version = places.version(state, leaf, level);
                            let bucket = BucketId::on_path(leaf, level);
                            let there = contents.get(&version.place);
                            let expected = version.is_written.then_some((bucket, version.eviction));
                            assert_eq!(
                                there.copied(),
                                expected,
                                "state {state} after {g}: {bucket}"
                            );
                            let is_written = bucket.index() < places.written_on(state, level);
                            assert_eq!(is_written, expected.is_some(), "state {state}: {bucket}");
                        }
                    }
                }
                let leaf = reverse_lexicographic(g, leaf_level);
                for level in places.levels() {
                    let place = places.written(g, level);
                    assert!(place.index() < places.on_level(level));
                    contents.insert(place, (BucketId::on_path(leaf, level), g));
                }
            }
        }
    }

    #[test]
    fn one_eviction_more_would_destroy_a_state() {
        let geometry = Geometry::uniform(4, 1).unwrap();
        let places = PlaceRings::new(&geometry, 2);
        let state = places.first_eviction() + 50;
        let fatal = state + places.spare();
        let destroyed = places.written(fatal, 4);
        let is_needed = (0..16).map(Leaf).any(|leaf| {
            let version = places.version(state, leaf, 4);
            version.is_written && version.place == destroyed
        });
        assert!(is_needed);
    }
}
