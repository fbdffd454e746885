//! What was found wrong with a disk.

use std::fmt;

/// Wrong blocks that a report describes one by one.
const DESCRIBED_MAX: usize = 8;

/// What was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes that differ from the nearest content allowed.
    pub bytes_wrong: u64,
    /// Blocks with such bytes.
    pub blocks_wrong: u64,
    /// The first of these blocks.
    pub first: Vec<WrongBlock>,
}

/// A block that holds what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlock {
    /// Its number.
    pub block: u64,
    /// Bytes that differ from the nearest content allowed.
    pub bytes_wrong: u64,
    /// In which way.
    pub wrong: Wrong,
}

/// In which way a block is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// It holds what it held once: newer data, which was to stay, was lost.
    Stale,
    /// Each byte is allowed, but not all together.
    Torn,
    /// It holds what was never written there.
    Foreign,
}

impl Report {
    /// Notes a block, and in which way it is wrong if that is still described.
    pub(super) fn note(&mut self, block: u64, bytes_wrong: u64, wrong: impl FnOnce() -> Wrong) {
        self.bytes_wrong += bytes_wrong;
        self.blocks_wrong += 1;
        if self.first.len() < DESCRIBED_MAX {
            self.first.push(WrongBlock { block, bytes_wrong, wrong: wrong() });
        }
    }

    /// Whether nothing was wrong.
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
