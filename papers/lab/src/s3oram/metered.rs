//! A store of share servers that times each request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_core::StoreError;
use oblivio_core::StoreErrorKind;
use oblivio_core::store::{BucketStore, Capabilities, Fill, Frames, Piece, TreeId, TreeShape};
use oblivio_shares::message::Request;
use oblivio_shares::servers::{AnyServers, Patience, ServerAnswer, ShareServers};

use super::Clock;

/// The time and traffic of a request to all servers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TimedQuestion {
    /// Seconds until all servers had answered.
    pub(super) seconds: f64,
    /// Bytes of the requests to all servers.
    pub(super) up_bytes: f64,
    /// Bytes of the answers of all servers.
    pub(super) down_bytes: f64,
}

/// Share servers behind connections that can be replaced while a scheme uses them.
pub(super) struct Metered {
    store: Arc<Mutex<AnyServers>>,
    asked: Arc<Mutex<Vec<TimedQuestion>>>,
    clock: Clock,
}

impl Metered {
    pub(super) fn new(store: AnyServers, clock: Clock) -> Self {
        let (store, asked) = (Arc::new(Mutex::new(store)), Arc::default());
        Self { store, asked, clock }
    }

    /// Returns a handle to the same servers and the same list of requests.
    pub(super) fn another(&self) -> Self {
        let Self { store, asked, clock } = self;
        Self { store: store.clone(), asked: asked.clone(), clock: clock.clone() }
    }

    /// Replaces the connections to the servers.
    pub(super) fn replace_connections(&self, store: AnyServers) {
        *lock(&self.store) = store;
    }

    /// Takes the requests since the last call.
    pub(super) fn take(&self) -> Vec<TimedQuestion> {
        std::mem::take(&mut *lock(&self.asked))
    }

    fn servers(&self) -> MutexGuard<'_, AnyServers> {
        lock(&self.store)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error for operations on trees of buckets, which share servers do not have.
fn no_trees() -> StoreError {
    StoreError::new(StoreErrorKind::Refused, "share servers keep no trees: choose another scheme")
}

impl BucketStore for Metered {
    fn shape(&self, _: TreeId) -> Option<&TreeShape> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    fn prefetch(&mut self, _: &[Piece]) {}

    fn read(&mut self, _: &[Piece]) -> Result<Frames<'_>, StoreError> {
        Err(no_trees())
    }

    fn write(&mut self, _: &[Piece], _: &mut Fill<'_>) -> Result<(), StoreError> {
        Err(no_trees())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl ShareServers for Metered {
    fn count(&self) -> usize {
        self.servers().count()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        let bytes = |request: &Request| request.encode_in(tree).len();
        let up_bytes = requests.iter().flatten().map(bytes).sum::<usize>() as f64;
        let start = (self.clock)();
        let answered = self.servers().ask(tree, requests, patience);
        let seconds = (self.clock)().saturating_sub(start).as_secs_f64();
        let answers = answered.iter().flatten().flatten();
        let down_bytes = answers.map(Vec::len).sum::<usize>() as f64;
        lock(&self.asked).push(TimedQuestion { seconds, up_bytes, down_bytes });
        answered
    }

    fn begin_retries(&mut self) {
        self.servers().begin_retries();
    }

    fn wait_for_missing(&mut self) {
        self.servers().wait_for_missing();
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        self.servers().wait_for_links(failed)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        self.servers().key(server)
    }

    fn name(&self, server: usize) -> String {
        self.servers().name(server)
    }
}
