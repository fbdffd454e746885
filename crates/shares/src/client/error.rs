//! Why a client cannot do something.

use oblivio_core::BucketId;

use crate::answers::NoBlock;

/// Why something cannot be done. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// There are fewer blocks.
    #[error("there are fewer blocks")]
    NoSuchBlock,
    /// The root has to be evicted first.
    #[error("the root is full: evict first")]
    MustEvict,
    /// Data goes into a tree first of all, or not at all.
    #[error("the tree has been used: data can only be put into a new one")]
    IsUsed,
    /// What servers have answered makes no block.
    #[error("{0}")]
    Answers(NoBlock),
    /// A block is longer or shorter.
    #[error("blocks of this tree have another length")]
    BlockLength,
    /// A block that was asked for has to be written back before anything else is done, and only that one can be.
    #[error("the block that was asked for has to be written back first")]
    IsSelected,
    /// What servers say of their slots is not what this client has written there: one lies, was set back, or has dealt wrong.
    #[error(
        "what servers say of their slots is not what was written: one of them lies, was \
         set back, or has dealt wrong"
    )]
    Metadata,
    /// There is no tree of this shape.
    #[error(
        "there is no tree for so many blocks, or a block of its map tells of fewer than \
         two others"
    )]
    NoSuchTree,
    /// An access has failed in the middle: nobody knows what of it the servers have done.
    #[error("an access has failed in the middle: nothing more can be done with this client")]
    Broken,
    /// A bucket has no room for what is to be evicted to it: see [`Preset::overflow_log2`](crate::tree::Preset::overflow_log2). Nothing can be done about it.
    #[error("bucket {0} has no room for what is to be evicted to it")]
    Overflow(BucketId),
}
