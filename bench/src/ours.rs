//! Oblivio's engine, measured through the same interface as its peers.

use oblivio_core::{
    Access, FreecursiveConfig, FreecursiveOram, Integrity, Key, MemoryStore, Op, Oram, PathOram,
    RawConfig, RawOram, Sealer, TreeConfig, scheme::RawScheme,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    ram::{Driven, Ram},
    report::Count,
    subject::{Description, ROW_4K, ROW_64, Row, Subject},
};

/// Number of levels on the client in subjects with a tree top. The 511 buckets of RAW ORAM on these
/// levels are 160 KiB with blocks of 64 bytes, and 10 MiB with blocks of 4 KiB.
const TREE_TOP_LEVELS: u8 = 9;

/// Accesses per batch in batched subjects.
const BATCH: usize = 16;

/// Number of accesses over which AES blocks are counted: a multiple of RAW ORAM's eviction period.
const COUNTED_ACCESSES: u64 = 1000;

/// Number of requests over which path accesses are counted. As many requests come first, to fill
/// the PLB (the cache of position-map blocks).
const COUNTED_REQUESTS: u64 = 20_000;

/// The name, after `oblivio`, of the subject with a flat position map. The subjects with recursive
/// maps are compared with it.
const FLAT: &str = "RAW Z5A5";

/// Subjects with recursive position maps: name, integrity protection, number of blocks of the PLB,
/// order of the requests' addresses.
const RECURSIVE: [(&str, Integrity, usize, AddressOrder); 6] = [
    ("Freecursive RAW, uniform", Integrity::None, SMALL_PLB, AddressOrder::AsRequested),
    ("Freecursive RAW, scan", Integrity::None, SMALL_PLB, AddressOrder::Scan),
    ("Freecursive RAW + PMMAC, uniform", Integrity::Pmmac, SMALL_PLB, AddressOrder::AsRequested),
    ("Freecursive RAW + PMMAC, scan", Integrity::Pmmac, SMALL_PLB, AddressOrder::Scan),
    (
        "Freecursive RAW + PMMAC, PLB 64 KiB, uniform",
        Integrity::Pmmac,
        LARGE_PLB,
        AddressOrder::AsRequested,
    ),
    ("Freecursive RAW + PMMAC, PLB 64 KiB, scan", Integrity::Pmmac, LARGE_PLB, AddressOrder::Scan),
];

/// Default number of blocks of the PLB.
const SMALL_PLB: usize = 64;

/// Number of blocks of a PLB of 64 KiB, as in IR-ORAM (Table I).
const LARGE_PLB: usize = 1024;

/// Returns the names of the subjects whose ratio of times is reported: each subject with a
/// recursive map, paired with the subject with the flat map.
pub fn compared() -> impl Iterator<Item = (String, String)> {
    RECURSIVE.iter().map(|(name, ..)| (format!("oblivio {name}"), format!("oblivio {FLAT}")))
}

/// Returns the engine's subjects, one [`Description`] per scheme and row.
pub fn all() -> Vec<Description> {
    let raw = |row, top| move || Driven::new(Ours(raw_oram(row, top)), row);
    let path = |row, top| move || Driven::new(Ours(path_oram(row, top)), row);
    let batched = |row| move || Batched::new(raw_oram(row, 0));
    let top = format!("{TREE_TOP_LEVELS} levels on the client");
    let recursive = RECURSIVE.map(|(name, integrity, plb_blocks, order)| {
        let oram = move || freecursive_oram(ROW_64, integrity, plb_blocks);
        let driven = move || Driven::new(Ours(oram()), ROW_64);
        describe(name, ROW_64, move || Ordered { subject: driven(), order, next: 0 })
    });
    let flat = vec![
        describe(FLAT, ROW_64, raw(ROW_64, 0)),
        describe(&format!("RAW Z5A5, {top}"), ROW_64, raw(ROW_64, TREE_TOP_LEVELS)),
        describe(&format!("RAW Z5A5, batches of {BATCH}"), ROW_64, batched(ROW_64)),
        describe("Path Z4", ROW_64, path(ROW_64, 0)),
        describe(FLAT, ROW_4K, raw(ROW_4K, 0)),
        describe(&format!("RAW Z5A5, {top}"), ROW_4K, raw(ROW_4K, TREE_TOP_LEVELS)),
        describe("Path Z4", ROW_4K, path(ROW_4K, 0)),
        describe(&format!("Path Z4, {top}"), ROW_4K, path(ROW_4K, TREE_TOP_LEVELS)),
    ];
    flat.into_iter().chain(recursive).collect()
}

/// Counts AES blocks per access and path accesses per request, at 64 B x 2^20.
pub fn counts() -> Vec<Count> {
    [aes_counts(), path_counts()].concat()
}

/// Counts path accesses per request with a recursive position map. They depend on the hit rate of
/// the PLB.
fn path_counts() -> Vec<Count> {
    let count = |plb_blocks| {
        let mut oram = freecursive_oram(ROW_64, Integrity::None, plb_blocks);
        let mut requests = StdRng::seed_from_u64(0);
        let mut ask_some = || {
            for _ in 0..COUNTED_REQUESTS {
                let address = requests.random_range(0..ROW_64.blocks() as u64);
                oram.read(address, &mut [0; ROW_64.block_bytes]).expect(SOUND);
            }
            oram.tally().accesses()
        };
        let (before, after) = (ask_some(), ask_some());
        Count {
            name: format!(
                "{ROW_64}: oblivio Freecursive, PLB of {plb_blocks}, uniform: path accesses"
            ),
            value: (after - before) as f64 / COUNTED_REQUESTS as f64,
            unit: "paths",
        }
    };
    [SMALL_PLB, LARGE_PLB].map(count).to_vec()
}

fn aes_counts() -> Vec<Count> {
    let per_access = |blocks| blocks as f64 / COUNTED_ACCESSES as f64;
    let mut path = path_oram(ROW_64, 0);
    run_some(&mut path);
    let path = per_access(path.aes_blocks());
    let mut raw = raw_oram(ROW_64, 0);
    run_some(&mut raw);
    let raw = per_access(raw.aes_blocks());
    let count = |name: &str, value, unit| Count { name: format!("{ROW_64}: {name}"), value, unit };
    vec![
        count("oblivio Path Z4: AES blocks per access", path, "blocks"),
        count("oblivio RAW Z5A5: AES blocks per access", raw, "blocks"),
        count("AES blocks, Path Z4 over RAW Z5A5", path / raw, "ratio"),
    ]
}

fn run_some(oram: &mut impl Oram) {
    let mut block = vec![0; oram.block_bytes()];
    for address in 0..COUNTED_ACCESSES / 2 {
        oram.update(address, &mut |block| block.fill(1)).expect(SOUND);
        oram.read(address, &mut block).expect(SOUND);
    }
}

fn describe<S: Subject + 'static>(
    name: &str,
    row: Row,
    build: impl Fn() -> S + 'static,
) -> Description {
    Description {
        name: format!("oblivio {name}"),
        row,
        encrypts: "everything, AES-128",
        constant_time: "no",
        ruler: false,
        build: Box::new(move || Box::new(build())),
    }
}

/// The message for `expect` calls that fail only if the engine has a bug.
const SOUND: &str = "the engine serves valid requests on memory";

fn raw_oram(row: Row, tree_top_levels: u8) -> RawOram<MemoryStore, StdRng> {
    let mut config = RawConfig::new(row.blocks() as u64, row.block_bytes).expect(SOUND);
    config.tree.tree_top_levels = tree_top_levels;
    let (sealer, store, coins) = parts(&config.tree);
    RawOram::raw(&config, sealer, store, coins).expect(SOUND)
}

fn path_oram(row: Row, tree_top_levels: u8) -> PathOram<MemoryStore, StdRng> {
    let mut config = TreeConfig::path(row.blocks() as u64, row.block_bytes).expect(SOUND);
    config.tree_top_levels = tree_top_levels;
    let (sealer, store, coins) = parts(&config);
    PathOram::path(&config, sealer, store, coins).expect(SOUND)
}

fn freecursive_oram(
    row: Row,
    integrity: Integrity,
    plb_blocks: usize,
) -> FreecursiveOram<RawScheme<MemoryStore>, StdRng> {
    let mut config = FreecursiveConfig::new(row.blocks() as u64, row.block_bytes).expect(SOUND);
    config.integrity = integrity;
    config.plb_blocks = plb_blocks;
    let raw = config.raw_tree().expect(SOUND);
    let (sealer, store, coins) = parts(&raw.tree);
    let scheme = RawScheme::new(&raw, sealer, store).expect(SOUND);
    FreecursiveOram::new(&config, scheme, coins).expect(SOUND)
}

fn parts(config: &TreeConfig) -> (Sealer, MemoryStore, StdRng) {
    let mut coins = StdRng::seed_from_u64(1);
    let shape = config.shape().expect(SOUND);
    let store = MemoryStore::new(&[shape], MemoryStore::default_layout()).expect(SOUND);
    (Sealer::aes128(Key::draw(&mut coins), config.tree), store, coins)
}

/// The order of the requests' addresses.
#[derive(Clone, Copy)]
enum AddressOrder {
    AsRequested,
    /// Sequential addresses, instead of those of the workload.
    Scan,
}

/// Passes requests to `subject`, with their addresses in the order `order`.
struct Ordered<S> {
    subject: S,
    order: AddressOrder,
    next: u64,
}

impl<S: Subject> Subject for Ordered<S> {
    fn access(&mut self, address: u64, write: bool) {
        let address = match self.order {
            AddressOrder::AsRequested => address,
            AddressOrder::Scan => self.next,
        };
        self.next = (self.next + 1) % ROW_64.blocks() as u64;
        self.subject.access(address, write);
    }

    fn check(&mut self, filled: u64) -> Result<(), String> {
        self.subject.check(filled)
    }
}

/// An engine that serves one access at a time.
struct Ours<O>(O);

impl<O: Oram> Ram for Ours<O> {
    fn read(&mut self, address: u64, block: &mut [u8]) {
        self.0.read(address, block).expect(SOUND);
    }

    fn write(&mut self, address: u64, block: &[u8]) {
        self.0.write(address, block).expect(SOUND);
    }
}

/// An engine that serves accesses in batches. Does not check the data it reads: the subjects with
/// single accesses do that for the same engine.
struct Batched<O> {
    oram: O,
    pending: Vec<(u64, bool)>,
    blocks: Vec<Vec<u8>>,
}

impl<O: Oram> Batched<O> {
    fn new(oram: O) -> Self {
        let blocks = vec![vec![0; oram.block_bytes()]; BATCH];
        Self { oram, pending: Vec::with_capacity(BATCH), blocks }
    }
}

impl<O: Oram> Subject for Batched<O> {
    fn access(&mut self, address: u64, write: bool) {
        self.pending.push((address, write));
        if self.pending.len() == BATCH {
            let requests = self.pending.drain(..).zip(&mut self.blocks);
            let mut batch: Vec<_> = requests
                .map(|((address, write), block)| {
                    let op = if write { Op::Write(block) } else { Op::Read(block) };
                    Access { address, op }
                })
                .collect();
            self.oram.access(&mut batch).expect(SOUND);
        }
    }
}
