//! The schemes. Each file reads like its paper.
//!
//! A scheme is given a block's address, the leaf it is mapped to and the fresh leaf it moves to
//! (step 1 of an access, the work of a front end such as [`crate::FlatOram`]), and does the rest
//! (steps 2 to 5). Freecursive ORAM calls it a *backend*.
//!
//! [`RotatingScheme`] is no [`Scheme`]: its accesses need to know whether a block is alive, and its
//! evictions the position map, which [`RotatingOram`](crate::RotatingOram) tells them.

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
pub use rotating::{Home, Move, RollbackProbe, RotatingScheme, RotatingTrees, TakenSlot};
pub(crate) use rotating::{Run, StoredTree};
pub use step::{Moment, PathAction, PathStep, StepHook};
pub use tag_tree::{BlockMove, Origin, TagTree};

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
    ///
    /// # Panics
    /// When the buffer has another length.
    pub fn apply(&mut self, block: &mut [u8]) {
        match self {
            Op::Read(buffer) => buffer.copy_from_slice(block),
            Op::Write(data) => block.copy_from_slice(data),
            Op::Update(update) => update(block),
        }
    }
}

/// Where a block was found by [`Scheme::visit_blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In the stash.
    Stash,
    /// In a bucket, on the client (tree top) or in storage.
    Bucket(BucketId),
}

/// Steps 2 to 5 of an access, over untrusted storage.
///
/// There are two kinds of accesses that nobody asked for:
/// - [`dummy`](Self::dummy) looks to storage like [`access`](Self::access). It is for whoever hides
///   *when* there are requests: a fixed rate, a fixed pattern.
/// - [`evict`](Self::evict) makes the stash smaller ahead of time. Storage may tell it from an access. It
///   is for whoever was refused with [`ErrorKind::StashFull`](crate::ErrorKind::StashFull).
pub trait Scheme {
    /// Capacity, block size, geometry, bounds. Public.
    fn config(&self) -> &TreeConfig;

    /// The stash. Secret.
    fn stash(&self) -> StashView<'_>;

    /// Starts to keep a histogram of the stash. Secret.
    fn record_stash_histogram(&mut self);

    /// Sets what runs before and after each path. It replaces the hook that was set before.
    fn set_step_hook(&mut self, hook: Box<dyn StepHook>);

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

    /// Tells storage that the paths to `leaves` will be read by coming accesses, in this order.
    fn announce(&mut self, leaves: &[Leaf]);

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

    /// Takes the block `address`, which is on the path to `from` or in the stash, out of the ORAM:
    /// copies it to `block`, which is as long as a block, and forgets it. A block that is nowhere is
    /// zeros. Answers whether it was somewhere.
    ///
    /// Storage sees what it sees of any access.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error>;

    /// An access to nothing, on a path that is drawn. Storage cannot tell it from
    /// [`access`](Self::access). The stash is no fuller after it, so it is not refused where the stash is
    /// over its bound.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen), and any that storage causes.
    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error>;

    /// Background eviction (Ren et al., ISCA'13): makes the stash smaller by what one eviction can push
    /// out of it. Storage sees it, and may tell it from an access.
    ///
    /// # Errors
    /// Any that storage causes.
    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error>;

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

    /// Takes the block `address` out of the ORAM, if the client finds it by its address, as in
    /// [`Self::serve_on_client`]: copies it to `block`, forgets it, and answers the leaf it was mapped
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

    /// Puts blocks of zeros into an ORAM that was never accessed: for each an address, which comes once,
    /// and the leaf it is mapped to. Storage sees every bucket written, in order.
    ///
    /// It takes client memory for the tags of the whole tree meanwhile: it is made for simulations.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) when this scheme cannot be filled at
    /// once; nothing was touched. [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) when there
    /// is no such address or leaf, [`ErrorKind::StashFull`](crate::ErrorKind::StashFull) when more blocks
    /// find no bucket than the stash may hold: the tree is too small. Then, and when storage fails, the ORAM
    /// is half full and broken.
    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error>;

    /// Reads the whole tree, and calls `visit` for each block with the leaf it is mapped to.
    /// Storage sees a scan.
    ///
    /// # Errors
    /// Any that storage causes.
    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error>;
}

/// Whatever scheme it is.
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
