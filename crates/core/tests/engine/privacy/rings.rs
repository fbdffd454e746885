//! Tracks which bucket is in each place of rotating RAW ORAM, as storage can derive from the
//! writes.
//!
//! Level `j` of the tree is on level `j + 1` of storage, a ring of `2^j + W` places; `W` is 2 to
//! the power of the number of tree-top levels. Deliberately implemented as a plain table, without
//! the engine's own functions.

use oblivio_core::geometry::BucketId;
use oblivio_core::store::Piece;
use oblivio_core::view::Operation;

use super::run::{LEAF_LEVEL, LEAVES};

/// The rings of all levels in storage.
pub(crate) struct Rings {
    rings: Vec<Ring>,
    evictions: u64,
}

/// The places of one level.
struct Ring {
    level: u8,
    /// The index of the bucket whose latest version is in each place; `None` if a place has no
    /// latest version.
    buckets: Vec<Option<u64>>,
}

impl Rings {
    /// The rings of a new tree, as if an eviction to each leaf had been made.
    pub(crate) fn new(tree_top_levels: u8) -> Self {
        let places = |level: u8| (1usize << level) + (1 << tree_top_levels);
        let rings = (tree_top_levels..=LEAF_LEVEL)
            .map(|level| Ring { level, buckets: vec![None; places(level)] });
        let mut new = Self { rings: rings.collect(), evictions: 0 };
        (0..LEAVES).for_each(|_| new.evict());
        new
    }

    /// Replaces each place in the pieces of a call with the bucket whose latest version is there.
    /// For a write, simulates the next eviction first.
    ///
    /// # Panics
    /// If a call reads a version that is not the latest, or writes to another place than that of
    /// the next eviction.
    #[track_caller]
    pub(crate) fn name_buckets(&mut self, operation: Operation, pieces: &mut [Piece]) {
        if operation == Operation::Write {
            self.evict();
        }
        for Piece { bucket, .. } in pieces {
            let ring = self.rings.iter().find(|ring| ring.level + 1 == bucket.level());
            let ring = ring.expect("the level must be in storage");
            if operation == Operation::Write {
                let expected = ring.place_of(self.evictions - 1);
                assert_eq!(
                    bucket.index(),
                    expected as u64,
                    "a write to another place than the next one"
                );
            }
            let held =
                ring.buckets[bucket.index() as usize].expect("the version must be the latest");
            *bucket = BucketId::new(ring.level, held);
        }
    }

    /// Simulates the next eviction: on each level, one bucket has its latest version in another
    /// place.
    fn evict(&mut self) {
        for ring in &mut self.rings {
            let evicted = self.evictions % (1 << ring.level);
            let place = ring.place_of(self.evictions);
            for held in &mut ring.buckets {
                *held = held.filter(|bucket| *bucket != evicted);
            }
            ring.buckets[place] = Some(evicted);
        }
        self.evictions += 1;
    }
}

impl Ring {
    /// The index in this ring of the place that eviction number `eviction` writes.
    fn place_of(&self, eviction: u64) -> usize {
        eviction as usize % self.buckets.len()
    }
}
