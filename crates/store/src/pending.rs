//! Written bytes that are not yet in the file.
//!
//! Consecutive trips write adjacent buckets on each level. These buckets are collected, up to some
//! megabytes, and written as few long runs.
//!
//! The bytes are at the front of the store's buffer, one after the other; this module indexes them.
//! Two entries never overlap in the file.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::buffer::whole_sectors;
use crate::file_layout::Extent;

#[derive(Default)]
pub(crate) struct Pending {
    /// The entries of written bytes, by their start in the file.
    entries: BTreeMap<u64, Entry>,
    used_bytes: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    bytes: usize,
    /// The position of the entry's bytes in the store's buffer.
    at: usize,
}

impl Entry {
    fn in_file(self, start: u64) -> Extent {
        Extent { start, bytes: self.bytes }
    }
}

impl Pending {
    /// Bytes at the front of the buffer that are in use, including those of replaced entries.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// The position in the buffer of the bytes of `extent`; `None` unless one entry contains all of
    /// them.
    pub(crate) fn position(&self, extent: Extent) -> Option<usize> {
        let (&start, entry) = self.entries.range(..=extent.start).next_back()?;
        entry.in_file(start).contains(extent).then(|| entry.at + (extent.start - start) as usize)
    }

    /// Reserves room for `bytes` bytes in the buffer and returns its position.
    pub(crate) fn reserve(&mut self, bytes: usize) -> usize {
        let at = self.used_bytes;
        self.used_bytes += whole_sectors(bytes);
        at
    }

    /// Records that the bytes of `extent` are at position `at` of the buffer. Replaces the entries
    /// inside `extent`: the caller has copied their contents, or does not need them.
    pub(crate) fn insert(&mut self, extent: Extent, at: usize) {
        while let Some((&start, entry)) = self.entries.range(extent.start..extent.end()).next() {
            debug_assert!(extent.contains(entry.in_file(start)));
            self.entries.remove(&start);
        }
        self.entries.insert(extent.start, Entry { bytes: extent.bytes, at });
    }

    /// The parts of `extent` that are newer than the file. Returns for each part the position of
    /// its bytes, and its offset from the start of `extent`.
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

    /// Overwrites bytes that were read from the file with newer pending bytes. The bytes of
    /// `extent` are at position `at` of `buffer`.
    pub(crate) fn lay_over(&self, extent: Extent, buffer: &mut [u8], at: usize) {
        for (newer, offset) in self.newer(extent) {
            buffer.copy_within(newer, at + offset);
        }
    }

    /// The entries in the order of their positions in the file, each with the position of its bytes
    /// in the buffer.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (Extent, usize)> {
        self.entries.iter().map(|(&start, entry)| (entry.in_file(start), entry.at))
    }

    /// Removes all entries, once their bytes are in the file.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.used_bytes = 0;
    }
}
