//! The two organizations of a tree top, from which the user chooses: in buckets, or in sets that
//! are searched by address.

use alloc::format;

use crate::error::{Error, ErrorKind};

/// Maximum number of ways of a set.
const WAYS_MAX: u16 = 256;

/// How the client organizes the levels nearest the root. This changes neither the form of buckets
/// in storage nor what an access reveals. Public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeTopKind {
    /// A tree top in buckets, as in storage. A block can be found only by its leaf.
    #[default]
    Dedicated,
    /// The S-Stash of IR-Stash (IR-ORAM, section IV-C): an array indexed by the hash of a block's
    /// address, and a table of pointers in the form of the tree. A block can be found by its
    /// address alone, so a frontend may serve it without looking up its leaf: see
    /// [`HitPolicy`](crate::HitPolicy).
    ///
    /// A block whose set is full stays in the stash. So background evictions are more frequent than
    /// with a dedicated tree top, and the number of evictions depends on which blocks are in use.
    /// With more ways, there are fewer evictions. A block that waits for its set can move to a
    /// level in storage with about one evicted path in `2^tree_top_levels`. The hash is not secret:
    /// an attacker who chooses addresses can crowd one set, which costs evictions but loses no
    /// block.
    SetAssociative {
        /// Number of blocks in a set, from 1 to 256 (4 in IR-ORAM). The number of sets is the
        /// smallest that covers all slots of the levels.
        ways: u16,
    },
}

impl TreeTopKind {
    /// Checks the number of ways.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if a set would be empty or too large.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::SetAssociative { ways } if !(1..=WAYS_MAX).contains(&ways) => Err(Error::new(
                ErrorKind::InvalidConfig,
                format!("the tree top has {ways} ways per set: choose 1 to {WAYS_MAX}"),
            )),
            _ => Ok(()),
        }
    }

    /// Maximum growth of the stash in one access, in blocks.
    ///
    /// With a dedicated tree top, every block of the path fits there again, so only the requested
    /// block may stay in the stash. With sets, the same holds for all blocks but one. Blocks from
    /// storage are placed first, and all of them fit. Blocks from the tree top are placed next,
    /// into the entries that they had before. Blocks that waited in the stash come last. But the
    /// requested block, or a block that makes room for it, can take an entry that another block
    /// had, which then stays in the stash.
    pub(crate) fn growth_max(self) -> usize {
        match self {
            Self::Dedicated => 1,
            Self::SetAssociative { .. } => 2,
        }
    }
}
