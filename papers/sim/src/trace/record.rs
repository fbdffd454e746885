//! A memory request of a program.

use crate::LINE_BYTES;

/// The number of lines in a space of 64-bit byte addresses. All line numbers are below it.
pub const LINES_MAX: u64 = u64::MAX / LINE_BYTES + 1;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// A read: the line is fetched, and the program waits for it.
    Read,
    /// A write: a dirty line leaves the first-level cache. The program does not wait for it.
    Write,
}

/// A miss of the first-level cache, or a dirty victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Instructions without a record since the previous record.
    pub gap: u32,
    /// The kind of request.
    pub kind: AccessKind,
    /// The number of the line: byte address divided by [`LINE_BYTES`], below [`LINES_MAX`].
    pub line: u64,
}

impl Record {
    /// The number of instructions of this record: its gap, and one for a read. A write adds none,
    /// since the cache makes it.
    pub fn instructions(&self) -> u64 {
        u64::from(self.gap) + u64::from(self.kind == AccessKind::Read)
    }

    /// The address of the line's first byte.
    pub(super) fn address(&self) -> u64 {
        self.line * LINE_BYTES
    }
}
