//! Tests of a cache in front of an ORAM, with both remapping policies, against a plain map and a
//! literal LRU cache.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use oblivio_core::front::CacheTally;
use oblivio_core::scheme::{PathScheme, RawScheme};
use oblivio_core::{
    Access, CacheConfig, CachedOram, ErrorKind, FlatOram, FreecursiveConfig, FreecursiveOram,
    Front, Geometry, HitPolicy, Integrity, Key, LayoutKind, MemoryStore, Op, Oram, PathOram,
    RawConfig, RemapPolicy, Sealer, TreeConfig,
};
use oblivio_testkit::workload::Workload;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::failing::failing;

const POLICIES: [RemapPolicy; 2] = [RemapPolicy::AtAccess, RemapPolicy::Delayed];

// ───────────────────────────── setup ─────────────────────────────

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

fn sealer(tree: &TreeConfig) -> Sealer {
    Sealer::aes128(Key::draw(&mut coins(7)), tree.tree)
}

fn memory(tree: &TreeConfig) -> MemoryStore {
    MemoryStore::new(&[tree.shape().unwrap()], LayoutKind::Heap).unwrap()
}

fn path_backend(tree: &TreeConfig) -> PathScheme<MemoryStore> {
    PathScheme::new(tree, sealer(tree), memory(tree)).unwrap()
}

fn raw_backend(config: &RawConfig) -> RawScheme<MemoryStore> {
    RawScheme::new(config, sealer(&config.tree), memory(&config.tree)).unwrap()
}

fn freecursive_config(coins: &mut StdRng) -> FreecursiveConfig {
    FreecursiveConfig::new(pick(&[1, 2, 7, 33, 100, 255], coins), 24)
        .unwrap()
        .with_fan_out(pick(&[2, 4, 8], coins))
        .with_counter_bits(pick(&[1, 2, 5, 14], coins))
        .with_client_entries_max(pick(&[1, 2, 10, 300], coins))
        .with_plb_blocks(pick(&[0, 1, 4, 64], coins))
        .with_plb_ways(1)
        .with_hits(HitPolicy::Access)
        .with_integrity(Integrity::None)
}

/// Draws the size and the ways of a cache. Returns the parameters and the empty model of the cache.
fn any_cache(coins: &mut StdRng) -> (CacheConfig, Lru) {
    let ways = pick(&[1, 2, 3, 16], coins);
    let config = CacheConfig { blocks: ways * pick(&[1, 2, 5], coins), ways };
    (config, Lru { ways, sets: vec![Vec::new(); config.blocks / ways] })
}

/// A literal LRU cache. Each set is a list of addresses, least recently used first, with a flag
/// that says whether the block is dirty.
struct Lru {
    ways: usize,
    sets: Vec<Vec<(u64, bool)>>,
}

impl Lru {
    /// Updates the model and `tally` for one request.
    fn request(
        &mut self,
        address: u64,
        is_write: bool,
        policy: RemapPolicy,
        tally: &mut CacheTally,
    ) {
        let sets = self.sets.len() as u64;
        let set = &mut self.sets[(address % sets) as usize];
        let changed = match set.iter().position(|(held, _)| *held == address) {
            Some(at) => {
                tally.hits += 1;
                set.remove(at).1
            }
            None => {
                tally.misses += 1;
                if set.len() == self.ways {
                    let (_, changed) = set.remove(0);
                    tally.written_back += u64::from(changed || policy == RemapPolicy::Delayed);
                }
                false
            }
        };
        set.push((address, changed || is_write));
    }
}

// ───────────────────────────── answers ─────────────────────────────

/// Serves random requests. Compares every answer with a plain map, and every tally with the model.
fn run<O: Front>(oram: O, policy: RemapPolicy, coins: &mut StdRng) -> CacheTally {
    let (config, mut lru) = any_cache(coins);
    let mut oram = CachedOram::new(config, policy, oram).unwrap();
    assert_eq!(oram.policy(), policy);
    let bytes = oram.block_bytes();
    let mut model: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut tally = CacheTally::default();
    for i in 1..=200 {
        // Half of the requests go to a few blocks, to get hits.
        let addresses = if coins.random() { oram.capacity() } else { oram.capacity().min(5) };
        let address = coins.random_range(0..addresses);
        let held = model.entry(address).or_insert_with(|| vec![0; bytes]);
        let kind = coins.random_range(0..3);
        match kind {
            0 => {
                let mut buffer = vec![0xA5; bytes];
                oram.read(address, &mut buffer).unwrap();
                assert!(buffer == *held, "block {address}");
            }
            1 => {
                held.fill(coins.random());
                oram.write(address, held).unwrap();
            }
            _ => {
                let fill: u8 = coins.random();
                let mut seen = Vec::new();
                oram.update(address, &mut |block| {
                    seen = block.to_vec();
                    block[0] ^= fill;
                })
                .unwrap();
                assert!(seen == *held, "block {address}");
                held[0] ^= fill;
            }
        }
        lru.request(address, kind != 0, policy, &mut tally);
        assert_eq!(oram.tally(), tally);
        if i % 50 == 0 {
            oram.check_invariants().unwrap();
        }
    }
    flush(&mut oram);
    oram.check_invariants().unwrap();
    let mut buffer = vec![0; bytes];
    for (address, held) in &model {
        oram.oram_mut().read(*address, &mut buffer).unwrap();
        assert!(buffer == *held, "block {address} behind the cache");
    }
    tally
}

fn flush<O: Front>(oram: &mut CachedOram<O>) {
    while let Err(error) = oram.flush() {
        assert_eq!(error.kind(), ErrorKind::StashFull);
        oram.evict().unwrap();
    }
}

#[test]
fn a_cached_oram_is_a_map() {
    for policy in POLICIES {
        let mut tally = CacheTally::default();
        for seed in 0..60 {
            let coins = &mut coins(seed);
            let free = freecursive_config(coins);
            // Every level has its own bucket size.
            let profile: Vec<u16> = (0..7).map(|_| coins.random_range(2..5)).collect();
            let capacity = pick(&[1, 2, 50, 100], coins);
            let tree = TreeConfig::new(capacity, 24, Geometry::profile(&profile).unwrap(), 150)
                .with_tree_top_levels(pick(&[0, 2], coins));
            let raw = RawConfig::of_tree(tree.clone(), 3);
            let oram_coins = self::coins(!seed);
            let of_run = match seed % 4 {
                0 => run(FlatOram::new(path_backend(&tree), oram_coins).unwrap(), policy, coins),
                1 => run(FlatOram::new(raw_backend(&raw), oram_coins).unwrap(), policy, coins),
                2 => {
                    let scheme = path_backend(&free.path_tree().unwrap());
                    run(FreecursiveOram::new(&free, scheme, oram_coins).unwrap(), policy, coins)
                }
                _ => {
                    let scheme = raw_backend(&free.raw_tree().unwrap());
                    run(FreecursiveOram::new(&free, scheme, oram_coins).unwrap(), policy, coins)
                }
            };
            tally.hits += of_run.hits;
            tally.written_back += of_run.written_back;
        }
        assert!(tally.hits > 1000 && tally.written_back > 1000, "{tally:?}");
    }
}

#[test]
fn a_block_taken_out_is_nowhere_until_it_is_put_back() {
    let tree = TreeConfig::path(20, 24).unwrap();
    let mut oram = FlatOram::new(path_backend(&tree), coins(1)).unwrap();
    let free = freecursive_config(&mut coins(3)).with_client_entries_max(1);
    let scheme = path_backend(&free.path_tree().unwrap());
    let mut free = FreecursiveOram::new(&free, scheme, coins(1)).unwrap();
    fn check(oram: &mut impl Front) {
        let mut block = [0xA5; 24];
        assert!(!oram.take(0, &mut block).unwrap(), "never written");
        assert_eq!(block, [0; 24]);
        oram.put_back(0, &[7; 24]).unwrap();
        assert!(oram.take(0, &mut block).unwrap());
        assert_eq!(block, [7; 24]);
        let mut found = false;
        oram.visit_blocks(&mut |block| found |= block.address == 0).unwrap();
        assert!(!found);
        oram.check_invariants().unwrap();
        assert!(!oram.take_on_client(0, &mut block).unwrap(), "the block is out");
        oram.put_back(0, &[8; 24]).unwrap();
        assert!(oram.take_on_client(0, &mut block).unwrap(), "the block is in the stash");
        assert_eq!(block, [8; 24]);
        assert!(!oram.take(0, &mut block).unwrap(), "the block is out again");
        oram.put_back(0, &[8; 24]).unwrap();
        oram.read(0, &mut block).unwrap();
        assert_eq!(block, [8; 24]);
        oram.check_invariants().unwrap();
    }
    check(&mut oram);
    check(&mut free);
}

// ───────────────────────────── numbers of accesses ─────────────────────────────

/// A Freecursive ORAM behind a cache, with 1024 data blocks, 32 position-map blocks, and counters
/// that overflow. The PLB (the cache of position-map blocks) holds 4 of the 32.
fn behind_a_cache(
    policy: RemapPolicy,
) -> CachedOram<FreecursiveOram<PathScheme<MemoryStore>, StdRng>> {
    let config = FreecursiveConfig::new(1024, 32)
        .unwrap()
        .with_client_entries_max(32)
        .with_plb_blocks(4)
        .with_counter_bits(4)
        .with_fan_out(32);
    assert_eq!(config.depth().unwrap(), 1);
    let scheme = path_backend(&config.path_tree().unwrap());
    let oram = FreecursiveOram::new(&config, scheme, coins(1)).unwrap();
    CachedOram::new(CacheConfig { blocks: 64, ways: 4 }, policy, oram).unwrap()
}

/// Tests that with delayed remapping the number of path accesses, which storage sees, does not
/// depend on data or operations.
#[test]
fn with_delayed_remapping_the_number_of_accesses_depends_only_on_addresses() {
    let [mut one, mut other] = [(); 2].map(|()| behind_a_cache(RemapPolicy::Delayed));
    for request in Workload::Zipf.requests(1024, 5).take(5000) {
        one.read(request.address, &mut [0; 32]).unwrap();
        other.write(request.address, &[1; 32]).unwrap();
        assert_eq!(one.tally(), other.tally());
        assert_eq!(one.oram().tally(), other.oram().tally());
    }
    let (cache, paths) = (one.tally(), one.oram().tally());
    assert_eq!(paths.data_accesses, cache.misses, "a victim costs no data access");
    assert!(paths.remap_accesses > 50 && cache.written_back > 1000, "{paths:?}, {cache:?}");
}

/// Tests the costs of the policies. With remapping at accesses, each dirty victim costs an access
/// to data; with delayed remapping, each victim costs a look-up in the position map.
#[test]
fn victims_cost_data_accesses_or_position_map_accesses() {
    for writes in [false, true] {
        let [at_access, delayed] = POLICIES.map(|policy| {
            let mut oram = behind_a_cache(policy);
            for request in Workload::Uniform.requests(1024, 5).take(3000) {
                if writes {
                    oram.write(request.address, &[1; 32]).unwrap();
                } else {
                    oram.read(request.address, &mut [0; 32]).unwrap();
                }
            }
            let victims = oram.tally().misses - 64;
            assert_eq!(
                oram.tally().written_back,
                if writes || policy == RemapPolicy::Delayed { victims } else { 0 }
            );
            (oram.tally().misses, oram.oram().tally())
        });
        let (misses, at_access) = at_access;
        let (_, delayed) = delayed;
        let written_back = if writes { misses - 64 } else { 0 };
        assert_eq!(at_access.data_accesses, misses + written_back);
        assert_eq!(delayed.data_accesses, misses);
        let more = delayed.position_map_accesses as f64 / at_access.position_map_accesses as f64;
        let expected = if writes { 1.0 } else { 2.0 };
        assert!((more - expected).abs() < 0.1, "{more}");
    }
}

/// Tests that without a PLB, taking a block out and putting it back each need the whole chain of
/// position-map blocks.
#[test]
fn without_a_plb_taking_and_putting_back_need_the_whole_chain() {
    let config =
        FreecursiveConfig::new(100, 32).unwrap().with_client_entries_max(1).with_plb_blocks(0);
    let depth = config.depth().unwrap() as u64;
    let scheme = path_backend(&config.path_tree().unwrap());
    let oram = FreecursiveOram::new(&config, scheme, coins(1)).unwrap();
    let cache = CacheConfig { blocks: 4, ways: 4 };
    let mut oram = CachedOram::new(cache, RemapPolicy::Delayed, oram).unwrap();
    for request in Workload::Zipf.requests(100, 1).take(500) {
        oram.write(request.address, &[1; 32]).unwrap();
    }
    let CacheTally { misses, written_back, .. } = oram.tally();
    assert!(depth > 0 && written_back > 100);
    assert_eq!(oram.oram().tally().position_map_accesses, depth * (misses + written_back));
}

// ───────────────────────────── errors ─────────────────────────────

#[test]
fn a_full_stash_refuses_loses_nothing_and_recovers() {
    let (mut refusals, mut refused_flushes) = (0, 0);
    for seed in 0..10 {
        let tree = TreeConfig::new(100, 24, Geometry::uniform(6, 2).unwrap(), 4);
        let oram = FlatOram::new(path_backend(&tree), coins(seed)).unwrap();
        let cache = CacheConfig { blocks: 40, ways: 4 };
        let mut oram = CachedOram::new(cache, RemapPolicy::Delayed, oram).unwrap();
        let mut coins = coins(!seed);
        let mut model = vec![0u8; 100];
        for _ in 0..1500 {
            let (address, fill) = (coins.random_range(0..100), coins.random());
            let mut seen = 0;
            let mut change = |block: &mut [u8]| {
                seen = block[0];
                block.fill(fill);
            };
            while let Err(error) =
                oram.access(&mut [Access { address, op: Op::Update(&mut change) }])
            {
                assert_eq!(error.kind(), ErrorKind::StashFull);
                refusals += 1;
                oram.evict().unwrap();
                oram.check_invariants().unwrap();
            }
            assert_eq!(seen, std::mem::replace(&mut model[address as usize], fill));
        }
        while let Err(error) = oram.flush() {
            assert_eq!(error.kind(), ErrorKind::StashFull);
            refused_flushes += 1;
            oram.evict().unwrap();
        }
        oram.check_invariants().unwrap();
        for (address, fill) in (0..).zip(model) {
            let mut block = [0; 24];
            while oram.oram_mut().read(address, &mut block).is_err() {
                oram.evict().unwrap();
            }
            assert_eq!(block, [fill; 24]);
        }
    }
    assert!(refusals > 10 && refused_flushes > 10, "{refusals}, {refused_flushes}");
}

#[test]
fn contradictions_are_refused() {
    let tree = TreeConfig::path(20, 24).unwrap();
    for (blocks, ways) in [(0, 1), (4, 0), (4, 3), (2, 4), (0, 0), (usize::MAX, 1)] {
        for policy in POLICIES {
            let oram = FlatOram::new(path_backend(&tree), coins(1)).unwrap();
            let error = CachedOram::new(CacheConfig { blocks, ways }, policy, oram).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{blocks} blocks, {ways} ways");
        }
    }
}

#[test]
fn a_bad_request_anywhere_touches_nothing() {
    for policy in POLICIES {
        let tree = TreeConfig::path(20, 24).unwrap();
        let oram = FlatOram::new(path_backend(&tree), coins(1)).unwrap();
        let mut oram = CachedOram::new(CacheConfig { blocks: 2, ways: 2 }, policy, oram).unwrap();
        oram.write(0, &[1; 24]).unwrap();
        let before = oram.tally();
        for (address, bytes) in [(20, 24), (u64::MAX, 24), (1, 23)] {
            let mut block = vec![0; bytes];
            let error = oram
                .access(&mut [
                    Access { address: 0, op: Op::Write(&[2; 24]) },
                    Access { address, op: Op::Read(&mut block) },
                ])
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
            let behind = oram.oram_mut();
            for error in [
                behind.take(address, &mut block).unwrap_err(),
                behind.take_on_client(address, &mut block).unwrap_err(),
                behind.put_back(address, &block).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::InvalidRequest);
            }
        }
        assert_eq!(oram.tally(), before);
        let mut block = [0; 24];
        oram.read(0, &mut block).unwrap();
        assert_eq!(block, [1; 24]);
    }
}

#[test]
fn after_a_failure_of_the_store_not_even_hits_are_answered() {
    for policy in POLICIES {
        for failing_call in 0..2 {
            let tree = TreeConfig::path(20, 24).unwrap();
            let calls_left = Rc::new(Cell::new(u64::MAX));
            let store = failing(memory(&tree), &calls_left);
            let oram = PathOram::path(&tree, sealer(&tree), store, coins(1)).unwrap();
            let cache = CacheConfig { blocks: 2, ways: 2 };
            let mut oram = CachedOram::new(cache, policy, oram).unwrap();
            oram.write(0, &[1; 24]).unwrap();
            oram.write(1, &[1; 24]).unwrap();
            calls_left.set(failing_call);
            assert_eq!(oram.write(2, &[1; 24]).unwrap_err().kind(), ErrorKind::Store);
            let errors = [
                oram.read(1, &mut [0; 24]).unwrap_err(),
                oram.flush().unwrap_err(),
                oram.evict().unwrap_err(),
                oram.check_invariants().unwrap_err(),
            ];
            assert!(errors.iter().all(|error| error.kind() == ErrorKind::MustReopen));
        }
    }
}

/// Tests that blocks cannot be taken out of an ORAM with PMMAC, which could not distinguish them
/// from blocks that storage has deleted.
#[test]
fn blocks_are_not_taken_out_of_an_oram_under_pmmac() {
    let config = FreecursiveConfig::new(100, 32).unwrap().with_integrity(Integrity::Pmmac);
    let make = || {
        let scheme = path_backend(&config.path_tree().unwrap());
        FreecursiveOram::new(&config, scheme, coins(1)).unwrap()
    };
    let cache = CacheConfig { blocks: 4, ways: 4 };
    let refused = CachedOram::new(cache, RemapPolicy::Delayed, make()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidConfig);
    for refused in [make().take(1, &mut [0; 32]), make().take_on_client(1, &mut [0; 32])] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidConfig);
    }
    CachedOram::new(cache, RemapPolicy::AtAccess, make()).unwrap().write(1, &[1; 32]).unwrap();
}
