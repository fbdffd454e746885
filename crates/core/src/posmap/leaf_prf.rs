//! A pseudorandom function from counters to leaves.

#[cfg(feature = "std")]
mod image;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use rand_core::CryptoRng;

use super::compressed::{COUNTER_BITS_MAX, Count};
use crate::bucket::CAPACITY_MAX;
use crate::geometry::Leaf;
use crate::seal::Key;

const ADDRESS_BITS: u32 = CAPACITY_MAX.ilog2();

// Address, group counter and individual counter fill one AES block, so distinct inputs stay
// distinct.
const _: () = assert!(ADDRESS_BITS + u64::BITS + COUNTER_BITS_MAX == u128::BITS);

/// The position of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The leaf to which the block is mapped.
    pub(crate) leaf: Leaf,
    /// The count from which the leaf was computed. Meaningless if the leaf was drawn.
    pub(crate) count: Count,
}

/// A pseudorandom function that computes the leaf of a block from its address and its [`Count`]:
///
/// ```text
/// AES_K( address ‖ GC ‖ IC ) mod 2^L          40 + 64 + 24 bits, big-endian
/// ```
///
/// GC and IC are the group counter and the individual counter of the count. `K` is drawn for this
/// purpose only and serves one ORAM. The cipher wipes it when dropped.
pub(crate) struct LeafPrf {
    cipher: Aes128,
    leaf_level: u8,
}

impl LeafPrf {
    pub(crate) fn draw(leaf_level: u8, coins: &mut impl CryptoRng) -> Self {
        Self::new(&Key::draw(coins), leaf_level)
    }

    fn new(key: &Key, leaf_level: u8) -> Self {
        Self { cipher: Aes128::new(&Array::from(*key.bytes())), leaf_level }
    }

    /// The position of a block whose count is `count`.
    pub(crate) fn position(&self, address: u64, count: Count) -> Position {
        Position { leaf: self.leaf(address, count), count }
    }

    fn leaf(&self, address: u64, count: Count) -> Leaf {
        let name = u128::from(address) << (u64::BITS + COUNTER_BITS_MAX)
            | u128::from(count.group) << COUNTER_BITS_MAX
            | u128::from(count.individual);
        Leaf(self.value(name) & ((1 << self.leaf_level) - 1))
    }

    fn value(&self, name: u128) -> u64 {
        let mut block = Block::from(name.to_be_bytes());
        self.cipher.encrypt_block(&mut block);
        u128::from_be_bytes(block.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_part_of_the_name_counts() {
        let prf = LeafPrf::new(&Key::from_bytes([7; 16]), 40);
        let mut seen = HashSet::new();
        for address in [0, 1, CAPACITY_MAX - 1] {
            for group in [0, 1, 1 << 40, u64::MAX] {
                for individual in [0, 1, (1 << COUNTER_BITS_MAX) - 1] {
                    let leaf = prf.leaf(address, Count { group, individual });
                    assert!(leaf.0 >> 40 == 0);
                    assert!(seen.insert(leaf), "two of 36 inputs have the same one of 2^40 leaves");
                }
            }
        }
        let other = LeafPrf::new(&Key::from_bytes([8; 16]), 40);
        let count = Count { group: 0, individual: 0 };
        assert_ne!(other.leaf(0, count), prf.leaf(0, count));
    }
}
