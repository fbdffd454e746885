//! The schemes. Each file reads like its paper.
//!
//! A scheme here is a *backend* in the words of Freecursive ORAM: given a block's address, the leaf
//! it is mapped to and the fresh leaf it moves to (step 1 of an access, the work of a *frontend*
//! such as [`crate::FlatOram`]), it does the rest (steps 2 to 5).

mod client;
mod config;
mod path;
mod path_io;
mod populate;
mod raw;
mod rotating;
mod tag_tree;
mod trip;

pub use config::{RawConfig, TreeConfig};
pub use path::PathBackend;
pub use path_io::PathTree;
pub use raw::RawBackend;
pub use rotating::{Home, Move, RotatingBackend, RotatingTrees, Sighting, TakenSlot};
pub use tag_tree::TagTree;

use rand_core::CryptoRng;

use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::stash::StashView;

/// How many accesses are served between two checks of the stash bound.
///
/// Within such a window each access shows the path of the next one to storage, whatever the stash
/// holds: the stash has room for all of them beyond its bound.
pub const WINDOW_ACCESSES_MAX: usize = 64;

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

    /// The same operation, for a shorter time.
    pub fn reborrow(&mut self) -> Op<'_> {
        match self {
            Op::Read(buffer) => Op::Read(buffer),
            Op::Write(data) => Op::Write(data),
            Op::Update(update) => Op::Update(update),
        }
    }

    /// Does it to `block`.
    pub(crate) fn apply(&mut self, block: &mut [u8]) {
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

    /// Whether [`burst_accesses_max`](TreeConfig::burst_accesses_max) accesses can be begun now, one
    /// after the other, and so none of them will be refused before it touches storage. What was shown to storage ahead of time
    /// is then sure to be used.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen) or
    /// [`ErrorKind::StashFull`](crate::ErrorKind::StashFull).
    fn check_ready(&self) -> Result<(), Error>;

    /// Tells storage that the path to `leaf` will be read by a coming access.
    fn prefetch(&mut self, leaf: Leaf);

    /// Finds the block `address` on the path to `from` or in the stash, maps it to `to`, applies
    /// `op`.
    ///
    /// [`Self::check_ready`] must have held at most
    /// [`burst_accesses_max`](TreeConfig::burst_accesses_max) accesses ago.
    ///
    /// # Errors
    /// Those of [`Self::check_ready`], and any that storage causes: see
    /// [`ErrorKind`](crate::ErrorKind).
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error>;

    /// Applies `op` to the block `address` where it is, if the client finds it by its address: in the
    /// stash, or in a [set-associative](crate::stash::TreeTopKind::SetAssociative) tree top. Answers whether
    /// it did. A dedicated tree top is not searched: it is ordered by leaves.
    ///
    /// The block keeps its leaf, and storage sees nothing (IR-ORAM, section IV-C: a hit needs no path
    /// and no remap). So whoever calls this instead of [`Self::access`] shows storage, by the access
    /// that does not come, that the block was on the client.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen).
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error>;

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

/// A backend one of whose accesses that nobody needs looks to storage like any other: what
/// [`Backend::background_evict`] shows is what [`Backend::access`] shows.
pub trait Indistinct: TakingBackend {}

/// A backend that can be filled at once.
pub trait Populate: Backend {
    /// Puts blocks of zeros into an ORAM that was never accessed: for each an address, which comes once,
    /// and the leaf it is mapped to. Storage sees every bucket written, in order.
    ///
    /// It takes client memory for the tags of the whole tree meanwhile: it is made for simulations.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no such address or
    /// leaf, [`ErrorKind::StashFull`](crate::ErrorKind::StashFull) when more blocks find no bucket than
    /// the stash may hold: the tree is too small. Then, and when storage fails, the ORAM is
    /// half full and broken.
    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error>;
}

/// A backend that hands blocks out and takes them back, so that a frontend can keep some itself.
pub trait TakingBackend: Backend {
    /// Takes the block `address`, which is on the path to `from` or in the stash, out of the ORAM:
    /// copies it to `block`, which is as long as a block, and forgets it. A block that is nowhere is
    /// zeros. Answers whether it was somewhere.
    ///
    /// Storage sees what it sees of any access.
    ///
    /// # Errors
    /// Those of [`Backend::access`].
    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error>;

    /// Takes the block `address` out of the ORAM, if the client finds it by its address, as in
    /// [`Backend::serve_on_client`]: copies it to `block`, forgets it, and answers the leaf it was mapped
    /// to, which storage has not seen. Storage sees nothing.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen).
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error>;

    /// Puts the block `address`, which is nowhere in the ORAM, into the stash and maps it to `leaf`.
    /// Storage sees nothing. Towards the stash bound it counts like an access.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen);
    /// [`ErrorKind::StashFull`](crate::ErrorKind::StashFull) when there is no room; and
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) when storage has brought a copy of the block
    /// into the stash. Nothing was touched.
    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error>;
}
