//! Basic Path ORAM: Tiny ORAM, section II-A (Stefanov et al., CCS'13).

#[cfg(feature = "std")]
mod image;

use alloc::boxed::Box;

use rand_core::CryptoRng;

use super::client::Client;
use super::path_io::{BodyCounters, PathIo, PathTree, PathTrips};
use super::tag_tree::{BlockMove, TagTree};
use super::{Location, Op, Scheme, StepHook, TreeConfig};
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::posmap::draw_leaf;
use crate::seal::Sealer;
use crate::stash::{Entry, StashView};
use crate::store::{BucketStore, Capabilities};

/// Path ORAM, without a position map.
///
/// An access reads one path, opens the whole path, and writes it back. Storage sees a uniformly
/// random leaf, which is used once. It sees the buckets of this path read and written: `L + 1`, or
/// fewer with a tree top on the client.
///
/// `S` holds the tree: a [`BucketStore`], or a [`TagTree`] in simulations.
pub struct PathScheme<S: PathTree> {
    pub(super) io: S::Trips,
    pub(super) client: Client,
}

impl<S: BucketStore> PathScheme<S> {
    /// An empty ORAM on a store whose buckets were never written.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig),
    /// [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    pub fn new(config: &TreeConfig, sealer: Sealer, store: S) -> Result<Self, Error> {
        Ok(Self {
            io: PathIo::new(config, Capabilities::NONE, sealer, store)?,
            client: Client::new(config, 0)?,
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

impl PathScheme<TagTree> {
    /// An empty unencrypted ORAM for simulations. Its blocks have addresses and leaves but [no
    /// bytes](TreeConfig::block_bytes). It behaves like an ORAM on a store, and is faster.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig), also for blocks with bytes.
    pub fn of_tags(config: &TreeConfig) -> Result<Self, Error> {
        let (io, client) = TagTree::with_client(config, 0)?;
        Ok(Self { io, client })
    }

    /// Makes the scheme call `report` with the leaf of each path that is read and written back.
    pub fn observe_paths(&mut self, report: impl FnMut(Leaf) + 'static) {
        self.io.observe_paths(Box::new(report));
    }

    /// Makes the scheme call `report` whenever it reads a path and writes it back: for each block
    /// that was on the path, and for each block that is put into it. Blocks in a [set-associative
    /// tree top](crate::TreeTopKind::SetAssociative) count as blocks in the stash.
    pub fn observe_moves(&mut self, report: impl FnMut(BlockMove) + 'static) {
        self.io.observe_moves(Box::new(report));
    }

    /// The location of the block `address`, which is mapped to `leaf`, if it is in the ORAM.
    pub fn locate(&self, address: u64, leaf: Leaf) -> Option<Location> {
        let on_client = self.client.locate(address, leaf);
        on_client.or_else(|| {
            let level = self.io.level_of(address, leaf)?;
            Some(Location::Bucket(BucketId::on_path(leaf, level)))
        })
    }

    /// The location of the block `address`, if the client finds it by its address: in the stash, or
    /// in a set-associative tree top.
    pub fn locate_on_client(&self, address: u64) -> Option<Location> {
        // A block that is found by its address is found for any leaf.
        self.client.locate(address, Leaf(0))
    }
}

impl<S: PathTree> PathScheme<S> {
    /// Reads the path to `leaf` for the block `address`, calls `serve` with the client, and writes
    /// the path back.
    fn visit_path<T>(
        &mut self,
        address: u64,
        leaf: Leaf,
        serve: impl FnOnce(&mut Client) -> T,
    ) -> Result<T, Error> {
        self.client.begin()?;
        let Self { io, client } = self;
        io.note_requested(address);
        let counter = io.fresh_counter()?;
        // Section II-A, step 2: read the path into the stash.
        client.read_path(io, leaf, BodyCounters::Stored)?;
        // Section II-A, steps 3 and 4: note the new leaf, then read or replace the contents.
        let served = serve(client);
        // Section II-A, step 5: put as many blocks as possible back on the path.
        client.write_path(io, leaf, counter, BodyCounters::Stored)?;
        client.end();
        Ok(served)
    }
}

impl<S: PathTree> Scheme for PathScheme<S> {
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.visit_path(address, from, |client| client.serve(address, to, op))
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.visit_path(address, from, |client| {
            client.serve(address, from, &mut Op::Read(block));
            client.take_out(address)
        })
    }

    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        let leaf = draw_leaf(coins, self.config().geometry.leaf_level());
        self.visit_path(Entry::DUMMY_ADDRESS, leaf, |_| ())
    }

    /// Makes a [dummy access](Self::dummy), because every access evicts.
    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.dummy(coins)
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
        self.client.check_ready(0)
    }

    fn announce(&mut self, leaves: &[Leaf]) {
        leaves.iter().for_each(|leaf| self.io.prefetch(*leaf));
    }

    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        self.fill(blocks)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.client.begin()?;
        self.client.visit_blocks(visit);
        self.io.visit_blocks(BodyCounters::Stored, &mut self.client.blocks, visit)?;
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
