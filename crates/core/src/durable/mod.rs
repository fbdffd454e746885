//! Schemes for storage that outlives the client.
//!
//! A [`Durable`] scheme does in two steps what an [`Oram`](crate::Oram) does in one. [`Durable::plan`] draws what
//! accesses will show, and shows nothing; [`Durable::carry_out`] makes them. Whoever wants to survive a crash writes
//! the [`Plan`] down in between: carried out again from the same state, it shows storage the same. That is the commit
//! protocol of `docs/adr/0005-commit-protocol.md`, which so stands on any scheme.
//!
//! ```text
//! opening:   DurableScheme ─ decode ─► DurableConfig ─ restore ─► Restore ─ finish ─► Durable
//! an access:      plan ─► (written down) ─► carry_out
//! a checkpoint:   flush ─► begin_era ─► save ─► (durable) ─► settle
//! ```
//!
//! Plans and saved states are *sections*: bytes that only the scheme reads, and whose form it can change alone. They
//! hold secrets, and are sealed by whoever keeps them.
//!
//! # Adding a scheme
//! 1. Write a folder like [`scan`], which has everything that a scheme is: a configuration with its one encoding
//!    ([`DurableConfig`]), how it is planned and decoded ([`DurableScheme`]), how a state comes back ([`Restore`]), and
//!    the accesses ([`Durable`]).
//! 2. Storage must never be overwritten where a state needs it that the client may go back to: write round a ring of
//!    places, and say with [`Room`] how many accesses are left. Whatever is written follows from a count; so do its name
//!    and version under the [seal](crate::EraSealer).
//! 3. Add it to the table of schemes of the volume (`oblivio_volume::schemes`). `create --scheme NAME`, `plan`, `info`,
//!    servers, mounts and rescues need nothing else.
//! 4. Give it a small volume in the crash world of testkit (`SmallVolume::scheme`): the crash suite and the privacy
//!    tests of volumes then run over it.

mod bits;
mod config;
mod plan;
pub mod rotating;
mod salvage;
pub mod scan;
mod section;
mod wish;

use std::ops::Range;

use rand_core::CryptoRng;

pub(crate) use bits::Bits;
pub use config::{
    Cost, DurableConfig, DurableScheme, Fact, FactValue, Restore, SectionSize, StateSize,
};
pub use plan::{Plan, Want};
pub use salvage::{Fate, Salvage};
pub use wish::{Slots, Wish};

use crate::error::Error;
use crate::scheme::{Op, Sighting};
use crate::store::BucketStore;

/// A store whose kind a scheme does not know.
pub type AnyStore = Box<dyn BucketStore + Send>;

/// Room for accesses, before whoever uses the scheme has to do something first. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Accesses until the state that the client could go back to would be destroyed. With none left, a checkpoint
    /// comes first.
    pub accesses: u64,
    /// [Evictions](Durable::evict) until then.
    pub evictions: u64,
    /// An eviction comes first: the stash is over its bound.
    pub must_evict: bool,
}

/// When an era of the seal begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraStart {
    /// With an opening: what is written from here on is not what was lost.
    Opening,
    /// With a checkpoint. A scheme that would have to keep very many eras begins one at every n-th.
    Checkpoint,
}

/// What of a state is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// All of it: nothing that came before is known to whoever reads it.
    Whole,
    /// What does not follow from the state saved before and the plans carried out since.
    Changes,
}

/// An array of blocks over a store that outlives the client: see [the module](self).
///
/// Addresses of blocks go from 0 to the number of blocks less one. A position map may lie among the blocks of the
/// scheme itself; then the *positions* of a block, which have numbers of their own, have to be on the client before it
/// can be accessed.
///
/// After any error but [`InvalidRequest`](crate::ErrorKind::InvalidRequest) and
/// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) it answers nothing more.
pub trait Durable: Send {
    /// How many blocks (N). Public.
    fn blocks(&self) -> u64;

    /// Bytes of a block. Public.
    fn block_bytes(&self) -> usize;

    /// Bytes of client memory for the position map.
    fn position_map_bytes(&self) -> usize;

    /// Buckets in storage. Public.
    fn buckets_in_storage(&self) -> u64;

    /// The store.
    fn store_mut(&mut self) -> &mut (dyn BucketStore + Send);

    /// Ends the use of the scheme, and hands back its store.
    fn into_store(self: Box<Self>) -> AnyStore;

    // ───────────────────────────── before accesses ─────────────────────────────

    /// What has to come first.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen).
    fn room(&self) -> Result<Room, Error>;

    /// How many accesses can be planned together, whatever positions they need. Public.
    fn window_accesses_max(&self) -> usize;

    /// How many levels of positions are not on the client: the most accesses that come before one. Public.
    fn position_levels(&self) -> usize {
        0
    }

    /// The positions to be fetched before these blocks can be accessed, each once. There may be more to fetch after
    /// them.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for an address past the end.
    fn needs(&self, addresses: &[u64]) -> Result<Vec<u64>, Error>;

    /// The same before a range can be forgotten.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for a range that goes past the end.
    fn needs_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error>;

    /// Whether a position is on the client. Secret.
    fn holds_position(&self, _position: u64) -> bool {
        false
    }

    // ───────────────────────────── accesses ─────────────────────────────

    /// Draws what accesses to come will show, in this order. Nothing is changed, and nothing is shown.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for what is past the end, or [needs](Self::needs)
    /// something.
    fn plan(&mut self, wanted: &[Want], coins: &mut dyn CryptoRng) -> Result<Plan, Error>;

    /// The block of each access of a plan; `None` where it is none.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it is no plan of this scheme.
    fn blocks_of(&self, plan: &Plan) -> Result<Vec<Option<u64>>, Error>;

    /// Makes the accesses of a plan, one for each of `ops`. The operation on what is no block is not looked at.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) before anything is touched, when there is no
    /// [`Self::room`] or they do not match, or the plan does not start from this state; and any that storage causes.
    fn carry_out(&mut self, plan: &Plan, ops: &mut [Op<'_>]) -> Result<(), Error>;

    /// Makes the next eviction ahead of its time, so that the stash shrinks. Storage sees it.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when there is no [`Self::room`], or nothing to evict in
    /// this scheme; and any that storage causes.
    fn evict(&mut self) -> Result<(), Error>;

    /// Applies `op` to a block where it is, if the client finds it by its address. Answers whether it did. Storage
    /// sees nothing; by the access that does not come it learns what
    /// [`HitPolicy::Serve`](crate::HitPolicy::Serve) says.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest), [`MustReopen`](crate::ErrorKind::MustReopen).
    fn serve_on_client(&mut self, _address: u64, _op: &mut Op<'_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Says that the blocks of a range have no contents any more: they read as zeros. Storage sees nothing.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for a range that goes past the end, or
    /// [needs](Self::needs_to_forget) something.
    fn forget(&mut self, range: Range<u64>) -> Result<(), Error>;

    /// Whether some block may have contents. Secret.
    fn may_hold_contents(&self) -> bool;

    // ───────────────────────────── states ─────────────────────────────

    /// Returns once everything in storage is durable.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), [`Store`](crate::ErrorKind::Store).
    fn flush(&mut self) -> Result<(), Error>;

    /// Begins an era of the seal: from the next write on, everything is sealed under fresh keys.
    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng);

    /// Hands the state to `out`, section by section.
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8]));

    /// Puts back what a section of the latest state says of the client's blocks, once it is [finished](Restore).
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when that cannot have been on this client.
    fn bring_back(&mut self, section: &[u8]) -> Result<(), Error>;

    /// What was saved last is durable, and so is what is in storage: the client will go back to no state before it.
    fn settle(&mut self);

    /// What storage shows of the first write after so many more accesses and [evictions](Self::evict): if it was made,
    /// this state and they are older than storage. Nothing is changed.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), and any that storage causes.
    fn sight(&mut self, accesses: u64, evictions: u64) -> Result<Sighting, Error>;

    // ───────────────────────────── all of storage ─────────────────────────────

    /// Reads all of storage, and checks that it is what was written last and that every block is there. `progress` is
    /// told how many of [`Self::buckets_in_storage`] have been read. Returns how many blocks hold something.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for the first thing that is not as it was left.
    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error>;

    /// Reads all of storage, and hands over each block of which an authentic copy is found, the better one last if
    /// there are two. `damaged` is told of what cannot be read or is not what was written. Nothing is changed.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen). Damage is none.
    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error>;

    /// What became of a block.
    fn fate(&self, salvage: &Salvage, address: u64) -> Fate;
}
