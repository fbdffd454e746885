//! The measured objects: a [`Subject`], and the [`Description`] from which it is built.

use std::fmt;

/// An object whose accesses are timed.
pub trait Subject {
    /// Accesses a block. Writes the whole block if `write` is set, and reads it otherwise.
    fn access(&mut self, address: u64, write: bool);

    /// Writes and reads blocks at sampled addresses, and checks that each read returns the last
    /// write. If `filled` is not 0, [`access`](Self::access) has written every block below that
    /// address, and some of these blocks are read and checked, too. Not timed.
    ///
    /// Floors store no data and skip the check.
    fn check(&mut self, filled: u64) -> Result<(), String> {
        let _ = filled;
        Ok(())
    }
}

/// A capacity and a block size. Subjects of one row are measured together and compared.
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

/// Instructions to build a subject, and the facts that matter for comparisons.
pub struct Description {
    pub name: String,
    pub row: Row,
    /// The parts of the data that leave the client encrypted.
    pub encrypts: &'static str,
    /// The parts of the client whose own memory accesses and branches hide the address.
    pub constant_time: &'static str,
    /// Whether this subject is part of the baseline (ruler) of its row. Ratios in the row divide by
    /// the sum over these subjects.
    pub ruler: bool,
    /// Builds the subject, ready for its first access. The time of this call is reported as set-up.
    pub build: Box<dyn Fn() -> Box<dyn Subject>>,
}
