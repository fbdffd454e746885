//! A scheme that notes the block and the operation of each access, which storage must not learn.

use std::sync::{Arc, Mutex};

use oblivio_core::scheme::{Location, Scheme, StepHook};
use oblivio_core::stash::StashView;
use oblivio_core::{Error, Leaf, Op, TreeConfig};
use oblivio_testkit::workload::Request;
use rand::CryptoRng;

/// The noted blocks and operations of accesses. Would be secret in a real system. Copies share the
/// notes.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Request>>>);

impl Notes {
    pub(crate) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn push(&self, request: Request) {
        self.0.lock().unwrap().push(request);
    }
}

pub(crate) struct Noting<B> {
    scheme: B,
    notes: Notes,
}

impl<B> Noting<B> {
    pub(crate) fn new(scheme: B) -> Self {
        Self::with(scheme, Notes::default())
    }

    pub(crate) fn with(scheme: B, notes: Notes) -> Self {
        Self { scheme, notes }
    }

    pub(crate) fn scheme_mut(&mut self) -> &mut B {
        &mut self.scheme
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Request> {
        self.notes.take()
    }
}

impl<B: Scheme> Scheme for Noting<B> {
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.notes.push(Request { address, is_write: matches!(op, Op::Write(_)) });
        self.scheme.access(address, from, to, op)
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.scheme.serve_on_client(address, op)
    }

    fn set_step_hook(&mut self, hook: Box<dyn StepHook>) {
        self.scheme.set_step_hook(hook);
    }

    fn config(&self) -> &TreeConfig {
        self.scheme.config()
    }

    fn stash(&self) -> StashView<'_> {
        self.scheme.stash()
    }

    fn record_stash_histogram(&mut self) {
        self.scheme.record_stash_histogram();
    }

    fn aes_blocks(&self) -> u64 {
        self.scheme.aes_blocks()
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.scheme.check_ready()
    }

    fn announce(&mut self, leaves: &[Leaf]) {
        self.scheme.announce(leaves);
    }

    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.scheme.dummy(coins)
    }

    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.scheme.evict(coins)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.scheme.visit_blocks(visit)
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.notes.push(Request { address, is_write: false });
        self.scheme.take(address, from, block)
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.scheme.take_on_client(address, block)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.scheme.append(address, leaf, block)
    }

    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        self.scheme.populate(blocks)
    }
}
