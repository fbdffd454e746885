//! What is measured: a [`Subject`] that can be accessed, and the [`Description`] it is built from.

use std::fmt;

/// Something with an access cost.
pub trait Subject {
    /// One access: a write of a whole block where `write` is set, a read of it otherwise.
    fn access(&mut self, address: u64, write: bool);

    /// Shows, off the clock, that reads return what was last written: at any address, and in
    /// particular below `filled`, where [`access`](Self::access) has written every block.
    ///
    /// A floor stores nothing and has nothing to show.
    fn check(&mut self, filled: u64) -> Result<(), String> {
        let _ = filled;
        Ok(())
    }
}

/// A capacity and a block size; subjects of one row are measured together and compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub block_bytes: usize,
    pub log2_blocks: u32,
}

pub const ROW_64: Row = Row { block_bytes: 64, log2_blocks: 20 };
pub const ROW_4K: Row = Row { block_bytes: 4096, log2_blocks: 16 };
/// Every row, in the order of the report.
pub const ROWS: [Row; 2] = [ROW_64, ROW_4K];

impl Row {
    pub const fn blocks(self) -> usize {
        1 << self.log2_blocks
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.block_bytes {
            bytes if bytes % 1024 == 0 => {
                write!(f, "{} KiB x 2^{}", bytes / 1024, self.log2_blocks)
            }
            bytes => write!(f, "{bytes} B x 2^{}", self.log2_blocks),
        }
    }
}

/// How to build a subject, and what a reader has to know to compare it.
pub struct Description {
    pub name: String,
    pub row: Row,
    /// What leaves the client encrypted.
    pub encrypts: &'static str,
    /// Whether the client's own memory accesses and branches hide the address.
    pub constant_time: &'static str,
    /// Part of the row's ruler: the subjects so marked add up to what ratios are taken against.
    pub ruler: bool,
    /// Builds the subject, ready for its first access. Timed: this is the set-up time.
    pub build: Box<dyn Fn() -> Box<dyn Subject>>,
}
