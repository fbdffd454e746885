//! One request of a program.

use crate::LINE_BYTES;

/// How many lines 64-bit addresses of bytes can tell apart: every line is below.
pub const LINES_MAX: u64 = u64::MAX / LINE_BYTES + 1;

/// Whether a request wants a line or gives one back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The program waits for the line.
    Read,
    /// A changed line leaves the first-level cache. Nobody waits for it.
    Write,
}

/// A miss of the first-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Instructions since the record before that asked for nothing.
    pub gap: u32,
    /// What it asks for.
    pub kind: Kind,
    /// Which line: the address of its bytes over [`LINE_BYTES`], below [`LINES_MAX`].
    pub line: u64,
}

impl Record {
    /// The instructions it stands for: those of its gap, and the read itself. A write is none, since
    /// the cache makes it and not the program.
    pub fn instructions(&self) -> u64 {
        u64::from(self.gap) + u64::from(self.kind == Kind::Read)
    }

    /// The address of the line's first byte.
    pub(super) fn address(&self) -> u64 {
        self.line * LINE_BYTES
    }
}
