//! The fields of a section.
//!
//! What is read here was opened by a seal, so this client wrote it. It is checked all the same: a defect of ours must
//! not become a panic or a wild allocation.

use alloc::vec::Vec;
use core::ops::Range;

use super::SectionSize;
use crate::error::{Error, ErrorKind};
use crate::seal::{CHECKPOINT_ERAS_MAX, Era};
use crate::wiped::WipedBytes;

/// Bytes of an era.
const ERA_BYTES: usize = 8 + 32;

/// Each opening leaves an era in the state, until all that storage holds has been written anew. So many openings are
/// counted, beside the eras of checkpoints.
const OPENINGS_MAX: u64 = 1024;

/// No client counts so far, so counting on never overflows.
const COUNT_MAX: u64 = 1 << 62;

/// Takes fields off the front of a section.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Those of a section.
    pub fn of(section: &'a [u8]) -> Self {
        Self(section)
    }

    /// So many bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) when there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(strange)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// As many bytes as the array has.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) when there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.bytes(N)?.first_chunk().copied().ok_or_else(strange)
    }

    /// A byte.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) when there are fewer.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    /// A number of two bytes, little-endian as all are.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) when there are fewer.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) when there are fewer.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) when there are fewer.
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of so many bytes, 8 at most.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for anything else.
    pub fn number(&mut self, bytes: usize) -> Result<u64, Error> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.bytes(bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    /// How many times something was done.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for anything else.
    pub fn count(&mut self) -> Result<u64, Error> {
        let count = self.u64()?;
        if count <= COUNT_MAX { Ok(count) } else { Err(strange()) }
    }

    /// As many items as a number says, each of so many bytes at least. There is room for all that can be there from
    /// the beginning: a list that grew would leave copies of them.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for anything else.
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

    /// The eras of a state after so many writes, in order. There is one at least, and none begins later.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for anything else.
    pub fn eras(&mut self, writes: u64) -> Result<Vec<Era>, Error> {
        let eras = self.list(ERA_BYTES, |fields| {
            Ok(Era { first_eviction: fields.u64()?, salt: fields.array()? })
        })?;
        let has_begun = eras.last().is_some_and(|latest| latest.first_eviction <= writes);
        let is_in_order = eras.is_sorted_by_key(|era| era.first_eviction);
        if has_begun && is_in_order { Ok(eras) } else { Err(strange()) }
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Refuses a section that goes on.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for anything else.
    pub fn end(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(strange()) }
    }
}

/// How many things follow.
pub fn put_count(out: &mut WipedBytes, count: usize) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

/// What [`Fields::eras`] reads.
pub fn put_eras(out: &mut WipedBytes, eras: &[&Era]) {
    put_count(out, eras.len());
    for era in eras {
        out.extend_from_slice(&era.first_eviction.to_le_bytes());
        out.extend_from_slice(&era.salt);
    }
}

/// The most eras of a state, where `recognised` writes are told from others, and so many come between two checkpoints.
pub fn eras_max(recognised: u64, writes_per_checkpoint: u64) -> u64 {
    let at_checkpoints = CHECKPOINT_ERAS_MAX.min(recognised / writes_per_checkpoint + 1);
    // Each has a write of its own that storage may still hold; one began before them, and one begins with the state.
    (OPENINGS_MAX + at_checkpoints).min(recognised + 2)
}

/// So many things, as many in each section as fit.
pub fn in_sections(things: u64, in_each: u64, bytes: impl Fn(u64) -> u64) -> [SectionSize; 2] {
    let rest = things % in_each;
    [
        SectionSize { sections: things / in_each, bytes: bytes(in_each) },
        SectionSize { sections: u64::from(rest > 0), bytes: bytes(rest) },
    ]
}

/// How long a section is.
pub fn bytes_of(put: impl FnOnce(&mut WipedBytes)) -> u64 {
    let mut section = WipedBytes::default();
    put(&mut section);
    section.len() as u64
}

/// Refuses a range that goes past the last of `blocks`.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest).
pub fn check_range(range: &Range<u64>, blocks: u64) -> Result<(), Error> {
    if range.start <= range.end && range.end <= blocks {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::InvalidRequest, "the range goes past the end"))
    }
}

/// A section that no scheme of this name wrote.
pub fn strange() -> Error {
    Error::new(ErrorKind::InvalidRequest, "a section that this scheme did not write")
}
