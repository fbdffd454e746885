//! A table in a bucket. It holds one number per slot, in the fewest whole bytes that fit every
//! value of the tree.

use core::ops::Range;

use crate::seal::CHUNK_BYTES;

/// Entries are read and written in words of this size.
const WORD_BYTES: usize = 8;

/// The format of a table with an entry of `bytes` bytes for each slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) bytes: usize,
    /// The all-ones value, which stands for ⊥ (no block).
    pub(super) mask: u64,
}

impl Field {
    /// The format of a table whose entries can hold the values `0..values`, and ⊥.
    pub(super) fn for_values(values: u64) -> Self {
        let bytes = (1..8).find(|bytes| values < 1 << (8 * bytes)).unwrap_or(8);
        Self { bytes, mask: u64::MAX >> (64 - 8 * bytes) }
    }

    pub(super) fn table_bytes(self, slots: usize) -> usize {
        (slots * self.bytes).next_multiple_of(CHUNK_BYTES)
    }

    /// The first `slots` entries. At least [`TABLE_SLACK_BYTES`](super::TABLE_SLACK_BYTES) must
    /// follow the table, because entries are read in words.
    #[inline]
    pub(super) fn values(self, table: &[u8], slots: usize) -> impl Iterator<Item = u64> {
        let words = table[..slots * self.bytes + WORD_BYTES].array_windows::<WORD_BYTES>();
        words.step_by(self.bytes).take(slots).map(move |word| u64::from_le_bytes(*word) & self.mask)
    }

    /// The entry of one slot. No slack is needed after the table.
    pub(super) fn read(self, table: &[u8], slot: usize) -> u64 {
        little_endian(&table[slot * self.bytes..][..self.bytes])
    }

    /// Writes one entry and leaves the other entries unchanged.
    pub(super) fn put(self, table: &mut [u8], slot: usize, value: u64) {
        table[slot * self.bytes..][..self.bytes]
            .copy_from_slice(&value.to_le_bytes()[..self.bytes]);
    }

    /// Writes all entries, and zeros in the rest of the table.
    ///
    /// Stores a word of eight bytes per entry, without reading the word first: the next store
    /// overwrites the zeros above the entry. So no load waits for a store.
    #[inline]
    pub(super) fn put_all(
        self,
        table: &mut [u8],
        table_bytes: usize,
        values: impl Iterator<Item = u64>,
    ) {
        table[..table_bytes].fill(0);
        for (slot, value) in values.enumerate() {
            let word = table[slot * self.bytes..].first_chunk_mut();
            *word.expect("slack bytes follow every table") = (value & self.mask).to_le_bytes();
        }
    }
}

/// The result of searching a table for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    /// Number of slots that hold the address.
    pub(crate) hits: usize,
    /// The slot that holds the address if there is one hit; 0 if there is none.
    pub(crate) slot: usize,
    /// Whether any entry has an invalid value.
    pub(crate) invalid: bool,
}

/// Compares `address` with every entry, without branching on an entry's value. An entry is invalid
/// if its value is in `invalid`. `BYTES` is the width of an entry and a compile-time constant,
/// because this loop runs over every slot of a path in each access. At least
/// [`TABLE_SLACK_BYTES`](super::TABLE_SLACK_BYTES) must follow the table: entries are read four
/// bytes at a time.
#[inline]
pub(super) fn search<const BYTES: usize>(
    table: &[u8],
    slots: usize,
    address: u64,
    invalid: Range<u64>,
) -> Search {
    let mask = u32::MAX >> (32 - 8 * BYTES);
    let words = table[..slots * BYTES + 4 - BYTES].array_windows::<4>().step_by(BYTES);
    let entries = words.map(|word| u64::from(u32::from_le_bytes(*word) & mask));
    search_entries(entries, address, invalid)
}

/// The version of [`search`] for entries of any width. No slack is needed after the table.
pub(super) fn search_wide(
    table: &[u8],
    slots: usize,
    bytes: usize,
    address: u64,
    invalid: Range<u64>,
) -> Search {
    let entries = table[..slots * bytes].chunks_exact(bytes).map(little_endian);
    search_entries(entries, address, invalid)
}

#[inline]
fn search_entries(entries: impl Iterator<Item = u64>, address: u64, invalid: Range<u64>) -> Search {
    let mut search = Search { hits: 0, slot: 0, invalid: false };
    let invalid_values = invalid.end - invalid.start;
    for (slot, entry) in entries.enumerate() {
        let hit = usize::from(entry == address);
        search.hits += hit;
        search.slot |= slot & hit.wrapping_neg();
        search.invalid |= entry.wrapping_sub(invalid.start) < invalid_values;
    }
    search
}

#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
