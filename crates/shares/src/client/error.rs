//! Errors of the S³ORAM client.

use oblivio_core::BucketId;

use crate::answers::DecodeError;

/// Why an operation of the client failed. Unless the variant says otherwise, nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The address is past the last block, or the tree cannot hold the blocks.
    #[error("the tree does not hold so high an address or number of blocks")]
    NoSuchBlock,
    /// The root is full. The caller must evict first.
    #[error("the root is full: evict first")]
    MustEvict,
    /// Data can only be loaded into a new tree, and this tree is in use.
    #[error("the tree was used before: load data into a new tree")]
    IsUsed,
    /// The servers' answers do not determine a block.
    #[error("{0}")]
    Answers(DecodeError),
    /// The block has the wrong length.
    #[error("the block has the wrong length for this tree")]
    BlockLength,
    /// A block is selected, and must be written back before any other operation. Also the error of
    /// a write whose block is not, or no longer, selected.
    #[error("the selected block must be written back first")]
    IsSelected,
    /// The metadata of slots is not what this client wrote: a server lies, was rolled back, or
    /// dealt wrong shares.
    #[error(
        "metadata from share servers is not what was written: a server lies, was rolled back, \
         or dealt wrong shares"
    )]
    Metadata,
    /// No tree holds the blocks, or a map block would hold fewer than two entries.
    #[error(
        "no tree can hold the blocks, or a block of the position map would hold fewer than \
         two entries"
    )]
    NoSuchTree,
    /// An access failed before it was complete. The state of the servers is unknown.
    #[error("an access failed halfway: this client cannot be used any further")]
    Broken,
    /// The blocks to be evicted to a bucket do not fit: see
    /// [`Preset::overflow_log2`](crate::tree::Preset::overflow_log2). The client cannot recover
    /// from this.
    #[error("bucket {0} overflows: the blocks to be evicted to it do not fit")]
    Overflow(BucketId),
}
