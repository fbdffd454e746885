//! A set of addresses as bits.

use std::collections::HashMap;

/// A set of addresses, of which most are never there: only parts that are take memory.
pub(super) struct Bits {
    words: HashMap<u64, Box<[u64; WORDS]>>,
    end: u64,
}

const WORDS: usize = 512;
const BITS: u64 = 64 * WORDS as u64;

impl Bits {
    pub(super) fn new(end: u64) -> Self {
        Self { words: HashMap::new(), end }
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        let (part, word, bit) = Self::place(address);
        self.words.get(&part).is_some_and(|words| words[word] >> bit & 1 == 1)
    }

    pub(super) fn insert(&mut self, address: u64) {
        debug_assert!(address < self.end, "an address of this tree");
        let (part, word, bit) = Self::place(address);
        self.words.entry(part).or_insert_with(|| Box::new([0; WORDS]))[word] |= 1 << bit;
    }

    pub(super) fn remove(&mut self, address: u64) {
        let (part, word, bit) = Self::place(address);
        if let Some(words) = self.words.get_mut(&part) {
            words[word] &= !(1 << bit);
        }
    }

    fn place(address: u64) -> (u64, usize, u64) {
        (address / BITS, (address % BITS / 64) as usize, address % 64)
    }
}
