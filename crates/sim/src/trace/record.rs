//! One request of a program.

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
    /// Which line: the address of its bytes over [`LINE_BYTES`](crate::LINE_BYTES).
    pub line: u64,
}
