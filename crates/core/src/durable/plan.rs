//! Accesses that are about to happen.

use crate::wiped::WipedBytes;

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A block.
    Block(u64),
    /// An aligned range of `2^class` blocks, of one of the [classes](super::Durable::range_classes) of the scheme. It counts as so
    /// many accesses, each with an operation of its own.
    Range {
        /// The first of them.
        first: u64,
        /// Public.
        class: u8,
    },
    /// Positions of blocks, which are to come to the client.
    Position(u64),
    /// Nothing: an access that storage cannot tell from others.
    Nothing,
    /// No range: an access that storage cannot tell from others to ranges of `2^class` blocks. It counts as one of them does.
    NoRange {
        /// Public.
        class: u8,
    },
}

/// Accesses that were drawn: all that they will show, as a section that only the scheme reads. Secret; wiped when
/// dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    accesses: usize,
    section: WipedBytes,
}

impl Plan {
    /// So many accesses, as a scheme drew them. An access to a range counts for each of its blocks.
    pub fn new(accesses: usize, section: WipedBytes) -> Self {
        Self { accesses, section }
    }

    /// How many.
    pub fn accesses(&self) -> usize {
        self.accesses
    }

    /// What the scheme says of them.
    pub fn section(&self) -> &[u8] {
        &self.section
    }
}
