//! The schemes. Each file reads like its paper.
//!
//! A scheme here is a *backend* in the words of Freecursive ORAM: given a block's address, the leaf
//! it is mapped to and the fresh leaf it moves to (step 1 of an access, the work of a *frontend*
//! such as [`crate::FlatOram`]), it does the rest (steps 2 to 5).

mod client;
mod config;
mod path;
mod path_io;
mod raw;
mod trip;

pub use config::{RawConfig, TreeConfig};
pub use path::PathBackend;
pub use raw::RawBackend;

use rand_core::CryptoRng;

use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::stash::StashView;

/// What to do with a block. A buffer has exactly one block's length.
pub enum Op<'a> {
    /// Copy the block out. A block never written reads as zeros.
    Read(&'a mut [u8]),
    /// Replace the block.
    Write(&'a [u8]),
    /// Read, modify and write the block in one access.
    Update(&'a mut dyn FnMut(&mut [u8])),
}

impl Op<'_> {
    /// The length of the buffer, where there is one.
    pub(crate) fn buffer_bytes(&self) -> Option<usize> {
        match self {
            Op::Read(buffer) => Some(buffer.len()),
            Op::Write(data) => Some(data.len()),
            Op::Update(_) => None,
        }
    }

    fn apply(&mut self, block: &mut [u8]) {
        match self {
            Op::Read(buffer) => buffer.copy_from_slice(block),
            Op::Write(data) => block.copy_from_slice(data),
            Op::Update(update) => update(block),
        }
    }
}

/// Where a block was found by [`Backend::visit_blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In the stash.
    Stash,
    /// In a bucket, on the client (tree top) or in storage.
    Bucket(BucketId),
}

/// Steps 2 to 5 of an access, over untrusted storage.
pub trait Backend {
    /// Capacity, block size, geometry, bounds. Public.
    fn config(&self) -> &TreeConfig;

    /// The stash. Secret.
    fn stash(&self) -> StashView<'_>;

    /// Starts to keep a histogram of the stash. Secret.
    fn record_stash_histogram(&mut self);

    /// AES blocks computed so far. Public: it depends on the number of accesses alone.
    fn aes_blocks(&self) -> u64;

    /// Whether an access can be begun now, and so will not be refused before it touches storage.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen) or
    /// [`ErrorKind::StashFull`](crate::ErrorKind::StashFull).
    fn check_ready(&self) -> Result<(), Error>;

    /// Whether the access *after* the next one is sure to find [`Self::check_ready`] true. Only then
    /// may its leaf be shown to storage ahead of time: a leaf once shown must be used.
    fn may_look_ahead(&self) -> bool;

    /// Tells storage that the path to `leaf` will be read by a coming access.
    fn prefetch(&mut self, leaf: Leaf);

    /// Finds the block `address` on the path to `from` or in the stash, maps it to `to`, applies
    /// `op`.
    ///
    /// # Errors
    /// Those of [`Self::check_ready`], and any that storage causes: see
    /// [`ErrorKind`](crate::ErrorKind).
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error>;

    /// Background eviction (Ren et al., ISCA'13): reads and writes back one more path, so that the
    /// stash shrinks. Storage sees it.
    ///
    /// # Errors
    /// Any that storage causes.
    fn background_evict(&mut self, coins: &mut impl CryptoRng) -> Result<(), Error>;

    /// Reads the whole tree, and calls `visit` for each block with the leaf it is mapped to.
    /// Storage sees a scan.
    ///
    /// # Errors
    /// Any that storage causes.
    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error>;
}
