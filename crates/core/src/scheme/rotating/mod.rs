//! Rotating RAW ORAM: RAW ORAM (Tiny ORAM, section IV) for storage that outlives the client.
//!
//! Three changes make RAW ORAM durable, authenticated and fresh, at no cost in storage:
//!
//! - **Accesses only read.** RAW ORAM's access-only access takes its block out of the bucket's header
//!   and writes all headers of the path back. Here the copy stays, and is a thing of the past from
//!   then on: a copy counts only if the position map says that its block is alive and mapped to the
//!   copy's leaf, and it is nearer the root than any other such copy ([`LivePosMap`]). The next
//!   eviction of its path drops it. Buckets receive blocks in evictions alone, in which everything
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
//! The argument for each is in `docs/adr/0005-commit-protocol.md`.

mod io;
mod places;

use super::client::Client;
use super::config::check_evict_period;
use super::{Location, Op, RawConfig, TreeConfig};
use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Leaf, reverse_lexicographic};
use crate::posmap::{LivePosMap, Mapping};
use crate::seal::{EraSealer, counter};
use crate::stash::{Entry, StashView};
use crate::store::{BucketStore, TreeShape};
use io::RotatingIo;

impl RawConfig {
    /// What a store must have room for under rotating RAW ORAM: on each level in storage as many
    /// buckets as the tree has, and [`Self::spare_evictions`] more. They stand on the store's next
    /// level, whose names they need.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the parameters contradict each other.
    pub fn rotating_shape(&self) -> Result<TreeShape, Error> {
        io::shape(self)
    }

    /// `W`: how many evictions a state of rotating RAW ORAM outlives. `2^tree_top_levels`.
    pub fn spare_evictions(&self) -> u64 {
        1 << self.tree.tree_top_levels
    }
}

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

/// A block on the client, to be kept and brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the stash.
    Stash,
    /// In a bucket of the tree top.
    TreeTop(BucketId),
}

/// The rotating backend.
pub struct RotatingBackend<S> {
    io: RotatingIo<S>,
    client: Client,
    evict_period: u32,
    /// AO accesses since the last EO access.
    accesses_since_eviction: u32,
    /// G of the paper. Public.
    evictions: u64,
    /// G of the state that the client could go back to. Public.
    kept_evictions: u64,
}

impl<S: BucketStore> RotatingBackend<S> {
    /// An empty ORAM on a store whose buckets were never written.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], [`ErrorKind::StoreMismatch`].
    pub fn new(config: &RawConfig, sealer: EraSealer, store: S) -> Result<Self, Error> {
        let first_eviction = config.tree.geometry.leaves();
        Self::resume(config, sealer, store, first_eviction, 0)
    }

    /// The ORAM as it was after `evictions` evictions and `accesses_since_eviction` accesses, but
    /// for the blocks on the client: see [`Self::bring_back`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], also when there was no such state, and
    /// [`ErrorKind::StoreMismatch`].
    pub fn resume(
        config: &RawConfig,
        sealer: EraSealer,
        store: S,
        evictions: u64,
        accesses_since_eviction: u32,
    ) -> Result<Self, Error> {
        check_evict_period(config.evict_period)?;
        let io = RotatingIo::new(config, sealer, store)?;
        if evictions < io.places.first_eviction() || accesses_since_eviction >= config.evict_period
        {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "no ORAM of this configuration was ever in this state",
            ));
        }
        Ok(Self {
            io,
            client: Client::new(&config.tree, config.evict_period as usize)?,
            evict_period: config.evict_period,
            accesses_since_eviction,
            evictions,
            kept_evictions: evictions,
        })
    }

    /// The store, for whoever wraps it.
    pub fn store_mut(&mut self) -> &mut S {
        self.io.store_mut()
    }

    /// Ends the use of the backend, and hands back its store.
    pub fn into_store(self) -> S {
        self.io.into_store()
    }

    /// The seal.
    pub fn sealer(&self) -> &EraSealer {
        self.io.sealer()
    }

    /// The seal, to begin an era.
    pub fn sealer_mut(&mut self) -> &mut EraSealer {
        self.io.sealer_mut()
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
        let two_rounds = 2 * (self.config().geometry.leaves() + self.io.places.spare());
        self.io.sealer_mut().forget_before(self.evictions.saturating_sub(two_rounds));
    }

    /// Whether storage holds an eviction that this state does not know of, and that was made before
    /// the latest era began: then the state is older than storage. Reads the bucket that the next
    /// eviction writes.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], [`ErrorKind::Store`], [`ErrorKind::Corrupt`].
    pub fn is_behind_storage(&mut self) -> Result<bool, Error> {
        self.client.check_sound()?;
        self.io.shows_ended_era(self.evictions)
    }

    /// Makes everything in storage durable.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], [`ErrorKind::Store`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.client.check_sound()?;
        let flushed = self.io.flush();
        if flushed.is_err() {
            self.client.break_off();
        }
        flushed
    }

    /// Whether a window of accesses can be begun now: see
    /// [`Backend::check_ready`](super::Backend::check_ready).
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`] or [`ErrorKind::StashFull`].
    pub fn check_ready(&self) -> Result<(), Error> {
        self.client.check_ready(self.accesses_since_eviction as usize)
    }

    /// Tells storage that the path to `leaf` will be read by a coming access.
    pub fn prefetch(&mut self, leaf: Leaf) {
        self.io.prefetch(self.evictions, leaf);
    }

    /// Makes the access, and maps the block to its new leaf.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] before anything is touched, when the block is not where the
    /// move starts or there are no [`Self::accesses_left`]; and any that storage causes.
    pub fn access(
        &mut self,
        step: &Move,
        op: &mut Op<'_>,
        map: &mut LivePosMap,
    ) -> Result<(), Error> {
        if map.get(step.address).is_some_and(|mapping| mapping.leaf != step.from) {
            return Err(invalid("the move does not start where the block is"));
        }
        if self.accesses_left() == 0 {
            return Err(invalid("one access more would destroy the state to go back to"));
        }
        self.client.begin()?;
        self.access_only(step, op, map)?;
        self.accesses_since_eviction += 1;
        match self.evict_period - self.accesses_since_eviction {
            0 => {
                self.evict_only(map)?;
                self.accesses_since_eviction = 0;
            }
            // The eviction after the next access is no secret: storage may fetch its path already.
            1 => self.prefetch(self.next_evicted()),
            _ => (),
        }
        self.client.end();
        Ok(())
    }

    /// Applies `op` to the block `address` where it is, if the client finds it by its address: see
    /// [`Backend::serve_on_client`](super::Backend::serve_on_client). There is no move to be written
    /// down; whoever wants to survive a crash writes down what was done to the block.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`].
    pub fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.client.serve_in_place(address, op)
    }

    /// The next EO access, ahead of its time, so that the stash shrinks. Storage sees it.
    ///
    /// # Errors
    /// Like [`Self::access`].
    pub fn background_evict(&mut self, map: &LivePosMap) -> Result<(), Error> {
        if self.evictions_left() == 0 {
            return Err(invalid("one eviction more would destroy the state to go back to"));
        }
        self.client.begin()?;
        self.evict_only(map)?;
        self.client.end();
        Ok(())
    }

    /// Drops the blocks of which the map says that they are not alive from the client.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`].
    pub fn drop_dead(&mut self, map: &LivePosMap) -> Result<(), Error> {
        self.client.check_sound()?;
        self.client.retain(|entry| map.is_live_at(entry.address, entry.leaf));
        Ok(())
    }

    /// Every block on the client with its bytes: what must be kept to [`Self::bring_back`].
    pub fn client_blocks(&self) -> impl Iterator<Item = (Home, u64, Leaf, &[u8])> {
        let Client { stash, top, blocks, .. } = &self.client;
        let in_stash = stash.entries().iter().map(|entry| (Home::Stash, entry));
        let in_top = top.blocks().map(|(bucket, entry)| (Home::TreeTop(bucket), entry));
        in_stash
            .chain(in_top)
            .map(|(home, entry)| (home, entry.address, entry.leaf, blocks.get(entry.place)))
    }

    /// Puts a block back where [`Self::client_blocks`] found it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] when it cannot have been there.
    pub fn bring_back(
        &mut self,
        home: Home,
        address: u64,
        leaf: Leaf,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let TreeConfig { capacity, block_bytes, geometry, .. } = &self.client.config;
        let fits =
            address < *capacity && bytes.len() == *block_bytes && geometry.contains_leaf(leaf);
        if fits && self.client.bring_back(home, address, leaf, bytes) {
            Ok(())
        } else {
            Err(invalid("a block that cannot have been on this client"))
        }
    }

    /// Reads the whole tree, and calls `visit` for each copy of a block that is alive, once;
    /// `progress` is told how many buckets of [`Self::buckets_in_storage`] have been read. Storage
    /// sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for the first thing that is not what was written, and any that storage
    /// causes.
    pub fn visit_blocks(
        &mut self,
        map: &LivePosMap,
        visit: &mut dyn FnMut(Location, u64, Leaf),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        self.client.begin()?;
        let mut seen = std::collections::HashSet::new();
        let mut visit = |location, address, leaf| {
            if map.is_live_at(address, leaf) && seen.insert(address) {
                visit(location, address, leaf);
            }
        };
        // From the root down: of several copies the first is the latest.
        self.client.visit_blocks(&mut visit);
        let Self { io, client, evictions, .. } = self;
        io.visit_blocks(
            *evictions,
            &mut client.blocks,
            |bucket, entry| visit(Location::Bucket(bucket), entry.address, entry.leaf),
            progress,
        )?;
        self.client.end();
        Ok(())
    }

    /// Buckets that are in storage. Public.
    pub fn buckets_in_storage(&self) -> u64 {
        self.io.places.levels().map(|level| 1 << level).sum()
    }

    /// Moves the block of interest, and nothing else, to the stash, and serves it.
    fn access_only(
        &mut self,
        step: &Move,
        op: &mut Op<'_>,
        map: &mut LivePosMap,
    ) -> Result<(), Error> {
        let Self { io, client, evictions, .. } = self;
        let Move { address, from, to } = *step;
        let was_alive = map.is_live_at(address, from);
        if let Some(entry) = client.top.take(from, address) {
            client.stash.insert(entry);
        }
        let in_storage = was_alive && client.stash.find(address).is_none();
        let place = client.blocks.take();
        let block = client.blocks.get_mut(place);
        let found = io.read_block(*evictions, from, in_storage.then_some(address), block)?;
        if found {
            client.stash.insert(Entry { address, leaf: to, place });
        } else {
            client.blocks.give_back(place);
        }
        if in_storage && !found {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a block is not on the path it is mapped to: the client's state does not belong to \
                 this store",
            ));
        }
        let is_read = matches!(op, Op::Read(_));
        client.serve(address, to, op);
        map.set(address, Mapping { leaf: to, live: was_alive || !is_read });
        Ok(())
    }

    /// The leaf of the next EO access. Public.
    fn next_evicted(&self) -> Leaf {
        reverse_lexicographic(self.evictions, self.client.config.geometry.leaf_level())
    }

    /// A dummy Path ORAM access to the next path of the order, which drops what is not alive.
    fn evict_only(&mut self, map: &LivePosMap) -> Result<(), Error> {
        let leaf = self.next_evicted();
        let Self { io, client, evictions, .. } = self;
        let next_evictions = evictions.checked_add(1).ok_or_else(counter::exhausted)?;
        let Client { stash, blocks, top, .. } = client;
        top.load(leaf, stash);
        io.open_path(*evictions, leaf, blocks, |entry| {
            if map.is_live_at(entry.address, entry.leaf) && stash.find(entry.address).is_none() {
                stash.insert(entry);
            }
        })?;
        client.plan_path(leaf);
        io.seal_path(*evictions, client.plan(), &client.blocks)?;
        client.settle_path(leaf);
        *evictions = next_evictions;
        Ok(())
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
