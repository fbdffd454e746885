//! The position map as one table in client memory.

#[cfg(feature = "std")]
mod image;

use rand_core::CryptoRng;

use super::draw_leaf;
use super::table::Table;
use crate::error::Error;
use crate::geometry::Leaf;

/// A position map with one entry per block: 4 bytes below `2^32` leaves, otherwise 8. Secret; wiped
/// when dropped.
///
/// A block never requested has no leaf yet. Its first look-up draws a uniformly random leaf, which
/// storage cannot distinguish from one drawn at the start. So a fresh map consists of zeros, which
/// take no memory with the feature `mmap`.
pub struct FlatPosMap {
    /// The entries, each `leaf + 1`; 0 is a block without a leaf.
    table: Table,
    leaf_level: u8,
}

impl FlatPosMap {
    /// A map for the addresses `0..capacity` of a tree with `2^leaf_level` leaves.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the system has no memory for it.
    pub fn new(capacity: u64, leaf_level: u8) -> Result<Self, Error> {
        Ok(Self { table: Table::new(capacity, leaf_level + 1)?, leaf_level })
    }

    /// Bytes of client memory.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The leaf of `address`, if it has one. An address past the end has no leaf; a scan looks up
    /// every address that storage claims to hold.
    #[inline]
    pub fn get(&self, address: u64) -> Option<Leaf> {
        self.table.get(address)?.checked_sub(1).map(Leaf)
    }

    /// The leaf of `address`. Draws the leaf if there is none yet.
    #[inline]
    pub fn look_up(&mut self, address: u64, coins: &mut impl CryptoRng) -> Leaf {
        match self.get(address) {
            Some(leaf) => leaf,
            None => {
                let leaf = draw_leaf(coins, self.leaf_level);
                self.set(address, leaf);
                leaf
            }
        }
    }

    /// Step 1 of a Path ORAM access (Tiny ORAM, section II-A): returns the leaf of `address` and
    /// the fresh leaf that replaces it.
    #[inline]
    pub fn look_up_and_remap(&mut self, address: u64, coins: &mut impl CryptoRng) -> (Leaf, Leaf) {
        let old = self.look_up(address, coins);
        let new = draw_leaf(coins, self.leaf_level);
        self.set(address, new);
        (old, new)
    }

    #[inline]
    fn set(&mut self, address: u64, leaf: Leaf) {
        self.table.set(address, leaf.0 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn a_leaf_is_drawn_once_and_then_remapped() {
        for leaf_level in [0, 10, 31, 32, 40] {
            let mut coins = StdRng::seed_from_u64(1);
            let mut map = FlatPosMap::new(3, leaf_level).unwrap();
            assert_eq!(map.get(2), None);
            let first = map.look_up(2, &mut coins);
            assert_eq!(map.get(2), Some(first));
            let (old, new) = map.look_up_and_remap(2, &mut coins);
            assert_eq!((old, Some(new)), (first, map.get(2)));
            assert!(new.0 >> leaf_level == 0);
            assert_eq!(map.get(1), None);
        }
    }

    #[test]
    fn a_map_larger_than_memory_is_an_error() {
        for capacity in [1 << 55, u64::MAX] {
            let error = FlatPosMap::new(capacity, 40).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        }
    }
}
