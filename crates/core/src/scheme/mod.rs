//! The schemes of tree ORAMs. Each file follows its paper.
//!
//! A scheme receives a block's address, the leaf it is mapped to and the fresh leaf it moves to.
//! Finding and drawing these leaves is step 1 of an access, the task of a front end such as
//! [`crate::FlatOram`]. The scheme does steps 2 to 5. Freecursive ORAM calls a scheme a *backend*.
//!
//! [`VersionedTree`] is not a [`Scheme`]: its accesses need to know whether a block is live, and
//! its evictions need the position map. [`DurableRawOram`](crate::DurableRawOram) provides both.

mod client;
mod config;
mod path;
mod path_io;
mod populate;
mod raw;
mod rotating;
mod step;
mod tag_tree;
mod trip;

use alloc::boxed::Box;

pub use config::{EVICT_PERIOD_MAX, RawConfig, TREE_TOP_LEVELS_MAX, TreeConfig};
pub use path::PathScheme;
pub use path_io::PathTree;
pub use raw::RawScheme;
pub use rotating::{ClientLocation, Move, RollbackProbe, RotatingTrees, TakenSlot, VersionedTree};
pub(crate) use rotating::{Run, StoredTree};
pub use step::{PathAction, PathStep, StepHook, StepPhase};
pub use tag_tree::{BlockMove, Origin, TagTree};

use rand_core::CryptoRng;

use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::stash::StashView;

/// Maximum number of accesses in a window. The stash bound is checked once, before the window.
///
/// No access within the window is refused because of a full stash: beyond its bound, the stash has
/// room for the blocks that these accesses can leave. So the paths announced to storage are all
/// used.
pub const WINDOW_ACCESSES_MAX: usize = 64;

/// The operation of an access. Buffers must be exactly one block long.
pub enum Op<'a> {
    /// Copies the block to a buffer. A block never written reads as zeros.
    Read(&'a mut [u8]),
    /// Replaces the block with new contents.
    Write(&'a [u8]),
    /// Reads, modifies and writes the block in one access.
    Update(&'a mut dyn FnMut(&mut [u8])),
}

impl Op<'_> {
    /// The length of the buffer in bytes, if there is one.
    pub(crate) fn buffer_bytes(&self) -> Option<usize> {
        match self {
            Op::Read(buffer) => Some(buffer.len()),
            Op::Write(data) => Some(data.len()),
            Op::Update(_) => None,
        }
    }

    /// The same operation, borrowed for a shorter time.
    pub fn reborrow(&mut self) -> Op<'_> {
        match self {
            Op::Read(buffer) => Op::Read(buffer),
            Op::Write(data) => Op::Write(data),
            Op::Update(update) => Op::Update(update),
        }
    }

    /// Applies the operation to `block`.
    ///
    /// # Panics
    /// If the buffer has another length than `block`.
    pub fn apply(&mut self, block: &mut [u8]) {
        match self {
            Op::Read(buffer) => buffer.copy_from_slice(block),
            Op::Write(data) => block.copy_from_slice(data),
            Op::Update(update) => update(block),
        }
    }
}

/// The location of a block found by [`Scheme::visit_blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// The stash.
    Stash,
    /// A bucket, on the client (tree top) or in storage.
    Bucket(BucketId),
}

/// Steps 2 to 5 of an access, over untrusted storage.
///
/// Two kinds of accesses serve no request:
/// - [`dummy`](Self::dummy): storage cannot distinguish it from [`access`](Self::access). It is for
///   callers that hide the times of requests by making accesses at a fixed rate or in a fixed
///   pattern.
/// - [`evict`](Self::evict) makes the stash smaller ahead of time. Storage may be able to
///   distinguish it from an access. It is for callers whose access was refused with
///   [`ErrorKind::StashFull`](crate::ErrorKind::StashFull).
pub trait Scheme {
    /// The parameters of the tree: capacity, block size, geometry, bounds. Public.
    fn config(&self) -> &TreeConfig;

    /// The stash. Secret.
    fn stash(&self) -> StashView<'_>;

    /// Starts to record a histogram of the number of blocks in the stash. Secret.
    fn record_stash_histogram(&mut self);

    /// Sets the hook that runs before and after each [action](PathAction) on a path. It replaces
    /// the previous hook.
    fn set_step_hook(&mut self, hook: Box<dyn StepHook>);

    /// AES blocks computed so far. Public: it depends only on the number of accesses.
    fn aes_blocks(&self) -> u64;

    /// Checks that the next [`burst_accesses_max`](TreeConfig::burst_accesses_max) accesses will
    /// not be refused because of a full stash. So all paths announced to storage will be used.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen) or
    /// [`ErrorKind::StashFull`](crate::ErrorKind::StashFull).
    fn check_ready(&self) -> Result<(), Error>;

    /// Announces to storage that later accesses will read the paths to `leaves`, in this order.
    fn announce(&mut self, leaves: &[Leaf]);

    /// Finds the block `address` on the path to `from` or in the stash, maps it to `to` and applies
    /// `op`.
    ///
    /// [`Self::check_ready`] must have succeeded at most
    /// [`burst_accesses_max`](TreeConfig::burst_accesses_max) accesses ago.
    ///
    /// # Errors
    /// Errors of [`Self::check_ready`], and any error of storage: see
    /// [`ErrorKind`](crate::ErrorKind).
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error>;

    /// Takes the block `address`, which is on the path to `from` or in the stash, out of the ORAM:
    /// copies it to `block`, which is one block long, and forgets it. A block that is nowhere reads
    /// as zeros. Returns whether the block was in the ORAM.
    ///
    /// Storage sees the same as for any access.
    ///
    /// # Errors
    /// Errors of [`Self::access`].
    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error>;

    /// A dummy access to a random path. Storage cannot distinguish it from
    /// [`access`](Self::access). It adds no block to the stash, so it is allowed even if the stash
    /// is over its bound.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen), and any error of storage.
    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error>;

    /// Background eviction (Ren et al., ISCA'13): makes one eviction, which moves as many blocks
    /// out of the stash as fit. Storage sees the eviction, and may be able to distinguish it from
    /// an access.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen), and any error of storage.
    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error>;

    /// Applies `op` to the block `address`, if the client finds it by its address: in the stash, or
    /// in a [set-associative](crate::stash::TreeTopKind::SetAssociative) tree top. Returns whether
    /// it did. A dedicated tree top is not searched: it is ordered by leaves.
    ///
    /// The block keeps its leaf, and storage sees nothing (IR-ORAM, section IV-C: a hit needs no
    /// path and no remap). But a caller that skips [`Self::access`] in this case shows storage, by
    /// the missing access, that the block was on the client.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen).
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error>;

    /// Takes the block `address` out of the ORAM, if the client finds it by its address, as in
    /// [`Self::serve_on_client`]: copies it to `block`, forgets it, and returns the leaf it was
    /// mapped to, which storage has not seen. Storage sees nothing.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen).
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error>;

    /// Puts the block `address`, which is nowhere in the ORAM, into the stash and maps it to
    /// `leaf`. Storage sees nothing. It counts like an access towards the stash bound.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen);
    /// [`ErrorKind::StashFull`](crate::ErrorKind::StashFull) if there is no room;
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if storage has brought a copy of the block
    /// into the stash. Nothing was touched.
    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error>;

    /// Fills an unused ORAM with blocks of zeros. `blocks` returns the address and the leaf of each
    /// block, once. Storage sees every bucket written, in order.
    ///
    /// Meanwhile the tags of the whole tree take client memory, so this is meant for simulations.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) if this scheme cannot be
    /// filled at once; nothing was touched.
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if an address or leaf does
    /// not exist. [`ErrorKind::StashFull`](crate::ErrorKind::StashFull) if more blocks find no
    /// bucket than the stash may hold: the tree is too small. After the last two, and after an
    /// error of storage, the ORAM is half full and broken.
    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error>;

    /// Reads the whole tree, and calls `visit` with the location, address and leaf of each block,
    /// including those on the client. Storage sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen), and any error of storage.
    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error>;
}

impl<S: Scheme + ?Sized> Scheme for Box<S> {
    fn config(&self) -> &TreeConfig {
        (**self).config()
    }

    fn stash(&self) -> StashView<'_> {
        (**self).stash()
    }

    fn record_stash_histogram(&mut self) {
        (**self).record_stash_histogram();
    }

    fn set_step_hook(&mut self, hook: Box<dyn StepHook>) {
        (**self).set_step_hook(hook);
    }

    fn aes_blocks(&self) -> u64 {
        (**self).aes_blocks()
    }

    fn check_ready(&self) -> Result<(), Error> {
        (**self).check_ready()
    }

    fn announce(&mut self, leaves: &[Leaf]) {
        (**self).announce(leaves);
    }

    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        (**self).access(address, from, to, op)
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        (**self).take(address, from, block)
    }

    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        (**self).dummy(coins)
    }

    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        (**self).evict(coins)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        (**self).serve_on_client(address, op)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        (**self).take_on_client(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        (**self).append(address, leaf, block)
    }

    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        (**self).populate(blocks)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        (**self).visit_blocks(visit)
    }
}
