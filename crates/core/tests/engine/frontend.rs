//! Tests of the front ends with the position map in an ORAM, against a plain map and against each
//! other.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use oblivio_core::front::FrontTally;
use oblivio_core::scheme::{PathScheme, RawScheme, Scheme};
use oblivio_core::store::TreeId;
use oblivio_core::{
    Access, Error, ErrorKind, FreecursiveConfig, FreecursiveOram, Front, Geometry, HitPolicy,
    Integrity, Key, LayoutKind, Leaf, MemoryStore, Op, Oram, RawConfig, RecursiveConfig,
    RecursiveOram, Sealer, TreeConfig, TreeTopKind,
};
use oblivio_testkit::workload::{Request, Workload};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::failing::failing;

// ───────────────────────────── setup ─────────────────────────────

type PathFreecursive<S = MemoryStore> = FreecursiveOram<PathScheme<S>, StdRng>;
type RawFreecursive<S = MemoryStore> = FreecursiveOram<RawScheme<S>, StdRng>;

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn memory(tree: &TreeConfig) -> MemoryStore {
    let shapes = vec![tree.shape().unwrap(); usize::from(tree.tree.0) + 1];
    MemoryStore::new(&shapes, LayoutKind::Heap).unwrap()
}

fn sealer(tree: &TreeConfig, seed: u64) -> Sealer {
    Sealer::aes128(Key::draw(&mut coins(!seed)), tree.tree)
}

fn path_backend(tree: &TreeConfig, seed: u64) -> PathScheme<MemoryStore> {
    PathScheme::new(tree, sealer(tree, seed), memory(tree)).unwrap()
}

fn raw_backend(config: &RawConfig, seed: u64) -> RawScheme<MemoryStore> {
    RawScheme::new(config, sealer(&config.tree, seed), memory(&config.tree)).unwrap()
}

fn path(config: &FreecursiveConfig, seed: u64) -> PathFreecursive {
    let scheme = path_backend(&config.path_tree().unwrap(), seed);
    FreecursiveOram::new(config, scheme, coins(seed)).unwrap()
}

fn raw(config: &FreecursiveConfig, seed: u64) -> RawFreecursive {
    let scheme = raw_backend(&config.raw_tree().unwrap(), seed);
    FreecursiveOram::new(config, scheme, coins(seed)).unwrap()
}

fn recursive(
    config: &RecursiveConfig,
    seed: u64,
) -> RecursiveOram<PathScheme<MemoryStore>, StdRng> {
    let trees = config.path_trees().unwrap();
    let shapes: Vec<_> = trees.iter().map(|tree| tree.shape().unwrap()).collect();
    let schemes = trees.iter().map(|tree| {
        let store = MemoryStore::new(&shapes, LayoutKind::Heap).unwrap();
        PathScheme::new(tree, sealer(tree, seed), store).unwrap()
    });
    RecursiveOram::new(config, schemes.collect(), coins(seed)).unwrap()
}

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

// ───────────────────────────── answers ─────────────────────────────

/// Serves one random request with the ORAM and with the model, and compares the answers.
fn request_both(oram: &mut impl Oram, model: &mut HashMap<u64, Vec<u8>>, coins: &mut StdRng) {
    // Half of the requests go to a few blocks, so that counters overflow.
    let addresses = if coins.random() { oram.capacity() } else { oram.capacity().min(3) };
    let address = coins.random_range(0..addresses);
    let fill: u8 = coins.random();
    let held = model.entry(address).or_insert_with(|| vec![0; oram.block_bytes()]);
    match coins.random_range(0..3) {
        0 => {
            let mut buffer = vec![0xA5; oram.block_bytes()];
            oram.read(address, &mut buffer).unwrap();
            assert!(buffer == *held, "block {address}");
        }
        1 => {
            held.fill(fill);
            oram.write(address, held).unwrap();
        }
        _ => {
            let mut seen = Vec::new();
            let mut change = |block: &mut [u8]| {
                seen = block.to_vec();
                block[0] ^= fill;
            };
            oram.access(&mut [Access { address, op: Op::Update(&mut change) }]).unwrap();
            assert!(seen == *held, "block {address}");
            held[0] ^= fill;
        }
    }
}

#[track_caller]
fn assert_holds(oram: &mut impl Oram, model: &HashMap<u64, Vec<u8>>) {
    let mut buffer = vec![0xA5; oram.block_bytes()];
    for address in 0..oram.capacity() {
        oram.read(address, &mut buffer).unwrap();
        let held = model.get(&address);
        assert!(held.map_or(buffer.iter().all(|byte| *byte == 0), |held| buffer == *held));
    }
}

/// Draws a hit policy and an integrity setting that can be combined.
fn any_policy(coins: &mut StdRng) -> (HitPolicy, Integrity) {
    let policies = [
        (HitPolicy::Access, Integrity::None),
        (HitPolicy::Access, Integrity::Pmmac),
        (HitPolicy::Serve, Integrity::None),
    ];
    pick(&policies, coins)
}

/// Draws a configuration whose position map has `depth` levels in the tree.
fn any_config(depth: usize, coins: &mut StdRng) -> FreecursiveConfig {
    loop {
        let block_bytes = pick(&[16, 17, 24, 64, 100], coins);
        let counter_bits = pick(&[1, 2, 3, 5, 8, 14], coins);
        let fitting = (block_bytes as u64 - 8) * 8 / u64::from(counter_bits);
        let plb_ways = pick(&[1, 2, 4], coins);
        let (hits, integrity) = any_policy(coins);
        let config =
            FreecursiveConfig::new(pick(&[1, 2, 7, 33, 100, 255, 600], coins), block_bytes)
                .unwrap()
                .with_fan_out(pick(&[2, 3, 4, 8, 32], coins).min(fitting))
                .with_counter_bits(counter_bits)
                .with_client_entries_max(pick(&[1, 2, 10, 50, 1000], coins))
                .with_plb_blocks(plb_ways * pick(&[0, 1, 2, 5, 64], coins))
                .with_plb_ways(plb_ways)
                .with_hits(hits)
                .with_integrity(integrity);
        if config.fan_out >= 2 && config.depth().unwrap() == depth {
            return config;
        }
    }
}

fn run<B: Scheme>(oram: &mut FreecursiveOram<B, StdRng>, coins: &mut StdRng) -> FrontTally {
    let mut model = HashMap::new();
    for i in 1..=200 {
        request_both(oram, &mut model, coins);
        if i % 40 == 0 {
            oram.check_invariants().unwrap();
        }
    }
    let tally = oram.tally();
    assert_eq!(tally.data_accesses + tally.stash_hits, 200);
    assert_holds(oram, &model);
    oram.check_invariants().unwrap();
    tally
}

#[test]
fn freecursive_is_a_map() {
    for depth in 0..=4 {
        let (mut remaps, mut hits, mut fetches) = (0, 0, 0);
        let (mut served, mut found) = (0, 0);
        for seed in 0..40 {
            let coins = &mut coins(seed << 8 | depth as u64);
            let config = any_config(depth, coins);
            let tally = if coins.random() {
                let tree = with_any_top(config.path_tree().unwrap(), coins);
                let scheme = path_backend(&tree, seed);
                let mut oram = FreecursiveOram::new(&config, scheme, self::coins(seed)).unwrap();
                assert_eq!(oram.depth(), depth);
                run(&mut oram, coins)
            } else {
                let mut config_of_tree = config.raw_tree().unwrap();
                config_of_tree.tree = with_any_top(config_of_tree.tree, coins);
                let scheme = raw_backend(&config_of_tree, seed);
                run(&mut FreecursiveOram::new(&config, scheme, self::coins(seed)).unwrap(), coins)
            };
            if config.hits == HitPolicy::Access {
                assert_eq!((tally.stash_hits, tally.position_map_stash_hits), (0, 0));
            }
            served += tally.stash_hits;
            found += tally.position_map_stash_hits;
            remaps += tally.remap_accesses;
            hits += tally.plb_hits;
            fetches += tally.position_map_accesses;
            if config.plb_blocks == 0 {
                assert_eq!(tally.plb_hits, 0);
            }
            if config.plb_blocks == 0 && config.hits == HitPolicy::Access {
                assert_eq!(tally.position_map_accesses, 200 * depth as u64);
            }
        }
        let rare = [remaps, hits, fetches];
        assert!(rare.iter().all(|times| (*times > 500) == (depth > 0)), "{depth}: {rare:?}");
        assert!(served > 200 && (found > 100) == (depth > 0), "{depth}: {served} {found}");
    }
}

/// `tree` with a random tree top of either kind, or without one.
fn with_any_top(tree: TreeConfig, coins: &mut StdRng) -> TreeConfig {
    let tree_top_levels = pick(&[0, 1, 3], coins).min(tree.geometry.leaf_level());
    let tree_top = match pick(&[0, 1, 2, 4], coins) {
        0 => TreeTopKind::Dedicated,
        ways => TreeTopKind::SetAssociative { ways },
    };
    tree.with_tree_top_levels(tree_top_levels).with_tree_top(tree_top)
}

/// A configuration with 150 blocks, few enough for tests on trees so tight that blocks stay in the
/// stash.
fn small() -> FreecursiveConfig {
    FreecursiveConfig::new(150, 32)
        .unwrap()
        .with_fan_out(8)
        .with_counter_bits(4)
        .with_client_entries_max(4)
        .with_plb_blocks(4)
        .with_plb_ways(1)
        .with_hits(HitPolicy::Access)
        .with_integrity(Integrity::None)
}

/// Tests Freecursive ORAM against a map on trees so tight that blocks stay in the stash, with and
/// without a tree top.
#[test]
fn freecursive_is_a_map_in_tight_trees() {
    for seed in 0..20 {
        let coins = &mut coins(seed);
        let (hits, integrity) = any_policy(coins);
        let config = small().with_hits(hits).with_integrity(integrity);
        let tree = TreeConfig::new(
            config.tree_capacity().unwrap(),
            config.tree_block_bytes(),
            Geometry::uniform(6, 2).unwrap(),
            250,
        )
        .with_burst_accesses_max(config.burst_accesses_max().unwrap())
        .with_tree(TreeId(1));
        let tree = with_any_top(tree, coins);
        if seed % 2 == 0 {
            let scheme = path_backend(&tree, seed);
            run(&mut FreecursiveOram::new(&config, scheme, self::coins(seed)).unwrap(), coins);
        } else {
            let scheme = raw_backend(&RawConfig::of_tree(tree, 3), seed);
            run(&mut FreecursiveOram::new(&config, scheme, self::coins(seed)).unwrap(), coins);
        }
    }
}

#[test]
fn plain_recursion_is_a_map() {
    for (capacity, block_bytes, client_entries_max, levels) in
        [(1, 16, 1, 1), (100, 16, 100, 1), (100, 16, 99, 2), (100, 16, 10, 3), (300, 64, 1, 4)]
    {
        let config = RecursiveConfig { capacity, block_bytes, client_entries_max };
        let mut oram = recursive(&config, capacity);
        let (mut model, coins) = (HashMap::new(), &mut coins(capacity));
        for _ in 0..1000 {
            request_both(&mut oram, &mut model, coins);
        }
        assert_eq!(oram.path_accesses(), 1000 * levels);
        assert!(oram.client_bytes() as u64 <= 4 * client_entries_max);
        assert_holds(&mut oram, &model);
    }
}

#[test]
fn freecursive_answers_like_plain_recursion() {
    let mut free_config = FreecursiveConfig::new(500, 64).unwrap();
    free_config.client_entries_max = 4;
    free_config.plb_blocks = 4;
    free_config.counter_bits = 3;
    let plain_config = RecursiveConfig { capacity: 500, block_bytes: 64, client_entries_max: 4 };
    for workload in Workload::ALL {
        let mut free = [path(&free_config, 1)];
        let mut raw = [raw(&free_config, 2)];
        let mut plain = [recursive(&plain_config, 3)];
        for (i, Request { address, is_write }) in (0u64..).zip(workload.requests(500, 4).take(1500))
        {
            if is_write {
                let mut block = [0; 64];
                block[..8].copy_from_slice(&i.to_le_bytes());
                free[0].write(address, &block).unwrap();
                raw[0].write(address, &block).unwrap();
                plain[0].write(address, &block).unwrap();
            } else {
                let mut blocks = [[0xA5; 64], [0x5A; 64], [0; 64]];
                free[0].read(address, &mut blocks[0]).unwrap();
                raw[0].read(address, &mut blocks[1]).unwrap();
                plain[0].read(address, &mut blocks[2]).unwrap();
                assert!(blocks.iter().all(|block| *block == blocks[2]), "{workload}, request {i}");
            }
        }
    }
}

#[test]
fn a_batch_is_served_in_order() {
    let mut config = FreecursiveConfig::new(100, 16).unwrap();
    (config.client_entries_max, config.plb_blocks) = (1, 2);
    let mut oram = path(&config, 1);
    let (mut before, mut after) = ([9; 16], [9; 16]);
    oram.access(&mut [
        Access { address: 5, op: Op::Read(&mut before) },
        Access { address: 5, op: Op::Write(&[1; 16]) },
        Access { address: 99, op: Op::Write(&[2; 16]) },
        Access { address: 5, op: Op::Read(&mut after) },
    ])
    .unwrap();
    assert_eq!((before, after), ([0; 16], [1; 16]));
}

// ───────────────────────────── numbers of accesses ─────────────────────────────

/// Number of path accesses per request of `workload`, after every block was written in order.
fn accesses_per_request(config: &FreecursiveConfig, workload: Workload) -> f64 {
    const REQUESTS: usize = 20_000;
    let mut oram = path(config, 1);
    let block = vec![1; config.block_bytes];
    (0..config.capacity).for_each(|address| oram.write(address, &block).unwrap());
    let before = oram.tally();
    let mut buffer = block.clone();
    for request in workload.requests(config.capacity, 1).take(REQUESTS) {
        oram.read(request.address, &mut buffer).unwrap();
        assert_eq!(buffer, block);
    }
    let tally = oram.tally();
    assert_eq!(tally.data_accesses - before.data_accesses, REQUESTS as u64);
    (tally.accesses() - before.accesses()) as f64 / REQUESTS as f64
}

/// A configuration with 4096 blocks, 128 position-map blocks above them, and 4 above those, whose
/// leaves are on the client.
fn two_levels(plb_blocks: usize, plb_ways: usize) -> FreecursiveConfig {
    let config = FreecursiveConfig::new(4096, 64).unwrap();
    let config =
        config.with_client_entries_max(4).with_plb_blocks(plb_blocks).with_plb_ways(plb_ways);
    assert_eq!((config.fan_out, config.depth().unwrap()), (32, 2));
    config
}

#[test]
fn a_scan_needs_about_one_path_a_request() {
    let per_request = accesses_per_request(&two_levels(64, 1), Workload::Scan);
    let ideal = 1.0 + 1.0 / 32.0 + 1.0 / 1024.0;
    assert!(per_request >= ideal - 0.01 && per_request < 1.1, "{per_request}");
}

#[test]
fn without_a_plb_every_request_needs_its_whole_chain() {
    for workload in [Workload::Scan, Workload::Uniform] {
        let per_request = accesses_per_request(&two_levels(0, 1), workload);
        assert!((3.0..3.01).contains(&per_request), "{per_request}");
    }
}

/// Tests the miss rate of direct-mapped, 4-way and fully associative PLBs that are half as large as
/// the level they cache: half of the uniform requests miss. If 128 blocks share 64 direct-mapped
/// lines, each line has two candidates and holds the last one used. A fully associative PLB holds
/// the last 64 of the 128 blocks. In a PLB as large as the level, almost no request misses.
#[test]
fn uniform_requests_miss_as_often_as_the_plb_is_too_small() {
    let config = |plb_ways| two_levels(64, plb_ways).with_client_entries_max(128);
    for plb_ways in [1, 4, 64] {
        let config = config(plb_ways);
        assert_eq!(config.depth().unwrap(), 1);
        let per_request = accesses_per_request(&config, Workload::Uniform);
        assert!((per_request - 1.5).abs() < 0.015, "{plb_ways} ways: {per_request}");
    }
    let larger = config(1).with_plb_blocks(128);
    let per_request = accesses_per_request(&larger, Workload::Uniform);
    assert!(per_request < 1.001, "the whole level fits: {per_request}");
}

/// Tests that calls of `fetch_position`, until it returns false, make all the position-map accesses
/// of the next request.
#[test]
fn positions_fetched_ahead_are_not_fetched_again() {
    let mut coins = coins(8);
    let config = two_levels(8, 2);
    let (mut ahead, mut at_once) = (path(&config, 1), path(&config, 1));
    let mut fetched = [0; 3];
    for _ in 0..500 {
        let address = coins.random_range(0..config.capacity);
        let mut fetches = 0;
        while ahead.fetch_position(address).unwrap() {
            fetches += 1;
        }
        fetched[fetches] += 1;
        let before = ahead.tally();
        ahead.write(address, &vec![1; config.block_bytes]).unwrap();
        let after = ahead.tally();
        assert_eq!(after.data_accesses, before.data_accesses + 1);
        assert_eq!(after.position_map_accesses, before.position_map_accesses);
        at_once.write(address, &vec![1; config.block_bytes]).unwrap();
        assert_eq!(after.accesses(), at_once.tally().accesses());
    }
    assert!(fetched.iter().all(|times| *times > 10), "{fetched:?}");
    ahead.check_invariants().unwrap();
    assert_eq!(
        ahead.fetch_position(config.capacity).unwrap_err().kind(),
        ErrorKind::InvalidRequest
    );
    assert!(
        !path(&two_levels(0, 1), 1).fetch_position(0).unwrap(),
        "without a PLB nothing is fetched ahead"
    );
}

#[test]
fn every_fetch_is_predicted_by_a_model_of_the_tags() {
    for plb_blocks in [1, 7, 64] {
        let config = two_levels(plb_blocks, 1);
        let starts = [0, 4096, 4096 + 128];
        let mut tags = vec![None; plb_blocks];
        let mut oram = path(&config, 3);
        for request in Workload::Uniform.requests(4096, 9).take(3000) {
            let chain =
                [1, 2].map(|level| starts[level] + request.address / 32u64.pow(level as u32));
            let set = |address: u64| (address % plb_blocks as u64) as usize;
            let held = chain.iter().position(|address| tags[set(*address)] == Some(*address));
            let missing = &chain[..held.unwrap_or(chain.len())];
            for address in missing.iter().rev() {
                tags[set(*address)] = Some(*address);
            }
            let before = oram.tally();
            oram.write(request.address, &[1; 64]).unwrap();
            let fetches = oram.tally().position_map_accesses - before.position_map_accesses;
            assert_eq!(fetches, missing.len() as u64, "{plb_blocks} blocks");
            let hits = oram.tally().plb_hits - before.plb_hits;
            assert_eq!(hits, u64::from(held.is_some()));
        }
    }
}

#[test]
fn a_group_is_reset_exactly_when_a_counter_overflows() {
    for counter_bits in [1, 2, 4] {
        let mut config = FreecursiveConfig::new(64, 64).unwrap();
        (config.client_entries_max, config.fan_out, config.counter_bits) = (8, 8, counter_bits);
        let mut oram = path(&config, 1);
        // Counters hold 0 to 2^bits - 1. The access after the last value resets the group.
        for round in 1..=3u64 {
            for _ in 0..1 << counter_bits {
                assert_eq!(oram.tally().remap_accesses, (round - 1) * 7);
                oram.write(5, &[1; 64]).unwrap();
            }
            assert_eq!(oram.tally().remap_accesses, round * 7);
        }
    }
}

/// Tests that the number of path accesses, which storage sees, does not depend on coins, data or
/// operations.
#[test]
fn the_number_of_accesses_depends_only_on_the_addresses() {
    let config = two_levels(7, 1).with_counter_bits(4);
    let [mut one, mut other] = [path(&config, 1), path(&config, 2)];
    for request in Workload::Zipf.requests(4096, 5).take(3000) {
        one.read(request.address, &mut [0; 64]).unwrap();
        other.update(request.address, &mut |block| block[0] ^= 1).unwrap();
        assert_eq!(one.tally(), other.tally());
    }
    assert!(one.tally().remap_accesses > 100);
}

#[test]
fn the_client_is_small() {
    let mut config = FreecursiveConfig::new(1 << 14, 64).unwrap();
    config.client_entries_max = 16;
    let oram = path(&config, 1);
    assert_eq!(oram.depth(), 2);
    assert!((64 * 64 + 16 * 4..12_000).contains(&oram.client_bytes()), "{}", oram.client_bytes());
}

// ───────────────────────────── taking and appending ─────────────────────────────

fn taken_and_appended<B: Scheme>(scheme: &mut B) {
    let (from, to, later) = (Leaf(3), Leaf(1), Leaf(6));
    let mut block = [0xA5; 16];
    assert!(!scheme.take(5, from, &mut block).unwrap());
    assert_eq!(block, [0; 16], "never written");

    scheme.access(5, from, to, &mut Op::Write(&[7; 16])).unwrap();
    assert!(scheme.take(5, to, &mut block).unwrap());
    assert_eq!(block, [7; 16]);
    scheme
        .visit_blocks(&mut |_, address, _| assert_ne!(address, 5, "the block is in two places"))
        .unwrap();
    assert!(!scheme.take(5, to, &mut block).unwrap());

    scheme.append(5, later, &[8; 16]).unwrap();
    assert!(scheme.stash().addresses().any(|held| held == 5));
    let mut leaves = Vec::new();
    scheme
        .visit_blocks(&mut |_, address, leaf| {
            if address == 5 {
                leaves.push(leaf);
            }
        })
        .unwrap();
    assert_eq!(leaves, [later]);
    scheme.access(5, later, to, &mut Op::Read(&mut block)).unwrap();
    assert_eq!(block, [8; 16]);
}

#[test]
fn a_block_taken_is_nowhere_and_one_appended_is_in_the_stash() {
    for tree_top_levels in [0, 2] {
        let tree = TreeConfig::path(8, 16).unwrap().with_tree_top_levels(tree_top_levels);
        taken_and_appended(&mut path_backend(&tree, 1));
        for evict_period in [1, 2, 5] {
            let config = RawConfig::of_tree(tree.clone(), evict_period);
            taken_and_appended(&mut raw_backend(&config, 1));
        }
    }
}

/// Appends blocks until one is refused. Checks that no block is lost, and that evictions make room.
fn appended_until_full<B: Scheme>(scheme: &mut B) {
    let capacity = scheme.config().capacity;
    let beyond = (0..capacity).find(|a| scheme.append(*a, Leaf(*a), &[*a as u8; 16]).is_err());
    let held = beyond.expect("the stash must become full");
    let config = scheme.config();
    assert!(held as usize >= config.stash_blocks_max + config.burst_accesses_max);
    let error = scheme.append(held, Leaf(0), &[0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StashFull);
    assert_eq!(scheme.check_ready().unwrap_err().kind(), ErrorKind::StashFull);
    assert_eq!(scheme.stash().blocks() as u64, held);
    let mut evictions = 0;
    let coins = &mut coins(1);
    while scheme.check_ready().is_err() {
        scheme.evict(coins).unwrap();
        evictions += 1;
        assert!(evictions < 10_000, "no eviction makes room");
    }
    for address in 0..held {
        let mut block = [0; 16];
        while scheme.check_ready().is_err() {
            scheme.evict(coins).unwrap();
        }
        scheme.access(address, Leaf(address), Leaf(address), &mut Op::Read(&mut block)).unwrap();
        assert_eq!(block, [address as u8; 16]);
    }
}

#[test]
fn a_stash_without_room_refuses_what_is_appended_and_loses_nothing() {
    let tree = TreeConfig::path(256, 16).unwrap().with_stash_blocks_max(160);
    appended_until_full(&mut path_backend(&tree, 1));
    appended_until_full(&mut raw_backend(&RawConfig::of_tree(tree, 3), 1));
}

// ───────────────────────────── errors ─────────────────────────────

#[test]
fn schemes_that_are_too_small_are_invalid_configs() {
    let mut config = FreecursiveConfig::new(1000, 64).unwrap();
    (config.client_entries_max, config.fan_out) = (1, 32);
    let tree = config.path_tree().unwrap();
    let others = [
        tree.clone().with_capacity(tree.capacity - 1),
        tree.clone().with_block_bytes(65),
        tree.clone().with_burst_accesses_max(tree.burst_accesses_max - 1),
    ];
    assert!(tree.burst_accesses_max > 64);
    for other in others {
        let error = FreecursiveOram::new(&config, path_backend(&other, 1), coins(1)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    }
    for burst_accesses_max in [0, 63, usize::MAX] {
        let tree = tree.clone().with_burst_accesses_max(burst_accesses_max);
        assert_eq!(tree.shape().unwrap_err().kind(), ErrorKind::InvalidConfig);
    }

    let config = RecursiveConfig { capacity: 100, block_bytes: 16, client_entries_max: 5 };
    let trees = config.path_trees().unwrap();
    assert_eq!(trees.len(), 4);
    let schemes = trees.iter().skip(1).map(|tree| path_backend(tree, 1)).collect();
    let error = RecursiveOram::new(&config, schemes, coins(1)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    let config = RecursiveConfig { client_entries_max: 0, ..config };
    assert_eq!(config.path_trees().unwrap_err().kind(), ErrorKind::InvalidConfig);
}

/// Tests plain recursion as a `Front`: a request makes one path access in each tree, and blocks
/// cannot be taken out.
#[test]
fn a_recursive_oram_is_a_front_end_that_serves_and_takes_nothing_on_the_client() {
    let config = RecursiveConfig { capacity: 300, block_bytes: 16, client_entries_max: 5 };
    let mut oram = recursive(&config, 1).with_coins(coins(9));
    let maps = config.blocks().unwrap().len() as u64 - 1;
    for address in 0..config.capacity {
        oram.write(address, &[address as u8; 16]).unwrap();
    }
    assert!(!oram.serve_on_client(7, &mut Op::Read(&mut [0; 16])).unwrap());
    assert!(!oram.fetch_position(7).unwrap());
    assert!(oram.serve_on_client(300, &mut Op::Read(&mut [0; 16])).is_err());
    Front::dummy(&mut oram).unwrap();
    let front = oram.counters().front;
    assert_eq!((front.data_accesses, front.position_map_accesses), (300, 300 * maps));
    assert_eq!(oram.path_accesses(), 301 * (maps + 1), "the tallies do not count the dummy");
    let mut block = [0; 16];
    for refused in [
        oram.take(7, &mut block).unwrap_err(),
        oram.take_on_client(7, &mut block).unwrap_err(),
        oram.put_back(7, &block).unwrap_err(),
        oram.populate().unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::InvalidConfig);
    }
    oram.check_ready().unwrap();
    oram.flush().unwrap();
    // All blocks of data, and the position-map blocks, whose addresses are past them.
    let mut seen = Vec::new();
    oram.visit_blocks(&mut |block| seen.push(block.address)).unwrap();
    seen.sort_unstable();
    let all: u64 = config.blocks().unwrap().iter().sum();
    assert_eq!(seen, (0..all).collect::<Vec<_>>());
    while oram.stash_blocks() > 0 {
        Front::evict(&mut oram).unwrap();
    }
    assert_eq!(oram.stash().blocks(), 0);
    Front::check_invariants(&mut oram).unwrap();
    oram.read(7, &mut block).unwrap();
    assert_eq!(block, [7; 16]);
}

#[test]
fn a_bad_request_anywhere_in_a_batch_touches_nothing() {
    let mut oram = path(&FreecursiveConfig::new(100, 16).unwrap(), 1);
    oram.write(0, &[1; 16]).unwrap();
    let before = oram.tally();
    for (address, bytes) in [(100, 16), (u64::MAX, 16), (1, 15)] {
        let mut buffer = vec![0; bytes];
        let error = oram
            .access(&mut [
                Access { address: 0, op: Op::Write(&[2; 16]) },
                Access { address, op: Op::Read(&mut buffer) },
            ])
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
    assert_eq!(oram.tally(), before);
    let mut block = [0; 16];
    oram.read(0, &mut block).unwrap();
    assert_eq!(block, [1; 16]);
}

#[test]
fn a_full_stash_refuses_loses_nothing_and_recovers() {
    let config = small();
    let (mut refusals, mut verified) = (0, 0);
    for seed in 0..10 {
        let tree = TreeConfig::new(
            config.tree_capacity().unwrap(),
            config.tree_block_bytes(),
            Geometry::uniform(6, 2).unwrap(),
            4,
        )
        .with_burst_accesses_max(config.burst_accesses_max().unwrap());
        let scheme = path_backend(&tree, seed);
        let mut oram = FreecursiveOram::new(&config, scheme, coins(seed)).unwrap();
        let mut model = HashMap::new();
        let coins = &mut coins(!seed);
        for _ in 0..2000 {
            let before = oram.tally();
            let mut block = [0; 32];
            if let Err(error) = oram.read(0, &mut block) {
                assert_eq!(error.kind(), ErrorKind::StashFull);
                assert_eq!(oram.tally(), before);
                refusals += 1;
                // Some ORAMs never recover: all buckets on the paths of the blocks in their stash
                // are full.
                for _ in 0..1000 {
                    oram.evict().unwrap();
                    if oram.stash().blocks() <= 4 {
                        break;
                    }
                }
                oram.check_invariants().unwrap();
            }
            if oram.stash().blocks() <= 4 {
                request_both(&mut oram, &mut model, coins);
            }
        }
        let mut held: Vec<_> = model.iter().collect();
        held.sort_unstable();
        for (address, held) in held {
            for _ in 0..1000 {
                if oram.stash().blocks() > 4 {
                    oram.evict().unwrap();
                }
            }
            let mut block = [0; 32];
            // This ORAM may never recover either.
            if oram.read(*address, &mut block).is_ok() {
                assert!(block == **held, "block {address}");
                verified += 1;
            }
        }
    }
    assert!(refusals > 10 && verified > 200, "{refusals} {verified}");
}

#[track_caller]
fn assert_stays_closed(oram: &mut impl Oram, mut first: Result<(), Error>) {
    for kind in [ErrorKind::Store, ErrorKind::MustReopen, ErrorKind::MustReopen] {
        assert_eq!(first.unwrap_err().kind(), kind);
        first = oram.read(0, &mut [0; 16]);
    }
}

#[test]
fn after_a_failure_of_the_store_all_requests_are_refused() {
    let mut config = FreecursiveConfig::new(100, 16).unwrap();
    (config.client_entries_max, config.plb_blocks) = (1, 2);
    let depth = config.depth().unwrap() as u64;
    assert_eq!(depth, 4);
    for failing_call in 0..2 * depth {
        let calls_left = Rc::new(Cell::new(u64::MAX));
        let store = |memory| failing(memory, &calls_left);

        let tree = config.path_tree().unwrap();
        let scheme = PathScheme::new(&tree, sealer(&tree, 1), store(memory(&tree))).unwrap();
        let mut oram = FreecursiveOram::new(&config, scheme, coins(1)).unwrap();
        oram.write(7, &[1; 16]).unwrap();
        calls_left.set(failing_call);
        let result = oram.write(99, &[1; 16]);
        assert_stays_closed(&mut oram, result);
        assert_eq!(oram.evict().unwrap_err().kind(), ErrorKind::MustReopen);
        assert_eq!(oram.check_invariants().unwrap_err().kind(), ErrorKind::MustReopen);

        calls_left.set(u64::MAX);
        let raw = config.raw_tree().unwrap();
        let store = store(memory(&raw.tree));
        let scheme = RawScheme::new(&raw, sealer(&raw.tree, 1), store).unwrap();
        let mut oram = FreecursiveOram::new(&config, scheme, coins(1)).unwrap();
        oram.write(7, &[1; 16]).unwrap();
        calls_left.set(failing_call);
        let result = oram.write(99, &[1; 16]);
        assert_stays_closed(&mut oram, result);
    }
}
