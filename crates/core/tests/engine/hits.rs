//! Tests of blocks on the client that are served without a path access (IR-ORAM, section IV-C):
//! which blocks are served, that nothing else changes, and that a set-associative tree top loses no
//! block.

use std::collections::HashMap;

use oblivio_core::durable::rotating::RestoredState;
use oblivio_core::posmap::LivePosMap;
use oblivio_core::scheme::{ClientLocation, Location, Scheme};
use oblivio_core::store::TreeId;
use oblivio_core::{
    Access, BucketId, DurableRawOram, EraSealer, ErrorKind, FlatOram, Front, Geometry, HitPolicy,
    Leaf, MasterKey, MemoryStore, NoSecrecy, Op, Oram, PathOram, RawConfig, RawOram,
    RotatingConfig, Sealer, TreeConfig, TreeTopKind,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const BLOCK_BYTES: usize = 16;

const KINDS: [TreeTopKind; 5] = [
    TreeTopKind::Dedicated,
    TreeTopKind::SetAssociative { ways: 1 },
    TreeTopKind::SetAssociative { ways: 2 },
    TreeTopKind::SetAssociative { ways: 4 },
    TreeTopKind::SetAssociative { ways: 8 },
];

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// Draws a tree whose capacity is half of its slots, with uniform or varying bucket sizes, and with
/// a tree top of any number of levels.
fn any_tree(tree_top: TreeTopKind, coins: &mut StdRng) -> TreeConfig {
    let leaf_level = coins.random_range(1..=6);
    let profile = pick(&[&[4][..], &[2], &[1, 2, 3, 4], &[6, 1, 1, 5]], coins);
    let slots: Vec<_> = (0..=leaf_level)
        .map(|level| *profile.get(level).unwrap_or(&profile[profile.len() - 1]))
        .collect();
    let geometry = Geometry::profile(&slots).unwrap();
    let capacity = (geometry.tree_slots() / 2).max(1);
    let tree_top_levels = coins.random_range(0..=geometry.leaf_level());
    TreeConfig::new(capacity, BLOCK_BYTES, geometry, capacity as usize + 1)
        .with_tree_top_levels(tree_top_levels)
        .with_tree_top(tree_top)
}

fn memory(tree: &TreeConfig) -> MemoryStore {
    MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap()
}

fn null() -> Sealer {
    Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets())
}

fn path(tree: &TreeConfig, seed: u64) -> PathOram<MemoryStore, StdRng> {
    PathOram::path(tree, null(), memory(tree), coins(seed)).unwrap()
}

fn raw(tree: TreeConfig, evict_period: u32, seed: u64) -> RawOram<MemoryStore, StdRng> {
    let store = memory(&tree);
    RawOram::raw(&RawConfig::of_tree(tree, evict_period), null(), store, coins(seed)).unwrap()
}

type Whereabouts = HashMap<u64, (Location, Leaf)>;

fn whereabouts<B: Scheme>(oram: &mut FlatOram<B, StdRng>) -> Whereabouts {
    let mut found = HashMap::new();
    oram.scheme_mut()
        .visit_blocks(&mut |location, address, leaf| {
            assert_eq!(found.insert(address, (location, leaf)), None, "each block is in one place");
        })
        .unwrap();
    found
}

/// Whether the client finds a block in this location by its address.
fn is_found(tree: &TreeConfig, place: Option<&(Location, Leaf)>) -> bool {
    match place {
        None => false,
        Some((Location::Stash, _)) => true,
        Some((Location::Bucket(bucket), _)) => {
            tree.tree_top != TreeTopKind::Dedicated && bucket.level() < tree.tree_top_levels
        }
    }
}

// ───────────────────────────── blocks that are served ─────────────────────────────

/// Serves random requests. Checks that exactly the blocks that the client finds by address are
/// served without an access. Returns the number of hits.
fn serves_what_is_on_the_client<B: Scheme>(oram: FlatOram<B, StdRng>, coins: &mut StdRng) -> u64 {
    let mut oram = oram.with_hits(HitPolicy::Serve);
    let tree = oram.config().clone();
    let mut array = vec![[0; BLOCK_BYTES]; tree.capacity as usize];
    let mut expected = 0;
    for n in 1..=150 {
        let range = if coins.random() { tree.capacity } else { tree.capacity.min(5) };
        let address = coins.random_range(0..range);
        let held = &mut array[address as usize];
        let before = whereabouts(&mut oram);
        let is_hit = is_found(&tree, before.get(&address));
        expected += u64::from(is_hit);
        match coins.random_range(0..3) {
            0 => {
                let mut block = [0xA5; BLOCK_BYTES];
                oram.read(address, &mut block).unwrap();
                assert_eq!(block, *held);
            }
            1 => {
                coins.fill(held);
                oram.write(address, held).unwrap();
            }
            _ => {
                held[3] ^= 0x5A;
                oram.update(address, &mut |block| block[3] ^= 0x5A).unwrap();
            }
        }
        assert_eq!(oram.tally().stash_hits, expected, "{tree:?}");
        assert_eq!(oram.tally().data_accesses, n - expected);
        if is_hit {
            assert_eq!(whereabouts(&mut oram), before, "a hit moves nothing");
        }
        oram.check_invariants().unwrap();
    }
    for (address, held) in (0..).zip(array) {
        let mut block = [0xA5; BLOCK_BYTES];
        oram.read(address, &mut block).unwrap();
        assert_eq!(block, held);
    }
    expected
}

#[test]
fn blocks_of_the_stash_and_of_a_set_associative_tree_top_are_served_in_place() {
    for kind in KINDS {
        let mut hits = 0;
        for seed in 0..12 {
            let coins = &mut coins(seed);
            let tree = any_tree(kind, coins);
            hits += serves_what_is_on_the_client(path(&tree, seed), coins);
            let evict_period = pick(&[1, 2, 3, 5], coins);
            hits += serves_what_is_on_the_client(raw(tree, evict_period, seed), coins);
        }
        assert!(hits > 300, "{kind:?}: {hits}");
    }
}

#[test]
fn by_default_no_hit_is_served() {
    for kind in KINDS {
        let tree = any_tree(kind, &mut coins(7));
        let mut oram = path(&tree, 1);
        for _ in 0..50 {
            oram.write(0, &[1; BLOCK_BYTES]).unwrap();
        }
        let tally = oram.tally();
        assert_eq!((tally.data_accesses, tally.stash_hits), (50, 0));
    }
}

/// Tests that a block requested again in a batch is served from the place where the earlier access
/// of the batch left it.
#[test]
fn a_batch_is_served_in_order() {
    for kind in KINDS {
        for seed in 0..20 {
            let tree = any_tree(kind, &mut coins(seed));
            let mut oram = path(&tree, seed).with_hits(HitPolicy::Serve);
            let (mut before, mut after) = ([9; BLOCK_BYTES], [9; BLOCK_BYTES]);
            let batch = &mut [
                Access { address: 0, op: Op::Read(&mut before) },
                Access { address: 0, op: Op::Write(&[1; BLOCK_BYTES]) },
                Access { address: 0, op: Op::Update(&mut |block| block[0] = 2) },
                Access { address: 0, op: Op::Read(&mut after) },
            ];
            oram.access(batch).unwrap();
            let mut expected = [1; BLOCK_BYTES];
            expected[0] = 2;
            assert_eq!((before, after), ([0; BLOCK_BYTES], expected));
        }
    }
}

#[test]
fn a_rotating_backend_serves_what_it_holds() {
    for kind in KINDS {
        let (mut hits, mut returned) = (0, 0);
        for seed in 0..20 {
            let coins = &mut coins(seed);
            let config = RawConfig::of_tree(any_tree(kind, coins), pick(&[1, 3], coins));
            let tree = &config.tree;
            let mut oram = rotating(&config, seed);
            let mut array = vec![[0u8; BLOCK_BYTES]; tree.capacity as usize];
            for n in 0..200 {
                let address = coins.random_range(0..tree.capacity);
                let held = &mut array[address as usize];
                let (blocks, evictions) = (client_blocks(&oram), oram.backend().evictions());
                let on_client = blocks.iter().find(|(_, other, ..)| *other == address);
                let is_hit = on_client.is_some_and(|(location, ..)| {
                    *location == ClientLocation::Stash || kind != TreeTopKind::Dedicated
                });
                let mut seen = [0xA5; BLOCK_BYTES];
                let mut change = |block: &mut [u8]| {
                    seen.copy_from_slice(block);
                    block[0] = n;
                };
                let mut op = Op::Update(&mut change);
                let served = oram.serve_on_client(address, &mut op).unwrap();
                assert_eq!(served, is_hit);
                if served {
                    assert_eq!(oram.backend().evictions(), evictions);
                    hits += 1;
                } else {
                    oram.access(&mut [Access { address, op }]).unwrap();
                }
                assert_eq!(seen, *held);
                held[0] = n;
                if coins.random_range(0..20) == 0 {
                    oram = restored(&config, oram);
                    returned += 1;
                }
            }
            oram.check(&mut |_| {}).unwrap();
        }
        assert!(hits > 200 && returned > 100, "{kind:?}: {hits} {returned}");
    }
}

type Rotating = DurableRawOram<MemoryStore, StdRng>;

fn master() -> MasterKey {
    MasterKey::from_bytes([7; 32])
}

fn era_sealer(seed: u64) -> EraSealer {
    EraSealer::fresh(master(), TreeId(0), &mut coins(seed))
}

fn rotating(config: &RawConfig, seed: u64) -> Rotating {
    let shapes = config.rotating_shapes().unwrap();
    let store = MemoryStore::new(&shapes, MemoryStore::default_layout()).unwrap();
    DurableRawOram::rotating(config, era_sealer(seed), store, coins(seed)).unwrap()
}

fn client_blocks(oram: &Rotating) -> Vec<(ClientLocation, u64, Leaf, Vec<u8>)> {
    let blocks = oram.backend().client_blocks();
    blocks
        .map(|(location, address, leaf, bytes)| (location, address, leaf, bytes.to_vec()))
        .collect()
}

/// Restores `oram` on a new client, from its store and its client state.
fn restored(config: &RawConfig, mut oram: Rotating) -> Rotating {
    let blocks = client_blocks(&oram);
    let mut table =
        LivePosMap::new(config.tree.capacity, config.tree.geometry.leaf_level()).unwrap();
    oram.table()
        .mapped(0..config.tree.capacity)
        .for_each(|(address, mapping)| table.set(address, mapping));
    let evictions = oram.backend().evictions();
    let accesses_since_eviction = oram.backend().accesses_since_eviction();
    let state = RestoredState { evictions, accesses_since_eviction, table };
    let coins = StdRng::from_rng(oram.coins_mut());
    let eras = oram.backend().sealer().eras().cloned().collect();
    let sealer = EraSealer::new(master(), TreeId(0), eras);
    let store = oram.into_store();
    let config = RotatingConfig::flat(config.clone());
    let mut oram = DurableRawOram::resume(&config, sealer, store, state, coins).unwrap();
    for (location, address, leaf, bytes) in &blocks {
        oram.restore_client_block(*location, *address, *leaf, bytes).unwrap();
    }
    assert_eq!(client_blocks(&oram), blocks, "in the same order");
    oram
}

/// Tests that restoring a block fails with `InvalidRequest` if the set of its address is full.
#[test]
fn a_full_set_refuses_further_restored_blocks() {
    let mut tree = TreeConfig::new(100, BLOCK_BYTES, Geometry::uniform(4, 4).unwrap(), 100);
    (tree.tree_top_levels, tree.tree_top) = (1, TreeTopKind::SetAssociative { ways: 1 });
    let config = RawConfig::of_tree(tree, 1);
    let mut oram = rotating(&config, 1);
    let root = ClientLocation::TreeTop(BucketId::ROOT);
    let outcomes: Vec<_> = (0..100)
        .map(|address| oram.restore_client_block(root, address, Leaf(3), &[1; BLOCK_BYTES]))
        .collect();
    let refused = outcomes
        .iter()
        .position(Result::is_err)
        .expect("four sets of one entry cannot hold five blocks");
    assert!((1..4).contains(&refused), "two of the first five addresses share a set: {refused}");
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
    let errors = outcomes.into_iter().filter_map(Result::err);
    assert!(errors.map(|error| error.kind()).all(|kind| kind == ErrorKind::InvalidRequest));
}

// ───────────────────────────── full sets ─────────────────────────────

const CROWD: u64 = 150;

/// A tree with four of its seven levels on the client, so that blocks that wait for room in a full
/// set fill the stash.
fn crowded(ways: u16) -> TreeConfig {
    let mut tree = TreeConfig::new(CROWD, BLOCK_BYTES, Geometry::uniform(6, 2).unwrap(), 6);
    (tree.tree_top_levels, tree.tree_top) = (4, TreeTopKind::SetAssociative { ways });
    tree
}

/// Evicts until the stash is within its bound. Returns the number of evictions.
fn drain<B: Scheme>(oram: &mut FlatOram<B, StdRng>) -> u64 {
    let mut evictions = 0;
    while oram.stash().blocks() > oram.config().stash_blocks_max {
        let before = oram.stash().blocks();
        oram.evict().unwrap();
        assert!(oram.stash().blocks() <= before, "an eviction makes the stash grow");
        evictions += 1;
        assert!(evictions < 10_000, "background eviction does not empty the stash");
    }
    evictions
}

fn overflow_goes_to_the_stash<B: Scheme>(mut oram: FlatOram<B, StdRng>) -> u64 {
    let coins = &mut coins(3);
    let capacity = oram.config().capacity;
    let mut array = vec![[0u8; BLOCK_BYTES]; capacity as usize];
    let mut evictions = 0;
    for n in 0..20_000u64 {
        evictions += drain(&mut oram);
        let range = pick(&[10, 60, capacity], coins);
        let address = if n < capacity { n } else { coins.random_range(0..range) };
        let (held, before) = (&mut array[address as usize], oram.stash().blocks());
        let mut seen = [0xA5; BLOCK_BYTES];
        oram.update(address, &mut |block| {
            seen.copy_from_slice(block);
            block[..8].copy_from_slice(&n.to_le_bytes());
        })
        .unwrap();
        assert_eq!(seen, *held, "access {n}");
        held[..8].copy_from_slice(&n.to_le_bytes());
        assert!(oram.stash().blocks() <= before + 2, "access {n}");
    }
    oram.check_invariants().unwrap();
    evictions
}

#[test]
fn blocks_of_a_full_set_wait_in_the_stash_and_background_eviction_drains_it() {
    let evictions = [1, 2, 4, 8].map(|ways| {
        let of_path = overflow_goes_to_the_stash(path(&crowded(ways), 1));
        let of_raw = overflow_goes_to_the_stash(raw(crowded(ways), 3, 2));
        [of_path, of_raw]
    });
    for scheme in [0, 1] {
        let by_ways = evictions.map(|of_schemes| of_schemes[scheme]);
        assert!(by_ways[0] > 1000, "the test is too easy: {by_ways:?}");
        assert!(by_ways.is_sorted_by(|a, b| a > b), "more ways, fewer evictions: {by_ways:?}");
    }
}

/// Tests that a batch of 64 accesses that starts with the stash within its bound is served to its
/// end, even if sets are full.
#[test]
fn a_window_from_the_bound_on_is_never_refused() {
    for ways in [1, 2, 4] {
        let mut oram = path(&crowded(ways), 1);
        let coins = &mut coins(5);
        let mut most = 0;
        for _ in 0..300 {
            drain(&mut oram);
            let addresses: Vec<_> = (0..64).map(|_| coins.random_range(0..CROWD)).collect();
            let accesses = addresses
                .iter()
                .map(|address| Access { address: *address, op: Op::Write(&[1; BLOCK_BYTES]) });
            oram.access(&mut accesses.collect::<Vec<_>>()).unwrap();
            most = most.max(oram.stash().blocks());
        }
        assert!(most > 8, "{ways} ways: the stash never passed its bound: {most}");
    }
}

/// Tests that a tree top with one set, which is never full, puts as many blocks on each level as a
/// dedicated tree top.
#[test]
fn a_single_set_equals_a_dedicated_tree_top() {
    let mut tree = crowded(1);
    tree.tree_top = TreeTopKind::SetAssociative { ways: 30 };
    let mut one_set = path(&tree, 1);
    tree.tree_top = TreeTopKind::Dedicated;
    let mut dedicated = path(&tree, 1);
    for n in 0..2000 {
        for oram in [&mut one_set, &mut dedicated] {
            drain(oram);
            oram.write(n * n % CROWD, &[1; BLOCK_BYTES]).unwrap();
        }
        assert_eq!(one_set.stash().blocks(), dedicated.stash().blocks());
    }
    assert_eq!(one_set.blocks_on_levels().unwrap(), dedicated.blocks_on_levels().unwrap());
}
