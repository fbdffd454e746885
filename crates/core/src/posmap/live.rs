//! A flat position map that also records which blocks exist.

use core::ops::Range;

use rand_core::CryptoRng;

use super::draw_leaf;
use super::table::Table;
use crate::error::Error;
use crate::geometry::Leaf;

/// The leaf of a block, and whether the block has contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The leaf that the next access to the block will reveal.
    pub leaf: Leaf,
    /// Whether the block has contents. A block without contents reads as zeros, and every copy of
    /// it in a bucket is stale.
    pub live: bool,
}

impl Mapping {
    /// The entry of the table that encodes a mapping. 0 encodes a block without a leaf.
    pub(crate) fn entry(self) -> u64 {
        (self.leaf.0 << 1 | u64::from(self.live)) + 1
    }

    pub(crate) fn from_entry(entry: u64) -> Option<Self> {
        let value = entry.checked_sub(1)?;
        Some(Self { leaf: Leaf(value >> 1), live: value & 1 == 1 })
    }
}

/// A position map with one entry per block: 4 bytes below `2^31` leaves, otherwise 8. Secret; wiped
/// when dropped.
///
/// With this map, buckets may keep stale copies of blocks: a copy counts only if its block is live
/// and mapped to the copy's leaf.
pub struct LivePosMap {
    table: Table,
    capacity: u64,
    leaf_level: u8,
}

impl LivePosMap {
    /// A map for the addresses `0..capacity` of a tree with `2^leaf_level` leaves, without any
    /// mapping.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the system has no memory for it.
    pub fn new(capacity: u64, leaf_level: u8) -> Result<Self, Error> {
        Ok(Self { table: Table::new(capacity, leaf_level + 2)?, capacity, leaf_level })
    }

    /// Bytes of client memory.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The number of addresses.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The mapping of `address`, if it has one. An address past the end has no mapping.
    #[inline]
    pub fn get(&self, address: u64) -> Option<Mapping> {
        Mapping::from_entry(self.table.get(address)?)
    }

    /// Whether no address of a range is mapped. The check runs at memory speed.
    ///
    /// # Panics
    /// If the range goes past the end.
    pub fn is_unmapped(&self, range: Range<u64>) -> bool {
        assert!(range.end <= self.capacity, "the range lies within the map");
        self.table.is_clear(range)
    }

    /// Whether a copy of `address` that was stored with `leaf` counts: the block is live and mapped
    /// to this leaf.
    #[inline]
    pub fn is_live_at(&self, address: u64, leaf: Leaf) -> bool {
        self.table.get(address) == Some(Mapping { leaf, live: true }.entry())
    }

    /// Maps `address`.
    ///
    /// # Panics
    /// If the address or the leaf does not exist.
    #[inline]
    pub fn set(&mut self, address: u64, mapping: Mapping) {
        assert!(mapping.leaf.0 >> self.leaf_level == 0, "the leaf belongs to the tree");
        self.table.set(address, mapping.entry());
    }

    /// A fresh, uniformly random leaf.
    #[inline]
    pub fn draw(&self, coins: &mut impl CryptoRng) -> Leaf {
        draw_leaf(coins, self.leaf_level)
    }

    /// Deletes the mappings of a range: its blocks read as zeros. The next access to such a block
    /// reveals a fresh leaf, like any access.
    ///
    /// # Panics
    /// If the range goes past the end.
    pub fn forget(&mut self, range: Range<u64>) {
        assert!(range.end <= self.capacity, "the range lies within the map");
        self.table.clear(range);
    }

    /// The mapped addresses of a range, with their mappings. Ignores addresses past the end.
    pub fn mapped(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Mapping)> {
        let range = range.start..range.end.min(self.capacity);
        range.filter_map(|address| Some((address, self.get(address)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_counts_only_if_the_map_confirms_it() {
        for leaf_level in [0, 10, 30, 31, 40] {
            let last = Leaf((1 << leaf_level) - 1);
            let mut map = LivePosMap::new(9, leaf_level).unwrap();
            assert_eq!((map.get(3), map.get(9)), (None, None));
            assert!(!map.is_live_at(3, last) && !map.is_live_at(9, last));
            map.set(3, Mapping { leaf: last, live: false });
            assert!(!map.is_live_at(3, last));
            map.set(3, Mapping { leaf: last, live: true });
            assert!(map.is_live_at(3, last));
            assert!(leaf_level == 0 || !map.is_live_at(3, Leaf(0)));
            let mapped: Vec<_> = map.mapped(0..100).collect();
            assert_eq!(mapped, [(3, Mapping { leaf: last, live: true })]);
            assert!(map.is_unmapped(0..3) && map.is_unmapped(4..9) && !map.is_unmapped(0..9));
            map.forget(2..4);
            assert_eq!(map.get(3), None);
        }
    }
}
