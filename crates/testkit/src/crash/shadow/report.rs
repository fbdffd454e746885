//! The differences between a disk and its model.

use std::fmt;

/// Maximum number of wrong blocks that a report describes individually.
const DESCRIBED_MAX: usize = 8;

/// The bytes and blocks that violate the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of bytes that differ from the nearest allowed contents.
    pub bytes_wrong: u64,
    /// Number of blocks with wrong bytes.
    pub blocks_wrong: u64,
    /// The first of the wrong blocks.
    pub first: Vec<WrongBlock>,
}

/// A block with contents that the contract forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlock {
    /// The number of the block.
    pub block: u64,
    /// Number of bytes that differ from the nearest allowed contents.
    pub bytes_wrong: u64,
    /// The kind of error.
    pub wrong: Wrong,
}

/// The kind of error in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// The block holds past contents: newer durable data was lost.
    Stale,
    /// Each byte is allowed, but the combination is not.
    Torn,
    /// The block holds bytes that were never written there.
    Foreign,
}

impl Report {
    /// Adds a block, with its kind of error if it is among the first.
    pub(super) fn note(&mut self, block: u64, bytes_wrong: u64, wrong: impl FnOnce() -> Wrong) {
        self.bytes_wrong += bytes_wrong;
        self.blocks_wrong += 1;
        if self.first.len() < DESCRIBED_MAX {
            self.first.push(WrongBlock { block, bytes_wrong, wrong: wrong() });
        }
    }

    /// Whether the report contains no wrong block.
    pub fn is_clean(&self) -> bool {
        self.blocks_wrong == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {} blocks are wrong", self.bytes_wrong, self.blocks_wrong)?;
        for WrongBlock { block, bytes_wrong, wrong } in &self.first {
            write!(f, "; block {block}: {bytes_wrong} bytes, {wrong:?}")?;
        }
        Ok(())
    }
}
