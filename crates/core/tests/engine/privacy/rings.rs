//! Which bucket is in a place of rotating RAW ORAM: what storage works out from the writes it saw.
//!
//! Level `j` of the tree is on level `j + 1` of storage, a ring of `2^j + W` places. On purpose a
//! plain table, and not the engine's own functions.

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
    /// The index of the bucket whose latest version is in a place, if one is.
    buckets: Vec<Option<u64>>,
}

impl Rings {
    /// Those of a new tree, which is as if an eviction had been made to each leaf.
    pub(crate) fn new(tree_top_levels: u8) -> Self {
        let places = |level: u8| (1usize << level) + (1 << tree_top_levels);
        let rings = (tree_top_levels..=LEAF_LEVEL)
            .map(|level| Ring { level, buckets: vec![None; places(level)] });
        let mut new = Self { rings: rings.collect(), evictions: 0 };
        (0..LEAVES).for_each(|_| new.evict());
        new
    }

    /// Replaces the places of a call by the buckets that they hold.
    ///
    /// # Panics
    /// When a call reads a version that is not the latest, or writes elsewhere than where the next
    /// eviction has to.
    #[track_caller]
    pub(crate) fn name_buckets(&mut self, operation: Operation, pieces: &mut [Piece]) {
        if operation == Operation::Write {
            self.evict();
        }
        for Piece { bucket, .. } in pieces {
            let ring = self.rings.iter().find(|ring| ring.level + 1 == bucket.level());
            let ring = ring.expect("a level that is in storage");
            if operation == Operation::Write {
                let expected = ring.place_of(self.evictions - 1);
                assert_eq!(bucket.index(), expected as u64, "a write past the next place");
            }
            let held = ring.buckets[bucket.index() as usize].expect("a version that is the latest");
            *bucket = BucketId::new(ring.level, held);
        }
    }

    /// The next eviction: another bucket of each level has its latest version in another place.
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
    /// The place that an eviction writes.
    fn place_of(&self, eviction: u64) -> usize {
        eviction as usize % self.buckets.len()
    }
}
