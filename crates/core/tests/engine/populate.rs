//! Tests that a populated ORAM behaves like one to which zeros were written in every block.

use oblivio_core::scheme::{PathScheme, Scheme};
use oblivio_core::{
    ErrorKind, FlatOram, FreecursiveConfig, FreecursiveOram, Front, Geometry, Integrity, Key,
    MemoryStore, Oram, Sealer, TreeConfig, TreeTopKind,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const CAPACITY: u64 = 500;

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn scheme(tree: &TreeConfig) -> PathScheme<MemoryStore> {
    let store = MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    PathScheme::new(tree, Sealer::aes128(Key::draw(&mut coins(7)), tree.tree), store).unwrap()
}

/// Draws a tree of nine levels with random bucket sizes on levels 3 to 6, and any tree top.
fn any_tree(capacity: u64, block_bytes: usize, coins: &mut StdRng) -> TreeConfig {
    let mut slots = [4; 9];
    slots[3..7].fill_with(|| coins.random_range(1..5));
    let kinds = [TreeTopKind::Dedicated, TreeTopKind::SetAssociative { ways: 2 }];
    TreeConfig::new(capacity, block_bytes, Geometry::profile(&slots).unwrap(), 150)
        .with_tree_top_levels(coins.random_range(0..4))
        .with_tree_top(*kinds.choose(coins).unwrap())
}

/// Checks that every block reads as zeros and can be written.
fn assert_full(oram: &mut impl Oram, block_bytes: usize) {
    for address in 0..CAPACITY {
        let mut block = vec![9; block_bytes];
        oram.read(address, &mut block).unwrap();
        assert!(block.iter().all(|byte| *byte == 0));
        oram.write(address, &vec![1; block_bytes]).unwrap();
    }
    let mut block = vec![9; block_bytes];
    oram.read(0, &mut block).unwrap();
    assert_eq!(block, vec![1; block_bytes]);
}

#[test]
fn with_a_flat_map_every_block_is_as_deep_as_possible() {
    for seed in 0..20 {
        let mut chance = coins(seed);
        let tree = any_tree(CAPACITY, 16, &mut chance);
        let mut oram = FlatOram::new(scheme(&tree), chance).unwrap();
        oram.populate().unwrap();
        oram.check_invariants().unwrap();
        let levels = oram.blocks_on_levels().unwrap();
        let held = oram.stash().blocks() as u64 + levels.iter().sum::<u64>();
        assert_eq!(held, CAPACITY, "{levels:?}");
        // 500 blocks on 256 leaves with four slots each: few of them find their leaf full.
        assert!(levels[8] > 440, "{levels:?}");
        assert_full(&mut oram, 16);
        oram.check_invariants().unwrap();
    }
}

#[test]
fn with_the_map_in_the_tree_its_blocks_are_populated_too() {
    for seed in 0..20 {
        let mut chance = coins(seed);
        let config = FreecursiveConfig::new(CAPACITY, 64).unwrap().with_client_entries_max(4);
        let tree = any_tree(config.tree_capacity().unwrap(), 64, &mut chance)
            .with_burst_accesses_max(config.burst_accesses_max().unwrap());
        let mut oram = FreecursiveOram::new(&config, scheme(&tree), chance).unwrap();
        oram.populate().unwrap();
        oram.check_invariants().unwrap();
        let mut seen = Vec::new();
        oram.scheme_mut().visit_blocks(&mut |_, address, _| seen.push(address)).unwrap();
        seen.sort_unstable();
        let levels = config.level_addresses().unwrap();
        assert_eq!(
            levels.iter().map(|level| level.end - level.start).collect::<Vec<_>>(),
            [500, 16, 1]
        );
        assert_eq!(seen, levels.into_iter().flatten().collect::<Vec<_>>());
        assert_full(&mut oram, 64);
        oram.check_invariants().unwrap();
    }
}

#[test]
fn orams_that_cannot_be_populated_are_refused() {
    let tree = TreeConfig::new(CAPACITY, 16, Geometry::uniform(6, 4).unwrap(), 1);
    let mut oram = FlatOram::new(scheme(&tree), coins(1)).unwrap();
    assert_eq!(oram.populate().unwrap_err().kind(), ErrorKind::StashFull, "508 slots");
    assert_eq!(oram.read(0, &mut [0; 16]).unwrap_err().kind(), ErrorKind::MustReopen);

    let config = FreecursiveConfig::new(CAPACITY, 64)
        .unwrap()
        .with_client_entries_max(4)
        .with_integrity(Integrity::Pmmac);
    let tree = config.path_tree().unwrap();
    let mut oram = FreecursiveOram::new(&config, scheme(&tree), coins(1)).unwrap();
    assert_eq!(oram.populate().unwrap_err().kind(), ErrorKind::InvalidConfig);
}
