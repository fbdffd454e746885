//! Tests of background eviction on trees with small middle buckets (IR-ORAM, IR-Alloc). Overflow
//! costs additional paths but never fails an access, and storage learns only the number of paths.

use std::collections::HashMap;

use oblivio_core::geometry::{Geometry, Leaf};
use oblivio_core::scheme::Scheme;
use oblivio_core::store::Part;
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{
    FlatOram, Front, MemoryStore, NoSecrecy, Oram, PathOram, RawConfig, RawOram, Sealer, TreeConfig,
};
use oblivio_testkit::statistics::{
    Return, Verdicts, histogram, homogeneity, repeats, serial_correlation, uniformity,
    uniformity_of_pairs,
};
use oblivio_testkit::workload::Workload;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Numbers of slots per level, from the root down, from cautious to aggressive. They resemble the
/// profiles that the lab's search finds.
const PROFILES: [[u16; 9]; 3] =
    [[1, 1, 2, 2, 3, 3, 4, 4, 4], [1, 1, 1, 2, 2, 3, 4, 4, 4], [1, 1, 1, 1, 1, 2, 3, 4, 4]];

const LEAF_LEVEL: u8 = 8;
const LEAVES: u64 = 1 << LEAF_LEVEL;
const BLOCK_BYTES: usize = 16;

/// Number of blocks: about half of the slots of a uniform tree with Z = 4.
const CAPACITY: u64 = 4 * LEAVES;

/// A stash bound so small that every profile needs background evictions.
const STASH_BLOCKS_MAX: usize = 10;

const EVICT_PERIOD: u32 = 3;

#[test]
fn overflow_costs_evictions_and_never_an_access() {
    for profile in PROFILES {
        endure(&profile, 100_000);
    }
}

#[test]
#[ignore = "half a minute: a million accesses on each profile"]
fn overflow_costs_evictions_and_never_an_access_for_long() {
    for profile in PROFILES {
        endure(&profile, 1_000_000);
    }
}

fn endure(profile: &[u16], accesses: u64) {
    let tree = tree(profile);
    let path_store = memory(&tree);
    endure_on(PathOram::path(&tree, null(), path_store, coins(1)).unwrap(), accesses);
    let raw_store = memory(&tree);
    let raw = RawConfig::of_tree(tree, EVICT_PERIOD);
    endure_on(RawOram::raw(&raw, null(), raw_store, coins(2)).unwrap(), accesses);
}

/// Serves accesses and compares each read with the last write.
fn endure_on<B: Scheme>(mut oram: FlatOram<B, StdRng>, accesses: u64) {
    let mut coins = coins(3);
    let mut written = vec![[0; BLOCK_BYTES]; CAPACITY as usize];
    let mut evictions = 0;
    let everything_once = 0..CAPACITY;
    let anything = (0..accesses).map(|_| coins.random_range(0..CAPACITY)).collect::<Vec<_>>();
    for (i, address) in (0u64..).zip(everything_once.chain(anything)) {
        evictions += drain(&mut oram);
        let mut before = [0; BLOCK_BYTES];
        oram.update(address, &mut |block| {
            before.copy_from_slice(block);
            block[..8].copy_from_slice(&i.to_le_bytes());
        })
        .unwrap();
        let written = &mut written[address as usize];
        assert!(before == *written, "access {i}");
        written[..8].copy_from_slice(&i.to_le_bytes());
    }
    assert!(evictions > accesses / 1000, "only {evictions} evictions: the test is too easy");
    oram.check_invariants().unwrap();
}

/// Makes background evictions until the stash is within its bound. Returns the number of evictions.
fn drain<B: Scheme>(oram: &mut FlatOram<B, StdRng>) -> u64 {
    drain_and(oram, |_| ())
}

/// Drains the stash like [`drain`], and calls `look` after each eviction.
fn drain_and<B: Scheme>(
    oram: &mut FlatOram<B, StdRng>,
    mut look: impl FnMut(&mut FlatOram<B, StdRng>),
) -> u64 {
    const EVICTIONS_MAX: u64 = 10_000;
    let mut evictions = 0;
    while oram.stash().blocks() > oram.config().stash_blocks_max {
        oram.evict().unwrap();
        look(oram);
        evictions += 1;
        assert!(evictions < EVICTIONS_MAX, "background eviction does not empty the stash");
    }
    evictions
}

/// A path that storage saw.
struct ObservedPath {
    leaf: u64,
    /// The requested block. `None` for a background eviction.
    requested: Option<u64>,
    /// Operations, levels, parts and bytes of the path: everything that storage sees except the
    /// leaf.
    shape: Vec<(Operation, u8, Part, u64)>,
}

/// Tests that in Path ORAM a background eviction looks like an access to a random leaf.
#[test]
fn evictions_of_path_oram_look_like_accesses_to_random_leaves() {
    const ACCESSES: usize = 40_000;
    const BINS: u64 = 8;
    let mut verdicts = Verdicts::new(1e-6);
    let mut judged = 0;
    let tree = tree(&PROFILES[2]);
    for workload in Workload::ALL {
        let store = Recorder::new(memory(&tree), Vec::new());
        let mut oram = PathOram::path(&tree, null(), store, coins(4)).unwrap();
        (0..CAPACITY).for_each(|address| write(&mut oram, address));
        oram.store_mut().sink_mut().clear();

        let mut paths = Vec::new();
        for request in workload.requests(CAPACITY, 1).take(ACCESSES) {
            drain_and(&mut oram, |oram| {
                paths.push(take_path(oram.store_mut().sink_mut(), None));
            });
            oram.write(request.address, &[1; BLOCK_BYTES]).unwrap();
            paths.push(take_path(oram.store_mut().sink_mut(), Some(request.address)));
        }

        assert!(paths.iter().all(|path| path.shape == paths[0].shape), "{workload}");
        let leaves_of = |is_eviction: bool| {
            let chosen = paths.iter().filter(move |path| path.requested.is_none() == is_eviction);
            chosen.map(|path| path.leaf).collect::<Vec<_>>()
        };
        let (evicted, accessed) = (leaves_of(true), leaves_of(false));
        // A workload that rarely fills the stash makes too few evictions for a test.
        if evicted.len() < 30 * LEAVES as usize {
            continue;
        }
        judged += 1;
        let mut add = |test: &str, p_value| verdicts.add(format!("{test}, {workload}"), p_value);
        let evictions = histogram(evicted.iter().copied(), LEAVES, LEAVES);
        add("uniform", uniformity(&evictions));
        add("uncorrelated", serial_correlation(&evicted));
        add(
            "like accesses",
            homogeneity(&evictions, &histogram(accessed.iter().copied(), LEAVES, LEAVES)),
        );
        add("independent of the paths of later requests", repeats(&foreshadowed(&paths), LEAVES));
        let is_followed =
            |pair: &&[ObservedPath]| pair[0].requested.is_none() && pair[1].requested.is_some();
        let followed = paths.windows(2).filter(is_followed);
        let pairs = followed.map(|pair| (pair[0].leaf, pair[1].leaf)).collect::<Vec<_>>();
        if pairs.len() >= 30 * (BINS * BINS) as usize {
            add("independent of the next access", uniformity_of_pairs(pairs, LEAVES, BINS));
        }
    }
    assert!(judged >= 2, "only {judged} workloads needed background evictions");
    verdicts.conclude();
}

/// Tests that in RAW ORAM a background eviction is the next eviction of the public order, made
/// early.
#[test]
fn evictions_of_raw_oram_keep_to_the_published_order() {
    const ACCESSES: usize = 10_000;
    let raw = RawConfig::of_tree(tree(&PROFILES[2]), EVICT_PERIOD);
    for workload in Workload::ALL {
        let store = Recorder::new(memory(&raw.tree), Vec::new());
        let mut oram = RawOram::raw(&raw, null(), store, coins(5)).unwrap();
        let mut background = 0;
        let fill = (0..CAPACITY).collect::<Vec<_>>();
        let requested =
            workload.requests(CAPACITY, 1).take(ACCESSES).map(|request| request.address);
        for address in fill.into_iter().chain(requested) {
            background += drain(&mut oram);
            oram.write(address, &[1; BLOCK_BYTES]).unwrap();
        }
        let accesses = CAPACITY + ACCESSES as u64;
        // Only evictions write whole buckets.
        let evicted = oram.store_mut().sink().iter().filter_map(|event| {
            let piece = event.piece?;
            let at_leaf = piece.bucket.level() == LEAF_LEVEL && piece.part == Part::Whole;
            (event.operation == Operation::Write && at_leaf).then(|| piece.bucket.index())
        });
        let evicted = evicted.collect::<Vec<_>>();
        assert_eq!(evicted.len() as u64, accesses / u64::from(EVICT_PERIOD) + background);
        assert!((0..).zip(&evicted).all(|(g, leaf): (u64, _)| g % LEAVES == *leaf), "{workload}");
    }
}

fn write<B: Scheme>(oram: &mut FlatOram<B, StdRng>, address: u64) {
    drain(oram);
    oram.write(address, &[1; BLOCK_BYTES]).unwrap();
}

/// Takes the events since the last call, and checks that they are one complete path.
fn take_path(events: &mut Vec<Event>, requested: Option<u64>) -> ObservedPath {
    let shape = events.iter().map(|event| {
        let piece = event.piece.unwrap();
        (event.operation, piece.bucket.level(), piece.part, event.bytes)
    });
    let shape = shape.collect();
    let leaf = events.last().unwrap().piece.unwrap().bucket;
    assert_eq!(leaf.level(), LEAF_LEVEL);
    let is_on_path = |event: &Event| event.piece.unwrap().bucket.is_on_path(Leaf(leaf.index()));
    assert!(events.iter().all(is_on_path));
    events.clear();
    ObservedPath { leaf: leaf.index(), requested, shape }
}

/// For each access, pairs its leaf with the leaves of the first evictions (at most 30) since the
/// previous access to the same block. During that time, the block may have waited in the stash,
/// already mapped to the leaf of the access.
fn foreshadowed(paths: &[ObservedPath]) -> Vec<Return> {
    const EVICTIONS: usize = 30;
    let mut evicted = Vec::new();
    let mut requested_at = HashMap::new();
    let mut pairs = Vec::new();
    for path in paths {
        match path.requested {
            None => evicted.push(path.leaf),
            Some(address) => {
                let since = requested_at.insert(address, evicted.len()).unwrap_or(evicted.len());
                let first = evicted[since..].iter().take(EVICTIONS);
                pairs.extend(first.map(|leaf| Return { earlier: *leaf, later: path.leaf }));
            }
        }
    }
    pairs
}

fn tree(profile: &[u16]) -> TreeConfig {
    TreeConfig::new(CAPACITY, BLOCK_BYTES, Geometry::profile(profile).unwrap(), STASH_BLOCKS_MAX)
}

fn memory(tree: &TreeConfig) -> MemoryStore {
    MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap()
}

fn null() -> Sealer {
    Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets())
}

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}
