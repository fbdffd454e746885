//! A RAW ORAM in memory, with the view of its storage.

use oblivio_core::store::Part;
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{
    Access, Error, Geometry, Key, Leaf, MemoryStore, Oram, RawConfig, RawOram, Sealer,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// Bytes of a block.
const BLOCK_BYTES: usize = 64;

/// A path of the tree that storage saw in one trip. Public.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Visit {
    /// The leaf at the end of the path.
    pub(crate) leaf: Leaf,
    /// Whether whole buckets were written, not only their headers.
    pub(crate) is_eviction: bool,
}

/// An ORAM with a recorded view of storage.
pub(crate) struct Watched(RawOram<Recorder<MemoryStore, Vec<Event>>, StdRng>);

impl Watched {
    /// Creates an ORAM whose random choices come from `seed`, with its default tree, or with leaves
    /// on `leaf_level` if given.
    pub(crate) fn new(blocks: u64, leaf_level: Option<u8>, seed: u64) -> Result<Self, Error> {
        let mut config = RawConfig::new(blocks, BLOCK_BYTES)?;
        if let Some(level) = leaf_level {
            config.tree.geometry = Geometry::uniform(level, 5)?;
        }
        let mut coins = StdRng::seed_from_u64(seed);
        let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
        let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree.tree);
        Ok(Self(RawOram::raw(&config, sealer, Recorder::new(store, Vec::new()), coins)?))
    }

    /// Accesses a block once. `is_write` selects a write or a read.
    pub(crate) fn ask(&mut self, address: u64, is_write: bool) -> Result<(), Error> {
        let mut block = [0; BLOCK_BYTES];
        let op = match is_write {
            true => oblivio_core::Op::Write(&block),
            false => oblivio_core::Op::Read(&mut block),
        };
        self.0.access(&mut [Access { address, op }])
    }

    /// The number of leaves of the tree.
    pub(crate) fn leaves(&self) -> u64 {
        self.0.config().geometry.leaves()
    }

    /// The level of the leaves.
    pub(crate) fn leaf_level(&self) -> u8 {
        self.0.config().geometry.leaf_level()
    }

    /// Takes the view of storage since the last call.
    pub(crate) fn take_view(&mut self) -> Vec<Visit> {
        let leaf_level = self.leaf_level();
        let events = std::mem::take(self.0.store_mut().sink_mut());
        // Every path is read and then written. An access writes only headers; an eviction writes
        // whole buckets.
        let written = events.iter().filter(|event| event.operation == Operation::Write);
        let at_leaves = written
            .filter_map(|event| event.piece)
            .filter(|piece| piece.bucket.level() == leaf_level);
        at_leaves
            .map(|piece| Visit {
                leaf: Leaf(piece.bucket.index()),
                is_eviction: piece.part == Part::Whole,
            })
            .collect()
    }
}
