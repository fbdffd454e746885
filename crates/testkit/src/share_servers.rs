//! Share servers as a store, with or without the records of a volume.

use oblivio_core::store::{BucketStore, Capabilities, Fill, Frames, Piece, TreeId, TreeShape};
use oblivio_core::{MemoryStore, StoreError};
use oblivio_shares::message::Request;
use oblivio_shares::servers::{Patience, ServerAnswer, ShareServers};

/// Share servers of type `T`, with records in a store of type `R`.
pub struct ServersWithRecords<R, T> {
    /// The store of the records.
    pub records: R,
    /// The share servers.
    pub servers: T,
}

impl<T> ServersWithRecords<MemoryStore, T> {
    /// Creates a store for a scheme without records.
    pub fn without(servers: T) -> Self {
        let records = MemoryStore::new(&[], MemoryStore::default_layout());
        Self { records: records.expect("a store without trees is valid"), servers }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: BucketStore, T> BucketStore for ServersWithRecords<R, T> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.records.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.records.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.records.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.records.read(pieces)
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        self.records.read_candidates(pieces, each)
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.records.write(pieces, fill)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.records.flush()
    }
}

impl<R, T: ShareServers> ShareServers for ServersWithRecords<R, T> {
    fn count(&self) -> usize {
        self.servers.count()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        self.servers.ask(tree, requests, patience)
    }

    fn begin_retries(&mut self) {
        self.servers.begin_retries();
    }

    fn wait_for_missing(&mut self) {
        self.servers.wait_for_missing();
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        self.servers.wait_for_links(failed)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        self.servers.key(server)
    }

    fn name(&self, server: usize) -> String {
        self.servers.name(server)
    }
}
