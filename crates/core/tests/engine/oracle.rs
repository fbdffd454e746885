//! Tests of Path and RAW ORAM against their literal references and against a plain array.
//!
//! The engine and the reference get the same coins. So the tests compare not only the answers, but
//! also the leaves that storage sees and the blocks left in the stash, both in order.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use oblivio_core::reference::{ReferencePath, ReferenceRaw};
use oblivio_core::scheme::Scheme;
use oblivio_core::store::TreeId;
use oblivio_core::view::Operation;
use oblivio_core::{
    Access, BucketStore, Error, ErrorKind, FlatOram, Front, Geometry, Key, LayoutKind, Leaf,
    MemoryStore, NoSecrecy, Op, Oram, PathOram, RawConfig, RawOram, Sealer, TreeConfig,
    TreeTopKind,
};
use oblivio_testkit::{Call, Faulty};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

// ───────────────────────────── the grid ─────────────────────────────

/// Tests that Path ORAM behaves like its reference, for every combination of capacity, slots per
/// level, and number of tree-top levels. The other parameters are drawn at random for each
/// combination.
#[test]
fn path_oram_is_its_reference() {
    for_each_point(|point, coins| {
        let config = point.tree(coins);
        let mut reference =
            ReferencePath::new(config.geometry.clone(), config.block_bytes, point.coins());
        if let TreeTopKind::SetAssociative { ways } = config.tree_top {
            reference = reference.with_sets(config.tree_top_levels, ways);
        }
        let (store, log) = recorded(&config, any_layout(coins));
        let sealer = any_sealer(&config, coins);
        let mut oram = PathOram::path(&config, sealer, store, point.coins()).unwrap();
        same_runs(&mut oram, &log, &mut reference, coins);
    });
}

#[test]
fn raw_oram_is_its_reference() {
    for_each_point(|point, coins| {
        let tree = point.tree(coins);
        let evict_period = pick(&[1, 2, 3, 5, 8], coins);
        let mut reference = ReferenceRaw::new(
            tree.geometry.clone(),
            tree.block_bytes,
            u64::from(evict_period),
            point.coins(),
        );
        if let TreeTopKind::SetAssociative { ways } = tree.tree_top {
            reference = reference.with_sets(tree.tree_top_levels, ways);
        }
        let (store, log) = recorded(&tree, any_layout(coins));
        let sealer = any_sealer(&tree, coins);
        let config = RawConfig::of_tree(tree, evict_period);
        let mut oram = RawOram::raw(&config, sealer, store, point.coins()).unwrap();
        same_runs(&mut oram, &log, &mut reference, coins);
    });
}

const CAPACITIES: [u64; 9] = [1, 2, 3, 7, 64, 100, 255, 256, 1000];
/// Profiles: slots per level from the root down. The last number is repeated for all lower levels.
const PROFILES: [&[u16]; 9] =
    [&[1], &[2], &[3], &[4], &[5], &[6], &[1, 2, 3, 4], &[6, 1, 1, 5], &[9, 3, 1, 2]];
const TREE_TOPS: [u8; 4] = [0, 1, 3, u8::MAX];
/// Kinds of tree tops. The dedicated tree top is as frequent as all others together.
const TREE_TOP_KINDS: [TreeTopKind; 8] = [
    TreeTopKind::Dedicated,
    TreeTopKind::Dedicated,
    TreeTopKind::Dedicated,
    TreeTopKind::Dedicated,
    TreeTopKind::SetAssociative { ways: 1 },
    TreeTopKind::SetAssociative { ways: 2 },
    TreeTopKind::SetAssociative { ways: 4 },
    TreeTopKind::SetAssociative { ways: 8 },
];

struct Point {
    capacity: u64,
    profile: &'static [u16],
    tree_top_levels: u8,
    seed: u64,
}

fn for_each_point(check: impl Fn(&Point, &mut StdRng)) {
    let mut seed = 0;
    for capacity in CAPACITIES {
        for profile in PROFILES {
            for tree_top_levels in TREE_TOPS {
                seed += 1;
                let point = Point { capacity, profile, tree_top_levels, seed };
                check(&point, &mut StdRng::seed_from_u64(!seed));
            }
        }
    }
}

impl Point {
    /// The random generator for the engine. Every call returns a generator with the same output, so
    /// that the reference can draw the same coins.
    fn coins(&self) -> StdRng {
        StdRng::seed_from_u64(self.seed)
    }

    /// Draws the smallest tree that holds the blocks, so that slots are scarce, or a tree with up
    /// to two more levels. The stash bound exceeds the number of blocks, so no request is refused
    /// because of a full stash.
    fn tree(&self, coins: &mut StdRng) -> TreeConfig {
        let tightest = (0..)
            .find(|leaf_level| self.geometry(*leaf_level).tree_slots() >= self.capacity)
            .expect("some tree is large enough");
        let geometry = self.geometry(tightest + pick(&[0, 1, 2], coins));
        let block_bytes = pick(&[16, 17, 31, 64, 64, 100, 4096], coins);
        let tree_top_levels = self.tree_top_levels.min(geometry.leaf_level());
        let stash_blocks_max = self.capacity as usize + 1;
        let config = TreeConfig::new(self.capacity, block_bytes, geometry, stash_blocks_max);
        let tree_top = pick(&TREE_TOP_KINDS, coins);
        config
            .with_tree_top_levels(tree_top_levels)
            .with_tree_top(tree_top)
            .with_tree(TreeId(pick(&[0, 1], coins)))
    }

    fn geometry(&self, leaf_level: u8) -> Geometry {
        let below = self.profile.last().expect("profiles are not empty");
        let slots: Vec<_> = (0..=usize::from(leaf_level))
            .map(|level| *self.profile.get(level).unwrap_or(below))
            .collect();
        Geometry::profile(&slots).unwrap()
    }
}

fn any_layout(coins: &mut StdRng) -> LayoutKind {
    let kinds = [
        LayoutKind::Heap,
        LayoutKind::Striped,
        LayoutKind::Subtree { unit_bytes: 4096 },
        LayoutKind::Subtree { unit_bytes: 1000 },
    ];
    pick(&kinds, coins)
}

fn any_sealer(config: &TreeConfig, coins: &mut StdRng) -> Sealer {
    if coins.random() {
        Sealer::aes128(Key::draw(coins), config.tree)
    } else {
        Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets())
    }
}

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

// ───────────────────────────── one run ─────────────────────────────

const REQUESTS: usize = 120;
/// Number of requests between two scans of the whole tree.
const CHECK_PERIOD: usize = 40;
const BATCH_MAX: usize = 9;

/// The common interface of both references.
trait Reference {
    fn access(&mut self, address: u64, new_data: Option<&[u8]>) -> Vec<u8>;
    fn leaves(&self) -> &[Leaf];
    fn stash_addresses(&self) -> Vec<u64>;
}

impl Reference for ReferencePath<StdRng> {
    fn access(&mut self, address: u64, new_data: Option<&[u8]>) -> Vec<u8> {
        self.access(address, new_data)
    }
    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }
    fn stash_addresses(&self) -> Vec<u64> {
        self.stash_addresses()
    }
}

impl Reference for ReferenceRaw<StdRng> {
    fn access(&mut self, address: u64, new_data: Option<&[u8]>) -> Vec<u8> {
        self.access(address, new_data)
    }
    fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }
    fn stash_addresses(&self) -> Vec<u64> {
        self.stash_addresses()
    }
}

/// Runs single accesses and batches on the engine and the reference. After each, compares the
/// answers, the leaves that storage saw, and the stash.
///
/// In a batch, the engine looks up the next position before it serves an access. It still draws its
/// coins in the order of single accesses, because serving an access draws no coins.
fn same_runs<B: Scheme>(
    oram: &mut FlatOram<B, StdRng>,
    log: &Log,
    reference: &mut impl Reference,
    coins: &mut StdRng,
) {
    let mut array = PlainArray::new(oram.config());
    let mut served = 0;
    while served < REQUESTS {
        let size = if coins.random() { 1 } else { coins.random_range(0..=BATCH_MAX) };
        let requests: Vec<_> = (0..size).map(|_| Request::draw(oram.config(), coins)).collect();
        let answers = serve(oram, &requests).unwrap();
        for (request, answer) in requests.iter().zip(answers) {
            let (old, new) = array.apply(request);
            assert!(answer.is_none_or(|answer| answer == old), "the engine answers {request:?}");
            let new = (!matches!(request.kind, RequestKind::Read)).then_some(new);
            let answer = reference.access(request.address, new.as_deref());
            assert!(answer == old, "the reference answers {request:?}");
        }
        assert_eq!(log.borrow().read, reference.leaves(), "the leaves that storage sees");
        let stash: Vec<_> = oram.stash().addresses().collect();
        assert_eq!(stash, reference.stash_addresses(), "the stash, in order");
        if served / CHECK_PERIOD < (served + size) / CHECK_PERIOD {
            check_invariants(oram, log);
        }
        served += size;
    }
    array.assert_held_by(oram);
    check_invariants(oram, log);
}

/// Checks the Path ORAM invariant, and removes the scan from the log.
fn check_invariants<B: Scheme>(oram: &mut FlatOram<B, StdRng>, log: &Log) {
    let trips = log.borrow().read.len();
    oram.check_invariants().unwrap();
    log.borrow_mut().read.truncate(trips);
}

/// The specification of an ORAM: an array.
struct PlainArray(Vec<Vec<u8>>);

impl PlainArray {
    fn new(config: &TreeConfig) -> Self {
        Self(vec![vec![0; config.block_bytes]; config.capacity as usize])
    }

    /// Applies a request. Returns the block's contents before and after the request.
    fn apply(&mut self, request: &Request) -> (Vec<u8>, Vec<u8>) {
        let block = &mut self.0[request.address as usize];
        let old = block.clone();
        match request.kind {
            RequestKind::Read => {}
            RequestKind::Write => block.fill(request.fill),
            RequestKind::Update => block.iter_mut().for_each(|byte| *byte ^= request.fill),
        }
        (old, block.clone())
    }

    /// Reads every block of `oram` and compares it with the array. Evicts in the background if the
    /// stash is full.
    fn assert_held_by<B: Scheme>(&self, oram: &mut FlatOram<B, StdRng>) {
        let mut buffer = vec![0xA5; oram.block_bytes()];
        for (address, block) in (0..).zip(&self.0) {
            drain(oram);
            oram.read(address, &mut buffer).unwrap();
            assert!(buffer == *block, "block {address}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum RequestKind {
    Read,
    Write,
    Update,
}

#[derive(Clone, Debug)]
struct Request {
    address: u64,
    kind: RequestKind,
    /// The fill byte of a write, or the mask of an update.
    fill: u8,
}

impl Request {
    /// Draws a request. Half of the requests are for a few blocks, so that batches contain an
    /// address twice and the stash is hit. The rest are uniform, and so include blocks never
    /// written.
    fn draw(config: &TreeConfig, coins: &mut StdRng) -> Self {
        let addresses = if coins.random() { config.capacity } else { config.capacity.min(5) };
        Self {
            address: coins.random_range(0..addresses),
            kind: pick(&[RequestKind::Read, RequestKind::Write, RequestKind::Update], coins),
            fill: coins.random(),
        }
    }
}

/// Serves `requests` as one batch, and returns the earlier contents; `None` for writes.
fn serve(oram: &mut impl Oram, requests: &[Request]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let fills: Vec<_> = requests.iter().map(|r| vec![r.fill; oram.block_bytes()]).collect();
    let mut buffers = vec![vec![0xA5; oram.block_bytes()]; requests.len()];
    let mut seen = vec![Vec::new(); requests.len()];
    let mut updates: Vec<_> = requests
        .iter()
        .zip(&mut seen)
        .map(|(request, seen)| {
            |block: &mut [u8]| {
                *seen = block.to_vec();
                block.iter_mut().for_each(|byte| *byte ^= request.fill);
            }
        })
        .collect();
    let mut batch: Vec<_> = requests
        .iter()
        .zip(&fills)
        .zip(&mut buffers)
        .zip(&mut updates)
        .map(|(((request, fill), buffer), update)| Access {
            address: request.address,
            op: match request.kind {
                RequestKind::Read => Op::Read(buffer),
                RequestKind::Write => Op::Write(fill),
                RequestKind::Update => Op::Update(update),
            },
        })
        .collect();
    oram.access(&mut batch)?;
    let answers = requests.iter().zip(buffers).zip(seen);
    Ok(answers
        .map(|((request, buffer), seen)| match request.kind {
            RequestKind::Read => Some(buffer),
            RequestKind::Write => None,
            RequestKind::Update => Some(seen),
        })
        .collect())
}

// ───────────────────────────── a full stash ─────────────────────────────

#[test]
fn a_full_stash_of_path_oram_refuses_loses_nothing_and_recovers() {
    for seed in 0..10 {
        let (config, store, log, sealer) = tight_tree();
        let coins = StdRng::seed_from_u64(seed);
        let mut oram = PathOram::path(&config, sealer, store, coins).unwrap();
        refusals_are_harmless(&mut oram, &log, seed);
    }
}

#[test]
fn a_full_stash_of_raw_oram_refuses_loses_nothing_and_recovers() {
    for seed in 0..10 {
        let (tree, store, log, sealer) = tight_tree();
        let config = RawConfig::of_tree(tree, 3);
        let coins = StdRng::seed_from_u64(seed);
        let mut oram = RawOram::raw(&config, sealer, store, coins).unwrap();
        refusals_are_harmless(&mut oram, &log, seed);
    }
}

/// A tree whose stash soon exceeds its bound, with its store, log and sealer.
fn tight_tree() -> (TreeConfig, impl BucketStore, Log, Sealer) {
    let config = TreeConfig::new(24, 16, Geometry::uniform(5, 1).unwrap(), 3);
    let (store, log) = recorded(&config, LayoutKind::Heap);
    let sealer = Sealer::aes128(Key::from_bytes([7; 16]), config.tree);
    (config, store, log, sealer)
}

/// Sends batches until 20 of them were refused before their end, and checks that refusals lose no
/// data.
fn refusals_are_harmless<B: Scheme>(oram: &mut FlatOram<B, StdRng>, log: &Log, seed: u64) {
    let coins = &mut StdRng::seed_from_u64(!seed);
    let mut array = PlainArray::new(oram.config());
    let mut refusals = 0;
    while refusals < 20 {
        let requests: Vec<_> = (0..BATCH_MAX)
            .map(|_| Request { kind: RequestKind::Update, ..Request::draw(oram.config(), coins) })
            .collect();
        let (served, outcome) = serve_updates(oram, &requests);
        requests[..served].iter().for_each(|request| drop(array.apply(request)));
        match outcome {
            Ok(()) => assert_eq!(served, BATCH_MAX),
            Err(error) => {
                refusals += 1;
                assert_eq!(error.kind(), ErrorKind::StashFull);
                assert!(served < BATCH_MAX);
                one_more_is_refused_untouched(oram, log);
                drain(oram);
                // RAW ORAM also announces the path of its next eviction, which has been made by
                // now.
                assert_eq!(log.borrow().shown, [], "the leaf of a refused access was announced");
            }
        }
    }
    array.assert_held_by(oram);
    check_invariants(oram, log);
}

/// The number of `requests`, all updates, that took effect, and the result of the batch.
fn serve_updates(oram: &mut impl Oram, requests: &[Request]) -> (usize, Result<(), Error>) {
    let served = Cell::new(0);
    let mut updates: Vec<_> = requests
        .iter()
        .map(|request| {
            |block: &mut [u8]| {
                block.iter_mut().for_each(|byte| *byte ^= request.fill);
                served.set(served.get() + 1);
            }
        })
        .collect();
    let mut batch: Vec<_> = requests
        .iter()
        .zip(&mut updates)
        .map(|(request, update)| Access { address: request.address, op: Op::Update(update) })
        .collect();
    let outcome = oram.access(&mut batch);
    (served.get(), outcome)
}

fn one_more_is_refused_untouched<B: Scheme>(oram: &mut FlatOram<B, StdRng>, log: &Log) {
    let stash: Vec<_> = oram.stash().addresses().collect();
    let (read, written) = (log.borrow().read.len(), log.borrow().written.len());
    let error = oram.write(0, &vec![1; oram.block_bytes()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StashFull);
    assert_eq!((log.borrow().read.len(), log.borrow().written.len()), (read, written));
    assert!(oram.stash().addresses().eq(stash));
}

/// Makes background evictions until the stash is within its bound.
fn drain<B: Scheme>(oram: &mut FlatOram<B, StdRng>) {
    const EVICTIONS_MAX: usize = 10_000;
    let evictions = (0..EVICTIONS_MAX)
        .take_while(|_| {
            let over = oram.stash().blocks() > oram.config().stash_blocks_max;
            over.then(|| oram.evict().unwrap()).is_some()
        })
        .count();
    assert!(evictions < EVICTIONS_MAX, "background eviction does not empty the stash");
}

#[test]
fn a_new_block_fits_beside_a_stash_at_its_bound_and_a_full_path() {
    for seed in 0..2000 {
        let config = TreeConfig::new(7, 16, Geometry::uniform(2, 1).unwrap(), 1);
        let (store, _) = recorded(&config, LayoutKind::Heap);
        let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
        let coins = StdRng::seed_from_u64(seed);
        let mut oram = PathOram::path(&config, sealer, store, coins).unwrap();
        // In order, so that the last blocks are new when the tree is nearly full.
        let refused = (0..7).find_map(|address| oram.write(address, &[1; 16]).err());
        assert!(refused.is_none_or(|error| error.kind() == ErrorKind::StashFull));
    }
}

// ───────────────────────────── costs ─────────────────────────────

/// Tests that RAW ORAM needs at most a third of the AES blocks of Path ORAM: Tiny ORAM, section
/// IV-B.
#[test]
fn raw_oram_needs_a_third_of_the_aes_blocks_of_path_oram() {
    const CAPACITY: u64 = 1 << 20;
    let path = TreeConfig::path(CAPACITY, 64).unwrap();
    let raw = RawConfig::new(CAPACITY, 64).unwrap();
    // 21 levels; address table 1, leaf table 1, blocks 16; each read and written.
    assert_eq!(AesBlocks::of(&path).path_access(), 2 * 21 * (1 + 1 + 16));
    // 20 levels. Five accesses: headers read and written, and one block (4 AES blocks). Then one
    // whole path.
    let period = AesBlocks::of(&raw.tree).raw_period(raw.evict_period);
    assert_eq!(period, 5 * (2 * 20 + 4) + 2 * 20 * (1 + 1 + 20));
    assert!(3 * period <= u64::from(raw.evict_period) * AesBlocks::of(&path).path_access());

    path_costs_what_was_predicted(&path);
    raw_costs_what_was_predicted(&raw);
}

#[test]
fn aes_blocks_depend_on_the_number_of_accesses_alone() {
    for (block_bytes, tree_top_levels) in [(16, 0), (17, 1), (64, 0), (64, 4), (100, 2), (4096, 0)]
    {
        for capacity in [1, 100, 254, 255, 1000] {
            costs_what_was_predicted(capacity, block_bytes, tree_top_levels);
        }
    }
}

/// Tests that the number of AES blocks does not depend on the position of the requested block. A
/// block whose size is not a multiple of 16 bytes may start inside an AES block, and so touch one
/// AES block more than another block of the same size.
#[test]
fn aes_blocks_do_not_depend_on_where_a_block_lies() {
    for block_bytes in [19, 31, 44, 61, 100, 4095] {
        let config = RawConfig::new(1000, block_bytes).unwrap();
        let costs = WORKLOADS.map(|workload| raw_costs(&config, workload));
        assert!(costs.iter().all(|cost| *cost == costs[0]), "{block_bytes}: {costs:?}");
    }
}

fn costs_what_was_predicted(capacity: u64, block_bytes: usize, tree_top_levels: u8) {
    let with_top = |config: TreeConfig| {
        let tree_top_levels = tree_top_levels.min(config.geometry.leaf_level());
        config.with_tree_top_levels(tree_top_levels)
    };
    path_costs_what_was_predicted(&with_top(TreeConfig::path(capacity, block_bytes).unwrap()));
    let RawConfig { tree, evict_period, .. } = RawConfig::new(capacity, block_bytes).unwrap();
    raw_costs_what_was_predicted(&RawConfig::of_tree(with_top(tree), evict_period));
}

fn path_costs_what_was_predicted(config: &TreeConfig) {
    let access = AesBlocks::of(config).path_access();
    let predicted: Vec<_> = (1..=COSTED_ACCESSES).map(|i| i * access).collect();
    for workload in WORKLOADS {
        assert_eq!(path_costs(config, workload), predicted, "{config:?}");
    }
}

fn raw_costs_what_was_predicted(config: &RawConfig) {
    let aes_blocks = AesBlocks::of(&config.tree);
    let evictions = |i| i / u64::from(config.evict_period);
    let cost = |i| i * aes_blocks.access_only() + evictions(i) * aes_blocks.eviction_only();
    let predicted: Vec<_> = (1..=COSTED_ACCESSES).map(cost).collect();
    for workload in WORKLOADS {
        assert_eq!(raw_costs(config, workload), predicted, "{config:?}");
    }
}

const COSTED_ACCESSES: u64 = 60;

/// The number of AES blocks computed up to the end of each access.
fn path_costs(config: &TreeConfig, workload: Workload) -> Vec<u64> {
    let (store, _) = recorded(config, LayoutKind::Heap);
    let sealer = Sealer::aes128(Key::from_bytes([7; 16]), config.tree);
    costs(PathOram::path(config, sealer, store, StdRng::seed_from_u64(1)).unwrap(), workload)
}

fn raw_costs(config: &RawConfig, workload: Workload) -> Vec<u64> {
    let (store, _) = recorded(&config.tree, LayoutKind::Heap);
    let sealer = Sealer::aes128(Key::from_bytes([7; 16]), config.tree.tree);
    costs(RawOram::raw(config, sealer, store, StdRng::seed_from_u64(1)).unwrap(), workload)
}

fn costs<B: Scheme>(mut oram: FlatOram<B, StdRng>, workload: Workload) -> Vec<u64> {
    let cost_after = |i| {
        workload(&mut oram, i);
        oram.aes_blocks()
    };
    (1..=COSTED_ACCESSES).map(cost_after).collect()
}

type Workload = fn(&mut dyn Oram, u64);

/// Workloads: each function makes one access, with index `i`.
const WORKLOADS: [Workload; 4] = [
    |oram, _| oram.read(0, &mut vec![0; oram.block_bytes()]).unwrap(),
    |oram, _| oram.write(0, &vec![1; oram.block_bytes()]).unwrap(),
    |oram, i| oram.write(i % oram.capacity(), &vec![1; oram.block_bytes()]).unwrap(),
    |oram, i| {
        let address = i * i % oram.capacity().min(13);
        let op = Op::Update(&mut |block| block[0] ^= 1);
        oram.access(&mut [Access { address, op }]).unwrap();
    },
];

/// The numbers of AES blocks in section IV-B of Tiny ORAM, for the engine's bucket format.
struct AesBlocks {
    /// Number of levels in storage.
    levels: u64,
    /// AES blocks of a bucket's address table.
    header: u64,
    /// AES blocks of a bucket's leaf table and blocks.
    body: u64,
    /// AES blocks of one block.
    block: u64,
}

impl AesBlocks {
    fn of(config: &TreeConfig) -> Self {
        const CHUNK_BYTES: u64 = 16;
        let bytes_for = |largest: u64| (64 - largest.leading_zeros()).div_ceil(8).max(1);
        let slots = config.geometry.slots(0) as u64;
        // One value more than addresses, for ⊥.
        let address_bytes = u64::from(bytes_for(config.capacity));
        let leaf_bytes = u64::from(bytes_for(config.geometry.leaves() - 1));
        let block_bytes = config.block_bytes as u64;
        Self {
            levels: config.geometry.levels() as u64 - u64::from(config.tree_top_levels),
            header: (slots * address_bytes).div_ceil(CHUNK_BYTES),
            body: (slots * leaf_bytes).div_ceil(CHUNK_BYTES)
                + (slots * block_bytes).div_ceil(CHUNK_BYTES),
            block: block_bytes.div_ceil(CHUNK_BYTES),
        }
    }

    /// AES blocks to open and seal a whole path.
    fn path_access(&self) -> u64 {
        2 * self.levels * (self.header + self.body)
    }

    /// AES blocks to open and seal the headers of a path, and to open one block.
    fn access_only(&self) -> u64 {
        2 * self.levels * self.header + self.block
    }

    fn eviction_only(&self) -> u64 {
        self.path_access()
    }

    fn raw_period(&self, evict_period: u32) -> u64 {
        u64::from(evict_period) * self.access_only() + self.eviction_only()
    }
}

// ───────────────────────────── what storage sees ─────────────────────────────

/// The paths that were requested from storage.
#[derive(Default)]
struct Trips {
    read: Vec<Leaf>,
    written: Vec<Leaf>,
    /// Paths that were announced and not yet read.
    shown: Vec<Leaf>,
}

type Log = Rc<RefCell<Trips>>;

/// A recorded store for the tree of `config`. Its trees with lower numbers have another shape, so
/// that mixing up trees is noticed.
fn recorded(config: &TreeConfig, layout: LayoutKind) -> (impl BucketStore + use<>, Log) {
    let other = TreeConfig::path(9, 48).unwrap();
    let mut shapes = vec![other.shape().unwrap(); usize::from(config.tree.0)];
    shapes.push(config.shape().unwrap());
    let memory = MemoryStore::new(&shapes, layout).unwrap();
    let (log, leaf_level) = (Log::default(), config.geometry.leaf_level());
    let noted = log.clone();
    let note = move |memory: &mut MemoryStore, call: &mut Call<'_>| {
        // The last bucket of a trip is a leaf bucket, and its index is the leaf.
        let last = call.pieces.last().map(|piece| piece.bucket);
        let leaf = last.filter(|it| it.level() == leaf_level).map(|it| Leaf(it.index()));
        let mut trips = noted.borrow_mut();
        match call.operation {
            Operation::Prefetch => trips.shown.extend(leaf),
            Operation::Read => {
                trips.read.extend(leaf);
                trips.shown.retain(|shown| Some(*shown) != leaf);
            }
            Operation::Write => trips.written.extend(leaf),
            Operation::Flush => {}
        }
        call.forward(memory)
    };
    (Faulty::new(memory, note), log)
}
