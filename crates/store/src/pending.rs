//! What was written and is not in the file yet.
//!
//! Consecutive trips write neighbouring buckets on each level. Kept back until there are some
//! megabytes of them, they go to the file as few long runs.
//!
//! The bytes lie one after the other at the front of the store's buffer; this is the list of them.
//! Two entries never share a byte of the file.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::buffer::whole_sectors;
use crate::places::Extent;

#[derive(Default)]
pub(crate) struct Pending {
    /// By where they start in the file.
    entries: BTreeMap<u64, Entry>,
    used_bytes: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    bytes: usize,
    /// Where the bytes are in the buffer.
    at: usize,
}

impl Entry {
    fn in_file(self, start: u64) -> Extent {
        Extent { start, bytes: self.bytes }
    }
}

impl Pending {
    /// How much of the buffer is in use, entries that were replaced included.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Where the bytes of `extent` are, if one entry holds them all.
    pub(crate) fn position(&self, extent: Extent) -> Option<usize> {
        let (&start, entry) = self.entries.range(..=extent.start).next_back()?;
        entry.in_file(start).contains(extent).then(|| entry.at + (extent.start - start) as usize)
    }

    /// Takes room for `bytes` bytes, and says where.
    pub(crate) fn reserve(&mut self, bytes: usize) -> usize {
        let at = self.used_bytes;
        self.used_bytes += whole_sectors(bytes);
        at
    }

    /// The bytes of `extent` are now those at `at`. Entries inside are replaced: the caller has what
    /// they held, or does not need it.
    pub(crate) fn insert(&mut self, extent: Extent, at: usize) {
        while let Some((&start, entry)) = self.entries.range(extent.start..extent.end()).next() {
            debug_assert!(extent.contains(entry.in_file(start)));
            self.entries.remove(&start);
        }
        self.entries.insert(extent.start, Entry { bytes: extent.bytes, at });
    }

    /// What of `extent`, read from the file, is not up to date: where the bytes are, and how far from its
    /// start they belong.
    pub(crate) fn newer(&self, extent: Extent) -> impl Iterator<Item = (Range<usize>, usize)> {
        let before_its_end = self.entries.range(..extent.end()).rev();
        let entries = before_its_end.map(|(&start, entry)| (entry.in_file(start), entry.at));
        entries.take_while(move |(newer, _)| newer.end() > extent.start).map(move |(newer, at)| {
            let start = newer.start.max(extent.start);
            let end = newer.end().min(extent.end());
            let from = at + (start - newer.start) as usize;
            (from..from + (end - start) as usize, (start - extent.start) as usize)
        })
    }

    /// Brings the bytes at `at` in `buffer`, read from the file for `extent`, up to date.
    pub(crate) fn lay_over(&self, extent: Extent, buffer: &mut [u8], at: usize) {
        for (newer, offset) in self.newer(extent) {
            buffer.copy_within(newer, at + offset);
        }
    }

    /// The entries in the order of the file, and where each one's bytes are.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (Extent, usize)> {
        self.entries.iter().map(|(&start, entry)| (entry.in_file(start), entry.at))
    }

    /// Everything is in the file.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.used_bytes = 0;
    }
}
