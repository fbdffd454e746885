//! A backend that notes what each access is for: what storage must not learn of a frontend.

use oblivio_core::scheme::{Backend, Location, TakingBackend};
use oblivio_core::stash::StashView;
use oblivio_core::{Error, Leaf, Op, TreeConfig};
use oblivio_testkit::workload::Request;
use rand::CryptoRng;

pub(crate) struct Noting<B> {
    backend: B,
    /// Secret, in a system that had secrets.
    noted: Vec<Request>,
}

impl<B> Noting<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self { backend, noted: Vec::new() }
    }

    pub(crate) fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.noted)
    }
}

impl<B: Backend> Backend for Noting<B> {
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.noted.push(Request { address, is_write: matches!(op, Op::Write(_)) });
        self.backend.access(address, from, to, op)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.backend.serve_on_client(address, op)
    }

    fn config(&self) -> &TreeConfig {
        self.backend.config()
    }

    fn stash(&self) -> StashView<'_> {
        self.backend.stash()
    }

    fn record_stash_histogram(&mut self) {
        self.backend.record_stash_histogram();
    }

    fn aes_blocks(&self) -> u64 {
        self.backend.aes_blocks()
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.backend.check_ready()
    }

    fn prefetch(&mut self, leaf: Leaf) {
        self.backend.prefetch(leaf);
    }

    fn background_evict(&mut self, coins: &mut impl CryptoRng) -> Result<(), Error> {
        self.backend.background_evict(coins)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.backend.visit_blocks(visit)
    }
}

impl<B: TakingBackend> TakingBackend for Noting<B> {
    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.noted.push(Request { address, is_write: false });
        self.backend.take(address, from, block)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.backend.take_on_client(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.backend.append(address, leaf, block)
    }
}
