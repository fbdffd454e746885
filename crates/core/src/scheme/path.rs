//! Basic Path ORAM: Tiny ORAM, section II-A (Stefanov et al., CCS'13).

use rand_core::CryptoRng;

use super::client::Client;
use super::path_io::{BodyCounters, PathIo};
use super::{Backend, Indistinct, Location, Op, TakingBackend, TreeConfig};
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
    pub(super) io: PathIo<S>,
    pub(super) client: Client,
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

    /// Reads the path to `leaf`, has `serve` work on the client, and writes the path back.
    fn visit_path<T>(
        &mut self,
        leaf: Leaf,
        serve: impl FnOnce(&mut Client) -> T,
    ) -> Result<T, Error> {
        self.client.begin()?;
        let Self { io, client } = self;
        let counter = io.fresh_counter()?;
        client.read_path(io, leaf, BodyCounters::Stored)?;
        let served = serve(client);
        client.write_path(io, leaf, counter, BodyCounters::Stored)?;
        client.end();
        Ok(served)
    }
}

impl<S: BucketStore> Backend for PathBackend<S> {
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.visit_path(from, |client| client.serve(address, to, op))
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.client.serve_in_place(address, op)
    }

    fn background_evict(&mut self, coins: &mut impl CryptoRng) -> Result<(), Error> {
        let leaf = draw_leaf(coins, self.config().geometry.leaf_level());
        self.visit_path(leaf, |_| ())
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

impl<S: BucketStore> Indistinct for PathBackend<S> {}

impl<S: BucketStore> TakingBackend for PathBackend<S> {
    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.visit_path(from, |client| {
            client.serve(address, from, &mut Op::Read(block));
            client.take_out(address)
        })
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.client.take_in_place(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.client.append(address, leaf, block)
    }
}
