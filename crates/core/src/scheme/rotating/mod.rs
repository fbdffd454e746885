//! Rotating RAW ORAM: RAW ORAM (Tiny ORAM, section IV) for storage that outlives the client.
//!
//! Three changes make RAW ORAM durable, authenticated and fresh:
//!
//! - **Accesses only read.** RAW ORAM's access-only access takes its block out of the bucket's
//!   header, and writes all headers of the path back. Here the copy stays, and is stale from then
//!   on. A copy counts only if the position map says that its block is live and mapped to the
//!   copy's leaf, and no other such copy is nearer to the root ([`LivePosMap`]). If the position
//!   map is in the tree itself, it cannot be consulted for every block of a path. In this case, the
//!   slots that accesses take blocks out of are marked (`taken`). A stale copy disappears when an
//!   eviction rewrites its bucket. Buckets receive blocks only in evictions, which drop everything
//!   that is not live, so the stash is as full as in RAW ORAM.
//! - **Evictions rotate.** An eviction writes to other places than it reads (`places`). Storage has
//!   `W` spare places on each level, so a saved state survives `W` more evictions. A client that
//!   crashed can roll back to this state.
//! - **Everything about a bucket follows from the number of evictions**: when it was last written,
//!   its place, and the name under which it is sealed ([`EraSealer`]). The client reads no counter
//!   from storage, so storage cannot lie about it.
//!
//! For each access, storage sees a read of one path, whose leaf is uniformly random and used once.
//! After every `A` accesses, it sees a read and a write of the next path of the fixed order.
//!
//! ADR 5 of the repository has the arguments.

mod client_state;
mod io;
mod places;
mod shapes;
mod stored;
mod taken;
mod verify;
mod visit;

use rand_core::CryptoRng;
use zeroize::Zeroize;

use super::client::Client;
use super::config::check_evict_period;
use super::{Op, RawConfig, TreeConfig};
use crate::error::{Error, ErrorKind};
use crate::geometry::{Leaf, reverse_lexicographic};
use crate::posmap::LivePosMap;
use crate::records::Records;
use crate::seal::{EraSealer, counter};
use crate::stash::{Entry, StashView};
use crate::store::BucketStore;
use io::RotatingIo;
use taken::TakenSlots;

pub use client_state::ClientLocation;
pub use io::RollbackProbe;
pub use shapes::RotatingTrees;
use shapes::check_shape;
pub(crate) use stored::{Run, StoredTree};
pub use taken::TakenSlot;

/// A planned access: the block's new leaf is drawn (step 1), and storage has seen nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The address of the block. Secret.
    pub address: u64,
    /// The present leaf of the block. Secret until the access shows it to storage.
    pub from: Leaf,
    /// The new leaf of the block. Secret.
    pub to: Leaf,
}

impl Zeroize for Move {
    fn zeroize(&mut self) {
        let Self { address, from: Leaf(from), to: Leaf(to) } = self;
        [address, from, to].into_iter().for_each(Zeroize::zeroize);
    }
}

impl Move {
    /// A dummy move. Its access shows `leaf` to storage.
    pub fn dummy(leaf: Leaf) -> Self {
        Self { address: Entry::DUMMY_ADDRESS, from: leaf, to: leaf }
    }

    /// Whether this move is a dummy.
    pub fn is_dummy(&self) -> bool {
        self.address == Entry::DUMMY_ADDRESS
    }
}

/// The backend of rotating RAW ORAM. It makes accesses and evictions for a front end, which has the
/// position map.
pub struct VersionedTree<S> {
    io: RotatingIo,
    store: S,
    client: Client,
    /// Marks of stale copies; `None` if the position map can tell which copies are stale.
    taken: Option<TakenSlots>,
    evict_period: u32,
    /// Accesses since the last eviction that was due. An early eviction does not reset this.
    accesses_since_eviction: u32,
    /// Number of evictions so far (G in the paper). Public.
    evictions: u64,
    /// The value of `evictions` in the last durable state, to which the client may return. Public.
    durable_evictions: u64,
    /// The first eviction that was not yet announced to storage. Public.
    evictions_announced: u64,
}

impl<S: BucketStore> VersionedTree<S> {
    /// Restores the ORAM after `evictions` evictions and `accesses_since_eviction` more accesses,
    /// without the blocks on the client, which
    /// [`restore_client_block`](crate::DurableRawOram::restore_client_block) restores.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], also if no ORAM of this configuration can be in such a state,
    /// and [`ErrorKind::StoreMismatch`].
    pub fn resume(
        config: &RawConfig,
        trees: RotatingTrees,
        sealer: EraSealer,
        store: S,
        (evictions, accesses_since_eviction): (u64, u32),
    ) -> Result<Self, Error> {
        check_evict_period(config.evict_period)?;
        let io = RotatingIo::new(config, trees, sealer, &store)?;
        if evictions < io.places.first_eviction() || accesses_since_eviction >= config.evict_period
        {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "the state is impossible for an ORAM of this configuration",
            ));
        }
        Ok(Self {
            io,
            store,
            client: Client::new(&config.tree, config.evict_period as usize)?,
            taken: None,
            evict_period: config.evict_period,
            accesses_since_eviction,
            evictions,
            durable_evictions: evictions,
            evictions_announced: evictions,
        })
    }

    /// The same backend, whose accesses mark the slots that they take blocks out of. A position map
    /// in the tree needs these marks. They are in the store's tree [`RotatingTrees::taken`], which
    /// must have the shape [`RawConfig::taken_shape`].
    ///
    /// # Errors
    /// [`ErrorKind::StoreMismatch`] if the tree has another shape.
    pub fn with_taken_marks(mut self) -> Result<Self, Error> {
        let tree = self.io.trees.taken;
        let TreeConfig { geometry, tree_top_levels, .. } = &self.client.config;
        let shape = TakenSlots::shape(geometry, *tree_top_levels);
        check_shape(&self.store, tree, &shape)?;
        self.taken = Some(TakenSlots::new(geometry, *tree_top_levels, tree));
        Ok(self)
    }

    /// The store, for callers that wrap it.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Ends the use of the backend and returns its store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The sealer of the tree's buckets.
    pub fn sealer(&self) -> &EraSealer {
        self.io.sealer()
    }

    /// The parameters of the tree. Public.
    pub fn config(&self) -> &TreeConfig {
        &self.client.config
    }

    /// The stash. Secret.
    pub fn stash(&self) -> StashView<'_> {
        StashView::new(&self.client.stash)
    }

    /// Starts to record a histogram of the number of blocks in the stash. Secret.
    pub fn record_stash_histogram(&mut self) {
        self.client.stash.occupancy_mut().start_histogram();
    }

    /// Number of evictions so far. A new tree starts at the number of leaves. Public.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Number of accesses since the last eviction that was due. An early eviction does not reset
    /// this number. Public.
    pub fn accesses_since_eviction(&self) -> u32 {
        self.accesses_since_eviction
    }

    /// Number of evictions that can be made without overwriting data of the last durable state.
    pub fn evictions_left(&self) -> u64 {
        self.durable_evictions + self.io.places.spare() - self.evictions
    }

    /// Number of accesses that can be made until an eviction beyond [`Self::evictions_left`] would
    /// be due.
    pub fn accesses_left(&self) -> u64 {
        let period = u64::from(self.evict_period);
        (self.evictions_left() + 1) * period - u64::from(self.accesses_since_eviction) - 1
    }

    /// Marks the present state as durable: the client will not return to an earlier state.
    /// Everything in storage must be durable.
    pub fn mark_durable(&mut self) {
        self.durable_evictions = self.evictions;
        // The last round of evictions has written all buckets. Keep the keys of the round before,
        // so that a diagnosis recognises its buckets if storage shows them again.
        let oldest = self.evictions.saturating_sub(self.recognised_evictions());
        self.io.sealer_mut().drop_before(oldest);
    }

    /// Number of most recent evictions whose keys are kept: twice the sum of the number of leaves
    /// and the number of spare places.
    fn recognised_evictions(&self) -> u64 {
        2 * (self.config().geometry.leaves() + self.io.places.spare())
    }

    /// Begins an era of the seal: from the next eviction on, everything is sealed under fresh keys.
    pub(crate) fn begin_era(&mut self, coins: &mut impl CryptoRng) {
        let next = self.evictions;
        self.io.sealer_mut().begin_era(next, coins);
    }

    /// Begins an era of the seal at a checkpoint, if one is due: see
    /// [`EraSealer::begin_era_if_due`].
    pub(crate) fn begin_era_at_checkpoint(&mut self, coins: &mut impl CryptoRng) {
        let (next, recognised) = (self.evictions, self.recognised_evictions());
        self.io.sealer_mut().begin_era_if_due(next, recognised, coins);
    }

    /// Looks in storage for eviction `g`, which this state has not made. If `g` was made, this
    /// state is older than storage. Reads buckets that `g` writes, until one authenticates.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`]; [`ErrorKind::Store`] or [`ErrorKind::Corrupt`] if no bucket gives
    /// an answer.
    pub fn probe_rollback(&mut self, g: u64) -> Result<RollbackProbe, Error> {
        self.client.check_not_broken()?;
        self.io.over(&mut self.store).probe_rollback(g)
    }

    /// Total number of evictions after `accesses` more accesses and `background` more early
    /// evictions.
    pub fn evictions_after(&self, accesses: u64, background: u64) -> u64 {
        let due = u64::from(self.accesses_since_eviction) + accesses;
        self.evictions + due / u64::from(self.evict_period) + background
    }

    /// The records of the store that holds the tree. Flushing them also makes the blocks durable.
    pub fn records(&mut self) -> Records<'_> {
        Records::new(&mut self.store, self.client.is_broken_mut())
    }

    /// Makes everything in storage durable.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], [`ErrorKind::Store`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.records().flush()
    }

    /// Checks that a burst of accesses can begin now: see
    /// [`Scheme::check_ready`](super::Scheme::check_ready).
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`] or [`ErrorKind::StashFull`].
    pub fn check_ready(&self) -> Result<(), Error> {
        self.client.check_ready(self.accesses_since_eviction as usize)
    }

    /// Checks that the stash has room for the blocks that `accesses` accesses leave in it. This
    /// succeeds for every part of a window if [`Self::check_ready`] succeeded before the window.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`] or [`ErrorKind::StashFull`].
    pub(crate) fn check_room(&self, accesses: usize) -> Result<(), Error> {
        self.client.check_room(accesses)
    }

    /// Announces to storage the pieces that a later access will read. The access shows `leaf`, and
    /// comes after `ahead` other accesses. If an eviction is due after this access, also announces
    /// the pieces that the eviction will read. If a bucket will be rewritten before it is read, its
    /// present place is announced.
    pub(crate) fn announce(&mut self, ahead: usize, leaf: Leaf) {
        self.io.over(&mut self.store).prefetch(self.evictions, leaf);
        let until_then = self.evictions_after(ahead as u64, 0);
        if self.evictions_after(ahead as u64 + 1, 0) > until_then {
            self.announce_eviction(until_then);
        }
    }

    /// Announces to storage the pieces that eviction `g` will read, unless they were announced
    /// before.
    fn announce_eviction(&mut self, g: u64) {
        if g < self.evictions_announced {
            return;
        }
        self.evictions_announced = g + 1;
        let leaf = self.evicted_by(g);
        let Self { io, store, taken, evictions, .. } = self;
        io.over(store).prefetch_eviction(*evictions, g, leaf, taken.as_ref());
    }

    /// The first half of an access: serves the block, and maps it to its new leaf. `was_live` says
    /// whether the block was live. Returns whether the block is live now. [`Self::finish`] is the
    /// second half.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if there are no [`Self::accesses_left`],
    /// [`ErrorKind::MustReopen`], and [`ErrorKind::StashFull`] if the stash has no room for a path,
    /// all before anything is touched; and any error of storage.
    pub(crate) fn access(
        &mut self,
        step: &Move,
        was_live: bool,
        op: &mut Op<'_>,
    ) -> Result<bool, Error> {
        self.bring_to_stash(step, was_live)?;
        // Tiny ORAM, Section II-A, steps 3 and 4: note the new leaf, then read or replace.
        self.client.serve(step.address, step.to, op);
        Ok(was_live || !matches!(op, Op::Read(_)))
    }

    /// The first half of an access that takes the block out of the ORAM. Copies its bytes to
    /// `block`, or zeros if it was not live.
    ///
    /// # Errors
    /// See [`Self::access`].
    pub(crate) fn take(
        &mut self,
        step: &Move,
        was_live: bool,
        block: &mut [u8],
    ) -> Result<(), Error> {
        self.bring_to_stash(step, was_live)?;
        self.client.serve(step.address, step.to, &mut Op::Read(block));
        self.client.take_out(step.address);
        Ok(())
    }

    /// The first half of a dummy access. Storage cannot distinguish it from other accesses.
    ///
    /// # Errors
    /// See [`Self::access`].
    pub(crate) fn access_dummy(&mut self, leaf: Leaf) -> Result<(), Error> {
        self.begin_access()?;
        let place = self.client.blocks.take();
        let block = self.client.blocks.get_mut(place);
        self.io.over(&mut self.store).read_block(self.evictions, leaf, None, block)?;
        self.client.blocks.free(place);
        Ok(())
    }

    /// Puts a block that is nowhere in the ORAM into the stash, between the halves of an access.
    ///
    /// # Errors
    /// [`ErrorKind::StashFull`], which leaves the client broken.
    pub(crate) fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        if self.client.restore_client_block(ClientLocation::Stash, address, leaf, block) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::StashFull, "the stash has no room for a block put back"))
        }
    }

    /// The second half of an access: makes the eviction, if one is due. `map` says which copies
    /// count, unless taken slots are marked.
    ///
    /// # Errors
    /// Any error of storage.
    pub(crate) fn finish(&mut self, map: Option<&LivePosMap>) -> Result<(), Error> {
        self.accesses_since_eviction += 1;
        // Tiny ORAM, Section IV-A: one EO access after every A AO accesses.
        match self.evict_period - self.accesses_since_eviction {
            0 => {
                self.evict_only(map)?;
                self.accesses_since_eviction = 0;
            }
            // The eviction after the next access is no secret: storage may fetch its path already.
            1 => self.announce_eviction(self.evictions),
            _ => (),
        }
        self.client.end();
        Ok(())
    }

    /// Applies `op` to the block `address`, if the client finds it by its address: see
    /// [`Scheme::serve_on_client`](super::Scheme::serve_on_client). This makes no [`Move`] that
    /// could be logged, so a client that must survive a crash logs the operation itself.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`].
    pub(crate) fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.client.serve_in_place(address, op)
    }

    /// Makes the next eviction early, so that the stash shrinks. Storage sees this eviction. `map`
    /// says which copies count, as in [`Self::finish`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] before anything is touched, if there are no
    /// [`Self::evictions_left`]; otherwise see [`Self::access`].
    pub(crate) fn background_evict(&mut self, map: Option<&LivePosMap>) -> Result<(), Error> {
        if self.evictions_left() == 0 {
            return Err(invalid("too many evictions since the last checkpoint: make one first"));
        }
        self.client.begin()?;
        self.evict_only(map)?;
        self.client.end();
        Ok(())
    }

    fn begin_access(&mut self) -> Result<(), Error> {
        if self.accesses_left() == 0 {
            return Err(invalid("too many accesses since the last checkpoint: make one first"));
        }
        self.client.begin()
    }

    /// Moves the wanted block, and no other, to the stash. If the block was not live, drops a stale
    /// copy from the client, and marks one in storage as taken if slots are marked.
    fn bring_to_stash(&mut self, step: &Move, was_live: bool) -> Result<(), Error> {
        self.begin_access()?;
        let Self { io, store, client, taken, evictions, .. } = self;
        let Move { address, from, to } = *step;
        if let Some(entry) = client.top.take(from, address) {
            client.stash.insert(entry);
        }
        if !was_live {
            client.take_out(address);
        }
        let must_be_in_storage = was_live && client.stash.find(address).is_none();
        // If the position map is on the client, it says that every copy of a block that is not live
        // is stale. So no copy is searched for.
        let is_wanted = must_be_in_storage || !was_live && taken.is_some();
        let place = client.blocks.take();
        let block = client.blocks.get_mut(place);
        let wanted = is_wanted.then_some(address);
        // Tiny ORAM, Section IV-A: an AO access moves only the requested block to the stash.
        let found = io.over(store).read_block(*evictions, from, wanted, block)?;
        if let (Some((bucket, slot)), Some(taken)) = (found, taken) {
            taken.take(bucket, slot);
        }
        if found.is_some() && was_live {
            client.stash.insert(Entry { address, leaf: to, place });
        } else {
            client.blocks.free(place);
        }
        if must_be_in_storage && found.is_none() {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a block is not on the path it is mapped to: the client's state does not belong to \
                 this store",
            ));
        }
        Ok(())
    }

    /// The leaf of eviction `g`. Public.
    fn evicted_by(&self, g: u64) -> Leaf {
        // Tiny ORAM, Section IV-A: the leaf is G mod 2^L (Fig. 5).
        reverse_lexicographic(g, self.client.config.geometry.leaf_level())
    }

    /// An eviction (EO access): reads the next path of the reverse-lexicographic order into the
    /// stash, without stale copies, and writes it back, to other places.
    fn evict_only(&mut self, map: Option<&LivePosMap>) -> Result<(), Error> {
        let leaf = self.evicted_by(self.evictions);
        let Self { io, store, client, taken, evictions, .. } = self;
        let next_evictions = evictions.checked_add(1).ok_or_else(counter::exhausted)?;
        let Client { stash, blocks, top, .. } = client;
        // Tiny ORAM, Section IV-A: an EO access reads the next path into the stash.
        top.load(leaf, stash);
        let mut trips = io.over(store);
        trips.open_path(*evictions, leaf, blocks, taken.as_mut(), &mut |entry| {
            let counts = map.is_none_or(|map| map.is_live_at(entry.address, entry.leaf));
            if counts && stash.find(entry.address).is_none() {
                stash.insert(entry);
            }
        })?;
        // Tiny ORAM, Section IV-A: then it evicts to this path (Alg. 1).
        client.plan_path(leaf);
        trips.seal_path(*evictions, client.plan(), &client.blocks, taken.as_mut())?;
        client.complete_path(leaf);
        *evictions = next_evictions;
        Ok(())
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
