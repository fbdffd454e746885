//! How the tree top is kept: a choice of the user.

use alloc::format;

use crate::error::{Error, ErrorKind};

/// The most ways of a set.
const WAYS_MAX: u16 = 256;

/// How the client keeps the levels nearest the root. It changes neither what is in storage nor what
/// an access shows. Public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeTopKind {
    /// Bucket by bucket, as in storage. Whether a block is there cannot be told without its leaf.
    #[default]
    Dedicated,
    /// The S-Stash of IR-Stash (IR-ORAM, section IV-C): an array indexed by the hash of a block's
    /// address, and a table of pointers that keeps the form of the tree. Whether a block is there can
    /// be told by its address alone, so a frontend may serve it without asking for its leaf: see
    /// [`HitPolicy`](crate::HitPolicy).
    ///
    /// A block whose set is full stays in the stash. So background evictions are more frequent than
    /// with a dedicated tree top, and how many there are depends on which blocks are in use: the more
    /// ways, the fewer. A block that waits for its set leaves the stash with about one path in
    /// `2^tree_top_levels` at the latest. The hash is no secret: whoever chooses addresses can crowd
    /// one set, which costs evictions and never a block.
    SetAssociative {
        /// How many blocks a set holds, from 1 to 256 (4 in IR-ORAM). There are as many sets as it
        /// takes to hold all slots of the levels.
        ways: u16,
    },
}

impl TreeTopKind {
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] for sets that are empty or too large.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::SetAssociative { ways } if !(1..=WAYS_MAX).contains(&ways) => Err(Error::new(
                ErrorKind::InvalidConfig,
                format!("a set of the tree top has 1 to {WAYS_MAX} ways, not {ways}"),
            )),
            _ => Ok(()),
        }
    }

    /// The most blocks by which the stash grows in an access.
    ///
    /// With a dedicated tree top, whatever was on a path finds room there again, so only the block
    /// asked for may be left. With sets the same holds for all but one block: those from storage are
    /// placed first, and all go back there; those from the tree top are placed next, and have their
    /// entries; only then come those that waited in the stash. But the block asked for, or one that
    /// makes room for it, may take an entry that another had.
    pub(crate) fn growth_max(self) -> usize {
        match self {
            Self::Dedicated => 1,
            Self::SetAssociative { .. } => 2,
        }
    }
}
