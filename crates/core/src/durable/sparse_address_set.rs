//! A set of addresses as bits.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use hashbrown::HashMap;
use zeroize::Zeroize;

/// A set of addresses below a bound. Sparse: memory for 32,768 addresses at a time is allocated
/// when one of them is inserted. Secret; wiped when dropped.
#[derive(Clone)]
pub struct SparseAddressSet {
    words: HashMap<u64, Box<[u64; WORDS]>>,
    end: u64,
}

const WORDS: usize = 512;
const BITS: u64 = 64 * WORDS as u64;

impl SparseAddressSet {
    /// An empty set of addresses below `end`.
    pub fn new(end: u64) -> Self {
        Self { words: HashMap::new(), end }
    }

    /// Whether an address is in the set.
    pub fn contains(&self, address: u64) -> bool {
        let (part, word, bit) = Self::place(address);
        self.words.get(&part).is_some_and(|words| words[word] >> bit & 1 == 1)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.values().all(|words| words.iter().all(|word| *word == 0))
    }

    /// Whether no address was ever inserted.
    pub fn is_untouched(&self) -> bool {
        self.words.is_empty()
    }

    /// The addresses in the set, ascending. The time grows with the allocated memory, not with
    /// `end`.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut parts: Vec<_> = self.words.iter().collect();
        parts.sort_unstable_by_key(|(part, _)| **part);
        parts.into_iter().flat_map(|(part, words)| {
            let words = (0..).zip(words.iter());
            words.flat_map(move |(word, bits)| {
                ones(*bits).map(move |bit| part * BITS + word * 64 + bit)
            })
        })
    }

    /// Inserts an address.
    pub fn insert(&mut self, address: u64) {
        self.insert_all(address..address + 1);
    }

    /// Removes an address.
    pub fn remove(&mut self, address: u64) {
        self.remove_all(address..address + 1);
    }

    /// Inserts all addresses of a range.
    pub fn insert_all(&mut self, addresses: Range<u64>) {
        debug_assert!(addresses.end <= self.end, "the range goes past the end of the set");
        for_each_word(addresses, |part, word, mask| {
            self.words.entry(part).or_insert_with(|| Box::new([0; WORDS]))[word] |= mask;
        });
    }

    /// Removes all addresses of a range.
    pub fn remove_all(&mut self, addresses: Range<u64>) {
        for_each_word(addresses, |part, word, mask| {
            if let Some(words) = self.words.get_mut(&part) {
                words[word] &= !mask;
            }
        });
    }

    /// A bitmap that says which addresses of `range` are in the set. The lowest bit of the first
    /// byte stands for the first address.
    pub fn to_bytes(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start).div_ceil(8) as usize];
        for (i, _) in range.enumerate().filter(|(_, address)| self.contains(*address)) {
            bytes[i / 8] |= 1 << (i % 8);
        }
        bytes
    }

    fn place(address: u64) -> (u64, usize, u64) {
        (address / BITS, (address % BITS / 64) as usize, address % 64)
    }
}

impl Drop for SparseAddressSet {
    fn drop(&mut self) {
        self.words.values_mut().for_each(|words| words.zeroize());
    }
}

/// The positions of the set bits, ascending.
fn ones(bits: u64) -> impl Iterator<Item = u64> {
    let is_any = |bits: &u64| *bits != 0;
    let rest = core::iter::successors(Some(bits).filter(is_any), move |bits| {
        Some(bits & (bits - 1)).filter(is_any)
    });
    rest.map(|bits| u64::from(bits.trailing_zeros()))
}

/// Calls `each` for every word that holds bits of a range, with the index of the word's part, the
/// index of the word in this part, and a mask of the range's bits.
fn for_each_word(addresses: Range<u64>, mut each: impl FnMut(u64, usize, u64)) {
    let mut next = addresses.start;
    while next < addresses.end {
        let (part, word, bit) = SparseAddressSet::place(next);
        let count = (64 - bit).min(addresses.end - next);
        each(part, word, u64::MAX >> (64 - count) << bit);
        next += count;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_holds_what_a_set_would() {
        const END: u64 = 3 * BITS;
        let (mut bits, mut set) = (SparseAddressSet::new(END), BTreeSet::new());
        assert!(bits.is_untouched() && bits.is_empty());
        let ranges =
            [(0, 1), (5, 70), (63, 64), (64, 128), (100, BITS + 9), (END - 1, END), (9, 9)];
        for (start, end) in ranges {
            bits.insert_all(start..end);
            set.extend(start..end);
            bits.insert(start / 2);
            set.insert(start / 2);
            bits.remove_all(end / 2..end - 1);
            set.retain(|address| !(end / 2..end - 1).contains(address));
            bits.remove(end);
            set.remove(&end);
            assert!((0..END).all(|address| bits.contains(address) == set.contains(&address)));
            assert_eq!(bits.is_empty(), set.is_empty());
            assert!(bits.iter().eq(set.iter().copied()));
            let bytes = bits.to_bytes(3..90);
            let bit =
                |address: u64| bytes[(address - 3) as usize / 8] >> ((address - 3) % 8) & 1 == 1;
            assert!((3..90).all(|address| bit(address) == set.contains(&address)));
        }
        bits.remove_all(0..END);
        assert!(!bits.is_untouched() && bits.is_empty());
    }
}
