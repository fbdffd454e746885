//! The fields of a section.
//!
//! What is read here was opened by a seal, so this client wrote it. It is checked all the same: a defect of ours must
//! not become a panic or a wild allocation.

use crate::error::{Error, ErrorKind};
use crate::seal::Era;

/// Bytes of an era.
pub(super) const ERA_BYTES: usize = 8 + 32;

/// No client counts so far, so counting on never overflows.
const COUNT_MAX: u64 = 1 << 62;

/// Takes fields off the front of a section.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(strange)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.bytes(N)?.first_chunk().copied().ok_or_else(strange)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// How many times something was done.
    pub(super) fn count(&mut self) -> Result<u64, Error> {
        let count = self.u64()?;
        if count <= COUNT_MAX { Ok(count) } else { Err(strange()) }
    }

    /// As many items as a number says, each of so many bytes at least. There is room for all that can be there from
    /// the beginning: a list that grew would leave copies of them.
    pub(super) fn list<T>(
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
    pub(super) fn eras(&mut self, writes: u64) -> Result<Vec<Era>, Error> {
        let eras = self.list(ERA_BYTES, |fields| {
            Ok(Era { first_eviction: fields.u64()?, salt: fields.array()? })
        })?;
        let has_begun = eras.last().is_some_and(|latest| latest.first_eviction <= writes);
        let is_in_order = eras.is_sorted_by_key(|era| era.first_eviction);
        if has_begun && is_in_order { Ok(eras) } else { Err(strange()) }
    }

    /// What is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Refuses a section that goes on.
    pub(super) fn end(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(strange()) }
    }
}

/// A section that no scheme of this name wrote.
pub(super) fn strange() -> Error {
    Error::new(ErrorKind::InvalidRequest, "a section that this scheme did not write")
}
