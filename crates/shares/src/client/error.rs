//! Why a client cannot do something.

use std::fmt::{self, Display};

use oblivio_core::BucketId;

use crate::answers::NoBlock;

/// Why something cannot be done. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// There are fewer blocks.
    NoSuchBlock,
    /// The root has to be evicted first.
    MustEvict,
    /// Data goes into a tree first of all, or not at all.
    IsUsed,
    /// What servers have answered makes no block.
    Answers(NoBlock),
    /// A block is longer or shorter.
    BlockLength,
    /// A block that was asked for has to be written back before anything else is done, and only that one can be.
    IsSelected,
    /// What servers say of their slots is not what this client has written there: one lies, was set back, or has dealt wrong.
    Metadata,
    /// There is no tree of this shape.
    NoSuchTree,
    /// An access has failed in the middle: nobody knows what of it the servers have done.
    Broken,
    /// A bucket has no room for what is to be evicted to it: see [`Preset::overflow_log2`](crate::tree::Preset::overflow_log2). Nothing can be done about it.
    Overflow(BucketId),
}

impl Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchBlock => f.write_str("there are fewer blocks"),
            Self::MustEvict => f.write_str("the root is full: evict first"),
            Self::IsUsed => f.write_str("the tree has been used: data can only be put into a new one"),
            Self::Answers(NoBlock::NotAnswers) => f.write_str(
                "too few servers have answered, or with something else than a share of a block",
            ),
            Self::Answers(NoBlock::Contradict) => f.write_str(
                "answers of servers contradict each other, and there are too few to tell which are wrong",
            ),
            Self::BlockLength => f.write_str("blocks of this tree have another length"),
            Self::IsSelected => {
                f.write_str("the block that was asked for has to be written back first")
            }
            Self::Metadata => f.write_str(
                "what servers say of their slots is not what was written: one of them lies, was set back, or has dealt wrong",
            ),
            Self::NoSuchTree => f.write_str(
                "there is no tree for so many blocks, or a block of its map tells of fewer than two others",
            ),
            Self::Broken => {
                f.write_str("an access has failed in the middle: nothing more can be done with this client")
            }
            Self::Overflow(bucket) => {
                write!(f, "bucket {bucket} has no room for what is to be evicted to it")
            }
        }
    }
}

impl std::error::Error for ClientError {}
