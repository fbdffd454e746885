//! Counts the traffic between the engine and its store, and the AES blocks that the engine
//! computes.

use std::cell::Cell;
use std::rc::Rc;

use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::{Event, EventSink, Operation, Recorder};
use oblivio_core::{
    Access, Geometry, Key, MemoryStore, Op, Oram, PathOram, RawConfig, RawOram, Sealer, TreeConfig,
};
use oblivio_models::workload::Addresses;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::formula::PATH_Z;
use crate::LabError;
use crate::stash_study::STASH_BLOCKS_SEEN_MAX;

/// The block size of Tiny ORAM, in bytes.
pub(super) const BLOCK_BYTES: usize = 64;

/// The mean cost of an access, per bucket of a path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// Transferred blocks and headers, where a header counts as a block: the unit of the formulas.
    pub units: f64,
    /// Bytes transferred, with the engine's headers.
    pub bytes: f64,
    /// AES blocks of 16 bytes computed.
    pub aes_blocks: f64,
}

/// Units and bytes that a store has transferred.
#[derive(Clone, Default)]
struct TrafficCount(Rc<Cell<[u64; 2]>>);

/// The sink that counts units and bytes.
struct Counter {
    seen: TrafficCount,
    geometry: Geometry,
}

impl EventSink for Counter {
    fn record(&mut self, event: &Event, _: &[u8]) {
        if let (Operation::Read | Operation::Write, Some(piece)) = (event.operation, event.piece) {
            let [units, bytes] = self.seen.0.get();
            self.seen.0.set([units + units_of(piece, &self.geometry), bytes + event.bytes]);
        }
    }
}

impl TrafficCount {
    /// Creates a store for `tree` that counts its traffic.
    fn store(&self, tree: &TreeConfig) -> Result<Recorder<MemoryStore, Counter>, LabError> {
        let counter = Counter { seen: self.clone(), geometry: tree.geometry.clone() };
        let memory = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
        Ok(Recorder::new(memory, counter))
    }
}

fn units_of(piece: Piece, geometry: &Geometry) -> u64 {
    match piece.part {
        Part::Header => 1,
        _ => geometry.slots(piece.bucket.level().into()) as u64 + 1,
    }
}

/// Counts the cost of Path ORAM with Z = 4, and one block per leaf.
pub(super) fn of_path(leaf_level: u8, accesses: u64, seed: u64) -> Result<Counted, LabError> {
    let geometry = Geometry::uniform(leaf_level, PATH_Z)?;
    let tree = TreeConfig::new(1 << leaf_level, BLOCK_BYTES, geometry, STASH_BLOCKS_SEEN_MAX);
    let (seen, mut coins) = (TrafficCount::default(), StdRng::seed_from_u64(seed));
    let sealer = Sealer::aes128(Key::draw(&mut coins), TreeId(0));
    let mut oram = PathOram::path(&tree, sealer, seen.store(&tree)?, coins)?;
    count(&mut oram, &tree, accesses, &seen, |oram| oram.aes_blocks())
}

/// Counts the cost of RAW ORAM.
pub(super) fn of_raw(config: &RawConfig, accesses: u64, seed: u64) -> Result<Counted, LabError> {
    let (seen, mut coins) = (TrafficCount::default(), StdRng::seed_from_u64(seed));
    let sealer = Sealer::aes128(Key::draw(&mut coins), TreeId(0));
    let mut oram = RawOram::raw(config, sealer, seen.store(&config.tree)?, coins)?;
    // Count whole periods: the accesses of a period share an eviction.
    let accesses = accesses.next_multiple_of(config.evict_period.into());
    count(&mut oram, &config.tree, accesses, &seen, |oram| oram.aes_blocks())
}

/// Writes all blocks, then counts the cost of `accesses` reads of successive addresses.
fn count<O: Oram>(
    oram: &mut O,
    tree: &TreeConfig,
    accesses: u64,
    seen: &TrafficCount,
    aes_blocks: impl Fn(&O) -> u64,
) -> Result<Counted, LabError> {
    let mut addresses = Addresses::scan(tree.capacity);
    for _ in 0..tree.capacity {
        let (address, op) = (addresses.next_address(), Op::Write(&[1; BLOCK_BYTES]));
        oram.access(&mut [Access { address, op }])?;
    }
    seen.0.take();
    let aes_before = aes_blocks(oram);
    let mut block = [0; BLOCK_BYTES];
    for _ in 0..accesses {
        oram.read(addresses.next_address(), &mut block)?;
    }
    let [units, bytes] = seen.0.get();
    let buckets = (accesses * tree.geometry.levels() as u64) as f64;
    Ok(Counted {
        units: units as f64 / buckets,
        bytes: bytes as f64 / buckets,
        aes_blocks: (aes_blocks(oram) - aes_before) as f64 / buckets,
    })
}
