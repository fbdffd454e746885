//! Rotating RAW ORAM: RAW ORAM (Tiny ORAM, section IV) for storage that outlives the client.
//!
//! Three changes make RAW ORAM durable, authenticated and fresh, at no cost in storage:
//!
//! - **Accesses only read.** RAW ORAM's access-only access takes its block out of the bucket's header
//!   and writes all headers of the path back. Here the copy stays, and is a thing of the past from
//!   then on: a copy counts only if the position map says that its block is alive and mapped to the
//!   copy's leaf, and it is nearer the root than any other such copy ([`LivePosMap`]). A position map
//!   that lies in the tree itself cannot be asked about every block of a path; then the slots that
//!   were taken are noted down (`taken`). The next eviction of its path drops such a copy. Buckets receive blocks in evictions alone, in which everything
//!   that is not alive makes room, so the stash is that of RAW ORAM.
//! - **Evictions rotate.** An eviction writes beside what it read (`places`): a state outlives
//!   `W` more evictions, so that a client that crashed can go back to it.
//! - **Everything about a bucket follows from the number of evictions**: when it was last written,
//!   where it is, under which name it is sealed ([`EraSealer`]). There is no counter in storage that
//!   could lie.
//!
//! Storage sees, for each access, the reading of one uniformly random path, each leaf once; and
//! after each `A` of them, the reading and writing of the next path of the fixed order.
//!
//! The argument for each is in ADR 5 of the repository.

mod io;
mod kept;
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

pub use io::RollbackProbe;
pub use kept::Home;
pub use shapes::RotatingTrees;
use shapes::check_shape;
pub(crate) use stored::{Run, StoredTree};
pub use taken::TakenSlot;

/// An access that is about to happen: step 1 of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The block. Secret.
    pub address: u64,
    /// The leaf it is mapped to, which the access shows. Secret until then.
    pub from: Leaf,
    /// The leaf it will be mapped to. Secret.
    pub to: Leaf,
}

impl Zeroize for Move {
    fn zeroize(&mut self) {
        let Self { address, from: Leaf(from), to: Leaf(to) } = self;
        [address, from, to].into_iter().for_each(Zeroize::zeroize);
    }
}

impl Move {
    /// A move of no block, which shows `leaf`.
    pub fn of_nothing(leaf: Leaf) -> Self {
        Self { address: Entry::DUMMY_ADDRESS, from: leaf, to: leaf }
    }

    /// Whether it moves no block.
    pub fn is_of_nothing(&self) -> bool {
        self.address == Entry::DUMMY_ADDRESS
    }
}

/// The rotating backend.
pub struct RotatingScheme<S> {
    io: RotatingIo,
    store: S,
    client: Client,
    /// Which copies are of the past, where the position map cannot say so of all.
    taken: Option<TakenSlots>,
    evict_period: u32,
    /// AO accesses since the last EO access.
    accesses_since_eviction: u32,
    /// G of the paper. Public.
    evictions: u64,
    /// G of the state that the client could go back to. Public.
    kept_evictions: u64,
    /// Storage was told what the evictions before this one read. Public.
    evictions_announced: u64,
}

impl<S: BucketStore> RotatingScheme<S> {
    /// The ORAM as it was after `evictions` evictions and `accesses_since_eviction` accesses, but
    /// for the blocks on the client, which
    /// [`RotatingOram::restore_client_block`](crate::RotatingOram::restore_client_block) restores.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], also when there was no such state, and
    /// [`ErrorKind::StoreMismatch`].
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
                "no ORAM of this configuration was ever in this state",
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
            kept_evictions: evictions,
            evictions_announced: evictions,
        })
    }

    /// The same, for a position map that lies in the tree: slots that accesses take blocks out of are
    /// noted down in the store's tree [`RotatingTrees::taken`], which has the shape
    /// [`RawConfig::taken_shape`].
    ///
    /// # Errors
    /// [`ErrorKind::StoreMismatch`] when it has not.
    pub fn noting_taken_slots(mut self) -> Result<Self, Error> {
        let tree = self.io.trees.taken;
        let TreeConfig { geometry, tree_top_levels, .. } = &self.client.config;
        let shape = TakenSlots::shape(geometry, *tree_top_levels);
        check_shape(&self.store, tree, &shape)?;
        self.taken = Some(TakenSlots::new(geometry, *tree_top_levels, tree));
        Ok(self)
    }

    /// The store, for whoever wraps it.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Ends the use of the backend, and hands back its store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The seal.
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

    /// Starts to keep a histogram of the stash. Secret.
    pub fn record_stash_histogram(&mut self) {
        self.client.stash.occupancy_mut().start_histogram();
    }

    /// Evictions so far, those that a new tree starts with included. Public.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Accesses since the last eviction. Public.
    pub fn accesses_since_eviction(&self) -> u32 {
        self.accesses_since_eviction
    }

    /// The evictions that can still be made before the state that the client could go back to is
    /// destroyed.
    pub fn evictions_left(&self) -> u64 {
        self.kept_evictions + self.io.places.spare() - self.evictions
    }

    /// The accesses that can still be made before that: see [`Self::evictions_left`].
    pub fn accesses_left(&self) -> u64 {
        let period = u64::from(self.evict_period);
        (self.evictions_left() + 1) * period - u64::from(self.accesses_since_eviction) - 1
    }

    /// From now on the client could go back to the state as it is, and to none before it. What is in
    /// storage must be durable by now.
    pub fn keep_state(&mut self) {
        self.kept_evictions = self.evictions;
        // All buckets have been written since a round ago. What the round before wrote is still
        // recognised, if storage shows it again.
        let oldest = self.evictions.saturating_sub(self.recognised_evictions());
        self.io.sealer_mut().forget_before(oldest);
    }

    /// Evictions of two rounds.
    fn recognised_evictions(&self) -> u64 {
        2 * (self.config().geometry.leaves() + self.io.places.spare())
    }

    /// Begins an era of the seal: from the next eviction on, everything is sealed under fresh keys.
    pub(crate) fn begin_era(&mut self, coins: &mut impl CryptoRng) {
        let next = self.evictions;
        self.io.sealer_mut().begin_era(next, coins);
    }

    /// The same at a checkpoint: see [`EraSealer::begin_era_unless_young`].
    pub(crate) fn begin_era_at_checkpoint(&mut self, coins: &mut impl CryptoRng) {
        let (next, recognised) = (self.evictions, self.recognised_evictions());
        self.io.sealer_mut().begin_era_unless_young(next, recognised, coins);
    }

    /// What storage shows of eviction `g`, the next one or one to come: if it was made, this state is older
    /// than storage. Reads a bucket that `g` writes, and another as long as none authenticates.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`]; [`ErrorKind::Store`] or [`ErrorKind::Corrupt`] if no other bucket tells.
    pub fn probe_rollback(&mut self, g: u64) -> Result<RollbackProbe, Error> {
        self.client.check_sound()?;
        self.io.over(&mut self.store).probe_rollback(g)
    }

    /// How many evictions there will have been after `accesses` more accesses and `background` evictions
    /// ahead of their time.
    pub fn evictions_after(&self, accesses: u64, background: u64) -> u64 {
        let due = u64::from(self.accesses_since_eviction) + accesses;
        self.evictions + due / u64::from(self.evict_period) + background
    }

    /// The records beside the blocks. Their flush makes the blocks durable, too.
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

    /// Whether a window of accesses can be begun now: see
    /// [`Scheme::check_ready`](super::Scheme::check_ready).
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`] or [`ErrorKind::StashFull`].
    pub fn check_ready(&self) -> Result<(), Error> {
        self.client.check_ready(self.accesses_since_eviction as usize)
    }

    /// Whether the stash has room for what so many accesses leave in it. It has, for a window that was begun when
    /// [`Self::check_ready`] allowed it, whatever windows it was divided into.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`] or [`ErrorKind::StashFull`].
    pub(crate) fn check_room(&self, accesses: usize) -> Result<(), Error> {
        self.client.check_room(accesses)
    }

    /// Tells storage what the access will read that shows `leaf` and comes after `ahead` others, and what the eviction behind
    /// it will, if one is due. Buckets that are written until then are announced where they are now.
    pub(crate) fn announce(&mut self, ahead: usize, leaf: Leaf) {
        self.io.over(&mut self.store).prefetch(self.evictions, leaf);
        let until_then = self.evictions_after(ahead as u64, 0);
        if self.evictions_after(ahead as u64 + 1, 0) > until_then {
            self.announce_eviction(until_then);
        }
    }

    /// Tells storage what eviction `g` will read, unless it was told before.
    fn announce_eviction(&mut self, g: u64) {
        if g < self.evictions_announced {
            return;
        }
        self.evictions_announced = g + 1;
        let leaf = self.evicted_by(g);
        let Self { io, store, taken, evictions, .. } = self;
        io.over(store).prefetch_eviction(*evictions, g, leaf, taken.as_ref());
    }

    /// The first half of an access: serves the block, which `was_live` or not, and maps it to its new
    /// leaf. Answers whether it is live now. [`Self::finish`] is the other half.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] before anything is touched, when there are no
    /// [`Self::accesses_left`]; and any that storage causes.
    pub(crate) fn access(
        &mut self,
        step: &Move,
        was_live: bool,
        op: &mut Op<'_>,
    ) -> Result<bool, Error> {
        self.bring_to_stash(step, was_live)?;
        self.client.serve(step.address, step.to, op);
        Ok(was_live || !matches!(op, Op::Read(_)))
    }

    /// The first half of an access that takes the block out of the ORAM: its bytes come to `block`,
    /// zeros if it was not live.
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

    /// The first half of an access to no block. Storage cannot tell it from any other.
    ///
    /// # Errors
    /// See [`Self::access`].
    pub(crate) fn access_nothing(&mut self, leaf: Leaf) -> Result<(), Error> {
        self.begin_access()?;
        let place = self.client.blocks.take();
        let block = self.client.blocks.get_mut(place);
        self.io.over(&mut self.store).read_block(self.evictions, leaf, None, block)?;
        self.client.blocks.give_back(place);
        Ok(())
    }

    /// Between the halves of an access: puts a block that is nowhere into the stash.
    ///
    /// # Errors
    /// [`ErrorKind::StashFull`], and it leaves the client broken.
    pub(crate) fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        if self.client.restore_client_block(Home::Stash, address, leaf, block) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::StashFull, "there is no room for a block that comes back"))
        }
    }

    /// The second half of an access: the eviction, if one is due. `map` says which copies count, where
    /// taken slots are not noted down.
    ///
    /// # Errors
    /// Any that storage causes.
    pub(crate) fn finish(&mut self, map: Option<&LivePosMap>) -> Result<(), Error> {
        self.accesses_since_eviction += 1;
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

    /// Applies `op` to the block `address` where it is, if the client finds it by its address: see
    /// [`Scheme::serve_on_client`](super::Scheme::serve_on_client). There is no move to be written
    /// down; whoever wants to survive a crash writes down what was done to the block.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`].
    pub(crate) fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.client.serve_in_place(address, op)
    }

    /// The next EO access, ahead of its time, so that the stash shrinks. Storage sees it. `map` as in
    /// [`Self::finish`].
    ///
    /// # Errors
    /// Like [`Self::access`].
    pub(crate) fn background_evict(&mut self, map: Option<&LivePosMap>) -> Result<(), Error> {
        if self.evictions_left() == 0 {
            return Err(invalid("one eviction more would destroy the state to go back to"));
        }
        self.client.begin()?;
        self.evict_only(map)?;
        self.client.end();
        Ok(())
    }

    fn begin_access(&mut self) -> Result<(), Error> {
        if self.accesses_left() == 0 {
            return Err(invalid("one access more would destroy the state to go back to"));
        }
        self.client.begin()
    }

    /// Moves the block of interest, and nothing else, to the stash. What is left of one that was not
    /// live is dropped, wherever it is.
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
        // A position map on the client has forgotten the leaf of what is not live: any copy of it is
        // of the past, and not looked for.
        let is_wanted = must_be_in_storage || !was_live && taken.is_some();
        let place = client.blocks.take();
        let block = client.blocks.get_mut(place);
        let wanted = is_wanted.then_some(address);
        let found = io.over(store).read_block(*evictions, from, wanted, block)?;
        if let (Some((bucket, slot)), Some(taken)) = (found, taken) {
            taken.take(bucket, slot);
        }
        if found.is_some() && was_live {
            client.stash.insert(Entry { address, leaf: to, place });
        } else {
            client.blocks.give_back(place);
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

    /// The leaf of EO access `g`. Public.
    fn evicted_by(&self, g: u64) -> Leaf {
        reverse_lexicographic(g, self.client.config.geometry.leaf_level())
    }

    /// A dummy Path ORAM access to the next path of the order, which drops copies of the past.
    fn evict_only(&mut self, map: Option<&LivePosMap>) -> Result<(), Error> {
        let leaf = self.evicted_by(self.evictions);
        let Self { io, store, client, taken, evictions, .. } = self;
        let next_evictions = evictions.checked_add(1).ok_or_else(counter::exhausted)?;
        let Client { stash, blocks, top, .. } = client;
        top.load(leaf, stash);
        let mut trips = io.over(store);
        trips.open_path(*evictions, leaf, blocks, taken.as_mut(), &mut |entry| {
            let counts = map.is_none_or(|map| map.is_live_at(entry.address, entry.leaf));
            if counts && stash.find(entry.address).is_none() {
                stash.insert(entry);
            }
        })?;
        client.plan_path(leaf);
        trips.seal_path(*evictions, client.plan(), &client.blocks, taken.as_mut())?;
        client.settle_path(leaf);
        *evictions = next_evictions;
        Ok(())
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
