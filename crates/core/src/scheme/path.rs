//! Basic Path ORAM: Tiny ORAM, section II-A (Stefanov et al., CCS'13).

use rand_core::CryptoRng;

use super::client::Client;
use super::path_io::{BodyCounters, PathIo};
use super::{Backend, Location, Op, TreeConfig};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::posmap::draw_leaf;
use crate::seal::Sealer;
use crate::stash::StashView;
use crate::store::BucketStore;

/// The Path ORAM backend.
///
/// An access reads one path, opens all of it, and writes all of it back. Storage sees a uniformly
/// random leaf, each used once, and `(L + 1)` buckets read and written.
pub struct PathBackend<S> {
    io: PathIo<S>,
    client: Client,
}

impl<S: BucketStore> PathBackend<S> {
    /// An empty ORAM on a store whose buckets were never written.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig),
    /// [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    pub fn new(config: &TreeConfig, sealer: Sealer, store: S) -> Result<Self, Error> {
        Ok(Self { io: PathIo::new(config, sealer, store)?, client: Client::new(config, 0)? })
    }

    /// The store, for whoever wraps it.
    pub fn store_mut(&mut self) -> &mut S {
        self.io.store_mut()
    }

    fn read_path(&mut self, leaf: Leaf) -> Result<(), Error> {
        self.client.read_path(&mut self.io, leaf, BodyCounters::Stored)
    }

    fn write_path(&mut self, leaf: Leaf, counter: u64) -> Result<(), Error> {
        self.client.write_path(&mut self.io, leaf, counter, BodyCounters::Stored)
    }
}

impl<S: BucketStore> Backend for PathBackend<S> {
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.client.begin()?;
        let counter = self.io.fresh_counter()?;
        self.read_path(from)?;
        self.client.serve(address, to, op);
        self.write_path(from, counter)?;
        self.client.end();
        Ok(())
    }

    fn background_evict(&mut self, coins: &mut impl CryptoRng) -> Result<(), Error> {
        self.client.begin()?;
        let counter = self.io.fresh_counter()?;
        let leaf = draw_leaf(coins, self.config().geometry.leaf_level());
        self.read_path(leaf)?;
        self.write_path(leaf, counter)?;
        self.client.end();
        Ok(())
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.client.check_ready(0)
    }

    fn prefetch(&mut self, leaf: Leaf) {
        self.io.prefetch(leaf);
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

    fn record_stash_histogram(&mut self) {
        self.client.stash.occupancy_mut().start_histogram();
    }

    fn aes_blocks(&self) -> u64 {
        self.io.aes_blocks()
    }
}
