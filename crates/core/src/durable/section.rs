//! Reads and writes the fields of a section.
//!
//! The client has opened a section with its keys, so it wrote the section itself. The fields are
//! checked all the same: a bug of this program must not become a panic or a huge allocation.

use alloc::vec::Vec;
use core::ops::Range;

use super::SectionSize;
use crate::error::{Error, ErrorKind};
use crate::seal::{CHECKPOINT_ERAS_MAX, Era};
use crate::wiped::WipedBytes;

/// Bytes of an encoded era.
const ERA_BYTES: usize = 8 + 32;

/// Maximum number of eras that a state holds from openings. Each opening adds an era, whose keys
/// are kept until everything in storage has been rewritten.
const OPENINGS_MAX: u64 = 1024;

/// The largest valid counter. No client counts this high, so an addition never overflows.
const COUNT_MAX: u64 = 1 << 62;

/// Reads fields from the front of a section.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// A reader for the fields of `section`.
    pub fn new(section: &'a [u8]) -> Self {
        Self(section)
    }

    /// Reads the next `count` bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(foreign_section)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.bytes(N)?.first_chunk().copied().ok_or_else(foreign_section)
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    /// Reads a number of two bytes. All numbers are little-endian.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads a number of four bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of eight bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a number of `bytes` bytes, at most 8.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short.
    pub fn number(&mut self, bytes: usize) -> Result<u64, Error> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.bytes(bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    /// Reads a counter, for example of accesses or evictions: eight bytes, at most 2⁶².
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the counter is too large or the section too
    /// short.
    pub fn count(&mut self) -> Result<u64, Error> {
        let count = self.u64()?;
        if count <= COUNT_MAX { Ok(count) } else { Err(foreign_section()) }
    }

    /// Reads a list: the number of items in four bytes, then the items, each of at least
    /// `bytes_min` bytes. Allocates the whole list first, because a growing list would leave copies
    /// of its items in memory.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short, and errors of
    /// `item`.
    pub fn list<T>(
        &mut self,
        bytes_min: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.u32()? as usize;
        let mut items = Vec::with_capacity(count.min(self.0.len() / bytes_min));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads the eras of a state after `writes` writes. Checks that there is at least one era, that
    /// the eras are in order, and that the last does not begin after `writes`.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if the section is too short or a check fails.
    pub fn eras(&mut self, writes: u64) -> Result<Vec<Era>, Error> {
        let eras = self.list(ERA_BYTES, |fields| {
            Ok(Era { first_eviction: fields.u64()?, salt: fields.array()? })
        })?;
        let has_begun = eras.last().is_some_and(|latest| latest.first_eviction <= writes);
        let is_in_order = eras.is_sorted_by_key(|era| era.first_eviction);
        if has_begun && is_in_order { Ok(eras) } else { Err(foreign_section()) }
    }

    /// Whether all fields were read.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// The unread bytes.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Checks that all fields were read.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) if bytes are left.
    pub fn end(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(foreign_section()) }
    }
}

/// Writes the number of items of a list, in four bytes, before its items.
pub fn put_count(out: &mut WipedBytes, count: usize) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

/// Writes eras in the form that [`Fields::eras`] reads.
pub fn put_eras(out: &mut WipedBytes, eras: &[&Era]) {
    put_count(out, eras.len());
    for era in eras {
        out.extend_from_slice(&era.first_eviction.to_le_bytes());
        out.extend_from_slice(&era.salt);
    }
}

/// Maximum number of eras in a state that keeps the keys of the latest `recognised` writes, with a
/// checkpoint every `writes_per_checkpoint` writes.
pub fn eras_max(recognised: u64, writes_per_checkpoint: u64) -> u64 {
    let at_checkpoints = CHECKPOINT_ERAS_MAX.min(recognised / writes_per_checkpoint + 1);
    // Each of the `recognised` writes may be in an era of its own. One more era began before these
    // writes, and one more begins with the state.
    (OPENINGS_MAX + at_checkpoints).min(recognised + 2)
}

/// The sizes of the sections for `things` items with at most `in_each` items per section. `bytes`
/// computes the length of a section from its number of items.
pub fn in_sections(things: u64, in_each: u64, bytes: impl Fn(u64) -> u64) -> [SectionSize; 2] {
    let rest = things % in_each;
    [
        SectionSize { sections: things / in_each, bytes: bytes(in_each) },
        SectionSize { sections: u64::from(rest > 0), bytes: bytes(rest) },
    ]
}

/// The length in bytes of the section that `put` writes.
pub fn bytes_of(put: impl FnOnce(&mut WipedBytes)) -> u64 {
    let mut section = WipedBytes::default();
    put(&mut section);
    section.len() as u64
}

/// Checks that a range ends within `blocks` blocks.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) if it does not.
pub fn check_range(range: &Range<u64>, blocks: u64) -> Result<(), Error> {
    if range.start <= range.end && range.end <= blocks {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::InvalidRequest, "the range goes past the end"))
    }
}

/// The error for a section that this scheme did not write.
pub fn foreign_section() -> Error {
    Error::new(ErrorKind::InvalidRequest, "the state has a section of another scheme")
}
