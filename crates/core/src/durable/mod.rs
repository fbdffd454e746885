//! Schemes for storage that outlives the client.
//!
//! A [`Durable`] scheme does in two steps what an [`Oram`](crate::Oram) does in one. [`Durable::plan`] draws what
//! accesses will show, and shows nothing; [`Durable::carry_out`] makes them. Whoever wants to survive a crash writes
//! the [`AccessPlan`] down in between: carried out again from the same state, it shows storage the same. That is the commit
//! protocol of ADR 5 of the repository, which so stands on any scheme.
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
//! A scheme is a folder and three lines; its tests are a module and a few lines more.
//!
//! | step | where | what |
//! |---:|---|---|
//! | 1 | `crates/core/src/durable/NAME/` | the scheme. [`scan`] has everything that one is, in five files; begin with a copy |
//! | 2 | `crates/core/src/durable/mod.rs` | `pub mod NAME;` |
//! | 3 | `crates/volume/src/schemes.rs` | its place in `SCHEMES`, and the `use` before it. From here on `create --scheme NAME`, `plan`, `info`, `check`, servers, mounts and rescues have it, and the help of the program names it |
//! | 4 | `crates/testkit/src/crash/small_volume.rs` | a variant of `SmallScheme`, also in `EACH`, whose length grows by one, in the order of `SCHEMES`; the compiler points at the two `match`es |
//! | 5 | `crates/crash-suite/src/setups.rs` | setups of the crash suite: one as it is, one with `Device::Raw` and `SyncMoves::AtFlush`, one scheduled. If it needs servers, its setups are beside those of `shares` |
//! | 6 | `crates/volume/tests/volume/NAME.rs` | what storage sees of it and nobody else tests; `scan.rs` beside it is the example. `mod NAME;` in `main.rs` there: without it no test runs, and nothing fails. A line in the list of `state_room.rs` there |
//! | 7 | `crates/planted-leaks/leaks/` | for each test of step 6 that looks for a leak, a patch and a row of `leaks.toml` |
//! | 8 | `fuzz/fuzz_targets/volume.rs`, `state_file.rs` | a volume of it that lies are told of, and its sections; the number that picks among the volumes grows by one |
//! | 9 | `docs/format.md`, `docs/threat-model.md` | its parameters, buckets, state and plans as bytes; what storage learns |
//!
//! A scheme may be in a crate of its own, as `oblivio_shares::durable`, which needs [servers](DurableScheme::needs_servers) that compute: steps 4, 5 and 8 are for schemes that can stand on any store.
//!
//! # What a scheme has to get right
//! - **Never overwrite what a state needs.** A client that crashed goes back to the state of its last
//!   [`settle`](Durable::settle), and makes the same accesses again. So write to places that this state does not read:
//!   round a ring, or to one copy of two in turn. [`Room`] says how many accesses are left; one is enough to work, with
//!   a checkpoint before each access.
//! - **One count for everything.** Place, name and version of what is written follow from one count, which a state
//!   saves. The seal calls it `eviction`, and it counts whatever is sealed under it: a name is sealed once in an era,
//!   and a `BucketName` has no place in it. An access that writes many buckets takes a number for each, or a level for
//!   each.
//! - **Eras are of that count**, too: `first_eviction` of an [`Era`](crate::seal::Era), what `forget_before` is told,
//!   and both numbers of `eras_max`. Keep the eras of two rounds, because [`sight`](Durable::sight) looks for what was
//!   in a place before. Eras can begin only where an access does: where an access takes many numbers, give `eras_max`
//!   accesses. A bound that is too large loses nothing, but `plan` tells people to keep as much room.
//! - **One [`write`](crate::store::BucketStore::write) is one trip.** It calls its closure once, with blanks for all
//!   pieces: seal each of them, piece `i` with `BucketPieces { head: i, .. }`, and call `sealed` at the end. It panics
//!   if a blank is left. [`scan`] writes one piece at a time; `crates/core/src/scheme/rotating/io.rs` writes many.
//! - **A store that was never written reads as zeros**, which nothing opens. What was never written follows from the
//!   count: leave it out, or know it for zeros.
//! - **A padded state has one length.** Storage sees how long it takes to save one. So [`Save::WholePadded`] is as long as the longest
//!   state: sections that say nothing fill it up.
//! - **Forgotten blocks read as zeros**, also after they were read from storage: keep which blocks have contents.
//! - **Parameters come from anyone**: [`decode`](DurableScheme::decode) checks them before it computes with them, and
//!   has one encoding for each configuration. Sections are this client's own; they are checked all the same, with
//!   `section::Fields`.
//! - **Break before the first trip, mend after the last.** An error in between leaves the scheme answering
//!   [`MustReopen`](crate::ErrorKind::MustReopen).
//!
//! # What each method shows
//! | method | storage may learn | it must not depend on |
//! |---|---|---|
//! | [`plan`](Durable::plan), [`forget`](Durable::forget), [`save`](Durable::save), [`bring_back`](Durable::bring_back), [`serve_on_client`](Durable::serve_on_client) | nothing: they make no trip and no prefetch. What is served on the client is an access that does not come | |
//! | [`load`](Durable::load) | that there is data, and how large the array is | which blocks have data, and what it is |
//! | [`carry_out`](Durable::carry_out), [`announce`](Durable::announce) | how many accesses, and what the plan drew to be shown | address, read or write, whether there is a block at all ([`Want::Nothing`]), whether it has contents, where it was found. Whether and when an access fails may not either |
//! | [`room`](Durable::room), [`evict`](Durable::evict) | that they are needed | addresses, as far as the scheme can: what remains stands in the threat model |
//! | [`needs`](Durable::needs), [`position_levels`](Durable::position_levels) | nothing by themselves; the accesses to positions are seen | |
//! | [`flush`](Durable::flush), [`begin_era`](Durable::begin_era), [`settle`](Durable::settle), [`sight`](Durable::sight), [`check_storage`](Durable::check_storage) | the count of accesses | anything else |
//! | [`check`](Durable::check), [`salvage`](Durable::salvage) | that all is read, in an order that follows from the count; going on after damage | which blocks there are |
//!
//! What [`StateSize`] says is public. No section may be longer than it says.
//!
//! # Tests, and what they find
//! | command | it finds |
//! |---|---|
//! | `cargo test -p oblivio-testkit` | a scheme of the table without a small volume (`every_scheme_of_volumes_has_a_small_volume`) or without crash setups (`every_scheme_is_tried`) |
//! | `cargo test -p oblivio-volume --lib` | a name that does not fit in a superblock; copies of a client that draw alike |
//! | `cargo test -p oblivio-volume --test volume schedule` | a client whose trips look unlike those of others: dummies, hits, trims, an extra trip for what is wanted. It does not compare which bucket of a level: that is for step 6, to the piece where nothing is drawn, with statistics where leaves are |
//! | the same, `going_back`, `view`, `privacy::restored`, `crash` | an old directory that opens; a name that is sealed twice under one key; a [`sight`](Durable::sight) that takes an honest power loss for tampering |
//! | the same, `state_room` | a [`StateSize`] that is too small, or eight times too large |
//! | the same, `padding` | a padded state whose length says what it holds |
//! | `cargo run --release -p oblivio-crash-suite -- --points 3000 --seeds 1` | lost writes, torn checkpoints, states overwritten too early |
//! | the tests of step 6, and `cargo run -p oblivio-planted-leaks -- --list`, then `--only LEAK` for each | what only this scheme could show; that the tests would see it |
//! | `cargo test -p oblivio-architecture` | a volume that names the scheme outside of its table |
//!
//! `create --size 256K --scheme NAME`, `serve nbd --run 'nbdcopy image "$uri"'` and `check` need a minute more. A
//! `check` of a volume that was never written reads little, and proves little.

mod bits;
mod config;
mod contents;
mod plan;
mod policy;
pub mod range;
pub mod rotating;
mod salvage;
pub mod scan;
pub mod section;
mod store;
mod wish;
mod wrong_servers;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use rand_core::CryptoRng;

pub use bits::Bits;
pub use config::{
    Cost, DurableConfig, DurableScheme, Fact, FactValue, Restore, SectionSize, StateSize, number_of,
};
pub use contents::Contents;
pub use plan::{AccessPlan, EncodedPlan, Want};
pub use policy::RangePolicy;
pub use salvage::{Fate, Salvage};
pub use store::{AnyStore, VolumeStore};
pub use wish::{Slots, Wish};
pub use wrong_servers::WrongServers;

use crate::error::{Error, ErrorKind};
use crate::scheme::{Op, Sighting};
use crate::store::BucketStore;

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

/// How full a stash is. Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StashFill {
    /// Blocks in it.
    pub blocks: u64,
    /// With more, an eviction comes before the next access.
    pub blocks_max: u64,
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
    /// All of it, and padding: as many bytes in as many sections whatever blocks there are and wherever they are.
    /// Where storage sees how long it takes to save a state, nothing else hides what is in it.
    WholePadded,
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

    /// How many of them were ever written, and are to be read if all of storage is. Public: it follows from how many
    /// accesses and evictions there were. The client counts them, so storage cannot call a bucket unwritten that was written.
    fn buckets_written(&self) -> u64;

    /// How full the stash is. Secret. `None` of a scheme that has none, or does not tell.
    fn stash_fill(&self) -> Option<StashFill> {
        None
    }

    /// The store.
    fn store_mut(&mut self) -> &mut (dyn BucketStore + Send);

    /// Ends the use of the scheme, and hands back its store.
    fn into_store(self: Box<Self>) -> AnyStore;

    /// For which `i` aligned ranges of `2^i` blocks can be accessed at once, ascending; the first is 0. Public.
    fn range_classes(&self) -> &[u8] {
        &[0]
    }

    /// Which of them a disk asks for. Public.
    fn range_policy(&self) -> RangePolicy {
        RangePolicy::Classes
    }

    /// Puts data into an array of which nothing was used, in another way than by accesses. Answers whether there is one, which is public: otherwise nothing was
    /// done. It is durable when the array is flushed and its state saved.
    ///
    /// # Errors
    /// Those of `contents`, and any that storage causes. The array is worth nothing then.
    fn load(
        &mut self,
        _contents: &mut dyn Contents,
        _coins: &mut dyn CryptoRng,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Hands over the list of servers that have answered wrong. A scheme on servers lets none of
    /// them deal, and adds those that it finds before it would have used them.
    fn keep_wrong_servers(&mut self, _list: Box<dyn WrongServers>) {}

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
    /// them. None, where all positions are on the client.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for an address past the end.
    fn needs(&self, addresses: &[u64]) -> Result<Vec<u64>, Error> {
        if addresses.iter().all(|address| *address < self.blocks()) {
            Ok(Vec::new())
        } else {
            Err(Error::new(ErrorKind::InvalidRequest, "the address is past the end"))
        }
    }

    /// The same before a range can be forgotten.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for a range that goes past the end.
    fn needs_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        section::check_range(&range, self.blocks()).map(|()| Vec::new())
    }

    /// Whether a position is on the client. Secret.
    fn holds_position(&self, _position: u64) -> bool {
        false
    }

    /// Asks storage whether it is where accesses need it, so that an opening fails and not the first of them. Nothing is changed.
    ///
    /// # Errors
    /// Any that the first access would meet before it shows anything.
    fn check_storage(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Explains records or blocks that are older than the state that is kept, where storage knows
    /// more than these. It may be open to read only, and nothing is changed. Any other fault of
    /// storage is no error here.
    ///
    /// # Errors
    /// [`StoreRolledBack`](crate::ErrorKind::StoreRolledBack) if a part of storage was set back,
    /// which it names. [`Unreachable`](crate::StoreErrorKind::Unreachable) if a part does not
    /// answer that may have the newer records.
    fn check_not_set_back(&mut self) -> Result<(), Error> {
        Ok(())
    }

    // ───────────────────────────── accesses ─────────────────────────────

    /// Draws what accesses to come will show, in this order. They come after those that were `planned` and not carried
    /// out yet: all together, no more than [`Self::window_accesses_max`] accesses. Nothing is changed, and nothing is
    /// shown.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) for what is past the end, or [needs](Self::needs)
    /// something; also when there are [`Self::position_levels`] and something is planned, which may move positions.
    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        coins: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error>;

    /// The plan that the journal has kept: it is carried out again during recovery.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when this scheme did not encode it.
    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error>;

    /// The block of each access of a plan; `None` where it is none.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it is no plan of this scheme.
    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error>;

    /// Tells storage what a plan will read, so that it can be read ahead. Plans are announced in the order in which they
    /// are carried out. One that was not announced is announced when it is carried out: this is for those that wait
    /// for others.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when it is no plan of this scheme.
    fn announce(&mut self, _plan: &AccessPlan) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the accesses of a plan, one for each of `ops`; those of a range count one by one. The operation on what is no
    /// block is not looked at.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) before anything is touched, when there is no
    /// [`Self::room`] or they do not match, or the plan does not start from this state; and any that storage causes.
    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error>;

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

    /// Hands the state to `out`, section by section. What it writes as [`Save::WholePadded`] follows in number and bytes
    /// from the parameters and the counts of accesses, [evictions](Self::evict), openings and checkpoints alone.
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

    /// Reads all of storage that was ever written, and checks that it is what was written last and that every block is there.
    /// `progress` is told how many of [`Self::buckets_written`] have been read. Returns how many blocks hold something.
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
