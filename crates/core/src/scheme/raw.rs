//! RAW ORAM: Tiny ORAM, section IV.

use alloc::boxed::Box;

use rand_core::CryptoRng;

use super::client::Client;
use super::config::check_evict_period;
use super::path_io::{BodyCounters, PathIo, PathTree, PathTrips};
use super::tag_tree::TagTree;
use super::{Location, Op, PathAction, RawConfig, Scheme, StepHook, StepPhase, TreeConfig};
use crate::error::{Error, ErrorKind};
use crate::geometry::{Leaf, reverse_lexicographic};
use crate::posmap::draw_leaf;
use crate::seal::{Sealer, counter};
use crate::stash::{Entry, StashView};
use crate::store::{BucketStore, Capabilities};

/// RAW ORAM, without a position map.
///
/// - An **access-only (AO)** access reads one path, opens its headers and one block, and writes the
///   headers back. Storage sees a uniformly random leaf, which is used once.
/// - After every `A` AO accesses, an **eviction-only (EO)** access reads, opens and writes back the
///   next path of the reverse-lexicographic order. Storage knows the time and the path in advance.
///
/// `S` holds the tree: a [`BucketStore`], or a [`TagTree`] in simulations.
pub struct RawScheme<S: PathTree> {
    io: S::Trips,
    client: Client,
    evict_period: u32,
    /// AO accesses since the last EO access that was due. An early EO access does not reset this.
    accesses_since_eviction: u32,
    /// Number of EO accesses so far (G in the paper). Public.
    evictions: u64,
}

impl<S: BucketStore> RawScheme<S> {
    /// An empty ORAM on a store whose buckets were never written. AO accesses write only headers,
    /// so the store must have [`Capabilities::PARTS`].
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig),
    /// [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    pub fn new(config: &RawConfig, sealer: Sealer, store: S) -> Result<Self, Error> {
        check_evict_period(config.evict_period)?;
        Ok(Self {
            io: PathIo::new(&config.tree, Capabilities::PARTS, sealer, store)?,
            client: Client::new(&config.tree, config.evict_period as usize)?,
            evict_period: config.evict_period,
            accesses_since_eviction: 0,
            evictions: 0,
        })
    }

    /// The store, for callers that wrap it.
    pub fn store_mut(&mut self) -> &mut S {
        self.io.store_mut()
    }

    /// Ends the use of the scheme and returns its store, whose contents can no longer be opened.
    pub fn into_store(self) -> S {
        self.io.into_store()
    }
}

impl RawScheme<TagTree> {
    /// An empty unencrypted ORAM for simulations. Its blocks have addresses and leaves but [no
    /// bytes](TreeConfig::block_bytes). It behaves like an ORAM on a store, and is faster.
    ///
    /// # Errors
    /// [`InvalidConfig`](ErrorKind::InvalidConfig), also for blocks with bytes.
    pub fn of_tags(config: &RawConfig) -> Result<Self, Error> {
        check_evict_period(config.evict_period)?;
        let (io, client) = TagTree::with_client(&config.tree, config.evict_period as usize)?;
        Ok(Self {
            io,
            client,
            evict_period: config.evict_period,
            accesses_since_eviction: 0,
            evictions: 0,
        })
    }
}

impl<S: PathTree> RawScheme<S> {
    /// Moves the wanted block, and no other, from the path to the stash, and serves it.
    fn access_only(
        &mut self,
        address: u64,
        from: Leaf,
        to: Leaf,
        op: &mut Op<'_>,
    ) -> Result<(), Error> {
        let Self { io, client, evictions, .. } = self;
        client.step(from, PathAction::Take, StepPhase::Before);
        let counter = io.fresh_counter()?;
        let place = client.blocks.take();
        let block = client.blocks.get_mut(place);
        // Section IV-A: decrypt the headers and the requested block. Only this block moves.
        if io.take_block(from, address, *evictions, counter, block)? {
            client.stash.insert(Entry { address, leaf: to, place });
        } else {
            client.blocks.free(place);
        }
        if let Some(entry) = client.top.take(from, address) {
            client.stash.insert(entry);
        }
        client.step(from, PathAction::Take, StepPhase::After);
        // Section II-A, steps 3 and 4: note the new leaf, then read or replace the contents.
        client.serve(address, to, op);
        Ok(())
    }

    /// A dummy AO access. Storage sees the same trips as for other AO accesses.
    fn access_dummy(&mut self, leaf: Leaf) -> Result<(), Error> {
        let Self { io, client, evictions, .. } = self;
        client.step(leaf, PathAction::Take, StepPhase::Before);
        let place = client.blocks.take();
        let block = client.blocks.get_mut(place);
        let counter = io.fresh_counter()?;
        io.take_block(leaf, Entry::DUMMY_ADDRESS, *evictions, counter, block)?;
        client.blocks.free(place);
        client.step(leaf, PathAction::Take, StepPhase::After);
        Ok(())
    }

    /// Counts an AO access, and makes the EO access that follows every `A` of them.
    fn evict_if_due(&mut self) -> Result<(), Error> {
        self.accesses_since_eviction += 1;
        // Section IV-A: one EO access after every A AO accesses.
        match self.evict_period - self.accesses_since_eviction {
            0 => {
                self.evict_only()?;
                self.accesses_since_eviction = 0;
            }
            // The eviction after the next access is no secret: storage may fetch its path already.
            1 => self.io.prefetch(self.next_evicted()),
            _ => (),
        }
        Ok(())
    }

    /// The leaf of the next EO access. Public.
    fn next_evicted(&self) -> Leaf {
        // Section IV-A: the leaf is G mod 2^L (Fig. 5).
        reverse_lexicographic(self.evictions, self.client.config.geometry.leaf_level())
    }

    /// An EO access: reads the next path of the order into the stash, and writes it back like a
    /// dummy access of Path ORAM.
    fn evict_only(&mut self) -> Result<(), Error> {
        let leaf = self.next_evicted();
        let Self { io, client, evictions, .. } = self;
        let next_evictions = evictions.checked_add(1).ok_or_else(counter::exhausted)?;
        let counter = io.fresh_counter()?;
        // Section IV-A: read the path. Section IV-D: the write counts of the bodies follow from G.
        client.read_path(io, leaf, BodyCounters::Evictions(*evictions))?;
        // Section IV-A: evict to the path. Section IV-D: under write counts greater by 1.
        client.write_path(io, leaf, counter, BodyCounters::Evictions(next_evictions))?;
        *evictions = next_evictions;
        Ok(())
    }
}

impl<S: PathTree> Scheme for RawScheme<S> {
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.client.begin()?;
        self.access_only(address, from, to, op)?;
        self.evict_if_due()?;
        self.client.end();
        Ok(())
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.client.begin()?;
        self.access_only(address, from, from, &mut Op::Read(block))?;
        let found = self.client.take_out(address);
        self.evict_if_due()?;
        self.client.end();
        Ok(found)
    }

    /// Makes an AO access, which counts towards the next EO access like any other.
    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        let leaf = draw_leaf(coins, self.config().geometry.leaf_level());
        self.client.begin()?;
        self.access_dummy(leaf)?;
        self.evict_if_due()?;
        self.client.end();
        Ok(())
    }

    /// Makes the next EO access early. The order of EO accesses stays the same. The count of AO
    /// accesses is not reset, so the next EO access that is due is not delayed.
    fn evict(&mut self, _: &mut dyn CryptoRng) -> Result<(), Error> {
        self.client.begin()?;
        self.evict_only()?;
        self.client.end();
        Ok(())
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.client.serve_in_place(address, op)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.client.take_in_place(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.client.append(address, leaf, block)
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.client.check_ready(self.accesses_since_eviction as usize)
    }

    fn announce(&mut self, leaves: &[Leaf]) {
        leaves.iter().for_each(|leaf| self.io.prefetch(*leaf));
    }

    /// Refuses: a body in storage is sealed under the number of evictions that have written it,
    /// which is 0 in an unused ORAM.
    fn populate(&mut self, _: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        let message = "RAW ORAM cannot be filled at once: write its blocks one by one";
        Err(Error::new(ErrorKind::InvalidConfig, message))
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.client.begin()?;
        self.client.visit_blocks(visit);
        let bodies = BodyCounters::Evictions(self.evictions);
        self.io.visit_blocks(bodies, &mut self.client.blocks, visit)?;
        self.client.end();
        Ok(())
    }

    fn config(&self) -> &TreeConfig {
        &self.client.config
    }

    fn stash(&self) -> StashView<'_> {
        StashView::new(&self.client.stash)
    }

    fn set_step_hook(&mut self, hook: Box<dyn StepHook>) {
        self.client.step_hook = Some(hook);
    }

    fn record_stash_histogram(&mut self) {
        self.client.stash.occupancy_mut().start_histogram();
    }

    fn aes_blocks(&self) -> u64 {
        self.io.aes_blocks()
    }
}
