//! Tests of two functions that a golden model needs: the hook that reports the steps of an access,
//! and the visit to all blocks with their leaves and buckets. Also tests that ORAMs can move to
//! another thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

use oblivio_core::front::{Front, OnStores, OramConfig, SchemeConfig, build};
use oblivio_core::scheme::{
    Location, PathAction, PathScheme, PathStep, RawScheme, Scheme, StepPhase,
};
use oblivio_core::stash::StashView;
use oblivio_core::{
    Key, Leaf, MemoryStore, Op, RawConfig, RhoConfig, Sealer, TreeConfig, TreeTopKind,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const BLOCKS: u64 = 100;
const BLOCK_BYTES: usize = 32;
const EVICT_PERIOD: u32 = 3;

/// A step, with the addresses and leaves in the stash when the hook ran.
type Noted = (PathStep, BTreeMap<u64, Leaf>);

type Steps = Arc<Mutex<Vec<Noted>>>;

fn tree() -> TreeConfig {
    TreeConfig::path(BLOCKS, BLOCK_BYTES).unwrap()
}

fn make_storage(tree: &TreeConfig) -> (Sealer, MemoryStore) {
    // A store numbers its trees from 0.
    let shapes = vec![tree.shape().unwrap(); usize::from(tree.tree.0) + 1];
    let store = MemoryStore::new(&shapes, MemoryStore::default_layout()).unwrap();
    (Sealer::aes128(Key::from_bytes([7; 16]), tree.tree), store)
}

fn noting(scheme: &mut dyn Scheme) -> Steps {
    let steps = Steps::default();
    let noted = Arc::clone(&steps);
    scheme.set_step_hook(Box::new(move |step: PathStep, stash: StashView<'_>| {
        noted.lock().unwrap().push((step, stash.entries().collect()));
    }));
    steps
}

/// Accesses blocks at random. Calls `check` for each access with its index, the leaf read, and its
/// steps.
fn drive(scheme: &mut dyn Scheme, mut check: impl FnMut(usize, Leaf, &[Noted])) {
    let steps = noting(scheme);
    let leaves = scheme.config().geometry.leaves();
    let mut coins = StdRng::seed_from_u64(3);
    let mut leaf_of = vec![Leaf(0); BLOCKS as usize];
    for access in 0..300 {
        let address = coins.random_range(0..BLOCKS);
        let (from, to) = (leaf_of[address as usize], Leaf(coins.random_range(0..leaves)));
        leaf_of[address as usize] = to;
        scheme.access(address, from, to, &mut Op::Write(&[1; BLOCK_BYTES])).unwrap();
        check(access, from, &std::mem::take(&mut *steps.lock().unwrap()));
    }
    // Blocks left in the stash have the leaf in the position map.
    assert!(scheme.stash().entries().all(|(address, leaf)| leaf == leaf_of[address as usize]));
}

fn step(leaf: Leaf, action: PathAction) -> [PathStep; 2] {
    [StepPhase::Before, StepPhase::After].map(|phase| PathStep { leaf, action, phase })
}

#[test]
fn a_path_oram_access_reads_its_path_and_writes_it() {
    let config = tree();
    let (sealer, store) = make_storage(&config);
    let mut scheme = PathScheme::new(&config, sealer, store).unwrap();
    let mut filled = 0;
    drive(&mut scheme, |_, leaf, steps| {
        let expected = [step(leaf, PathAction::Read), step(leaf, PathAction::Write)].concat();
        assert_eq!(steps.iter().map(|(step, _)| *step).collect::<Vec<_>>(), expected);
        let [before, read, served, written] = steps else { unreachable!("four steps") };
        // Reading only adds blocks, and writing only removes them.
        assert!(before.1.iter().all(|block| read.1.contains_key(block.0)));
        assert!(written.1.iter().all(|(address, leaf)| served.1.get(address) == Some(leaf)));
        filled += usize::from(read.1.len() > before.1.len());
    });
    assert!(filled > 100, "{filled}");
}

#[test]
fn a_raw_oram_access_takes_one_block_and_every_nth_evicts_the_next_path_of_the_order() {
    let config = RawConfig::of_tree(tree(), EVICT_PERIOD);
    let (sealer, store) = make_storage(&config.tree);
    let mut scheme = RawScheme::new(&config, sealer, store).unwrap();
    let level = config.tree.geometry.leaf_level();
    let mut evictions = 0;
    drive(&mut scheme, |access, leaf, steps| {
        let mut expected = step(leaf, PathAction::Take).to_vec();
        if (access + 1) % EVICT_PERIOD as usize == 0 {
            let evicted = oblivio_core::geometry::reverse_lexicographic(evictions, level);
            expected.extend(step(evicted, PathAction::Read));
            expected.extend(step(evicted, PathAction::Write));
            evictions += 1;
        }
        assert_eq!(steps.iter().map(|(step, _)| *step).collect::<Vec<_>>(), expected);
        assert!(steps[1].1.len() <= steps[0].1.len() + 1);
    });
    assert_eq!(evictions, 100);
}

fn built(config: &OramConfig) -> Box<dyn Front + Send> {
    let make_storage = |tree: &TreeConfig| Ok(make_storage(tree));
    build(config, &mut OnStores::new(make_storage, || StdRng::seed_from_u64(5))).unwrap()
}

#[test]
fn built_orams_move_to_another_thread_and_list_their_blocks() {
    let mut sets = tree();
    sets = sets.with_tree_top_levels(2);
    sets.tree_top = TreeTopKind::SetAssociative { ways: 2 };
    for tree in [tree(), sets] {
        let mut oram = built(&OramConfig::flat(SchemeConfig::Path(tree)));
        let visited = thread::scope(|scope| {
            let owner = scope.spawn(move || {
                (0..BLOCKS).for_each(|address| oram.write(address, &[1; BLOCK_BYTES]).unwrap());
                let mut visited = BTreeMap::new();
                oram.visit_blocks(&mut |block| {
                    assert!(visited.insert(block.address, block.placement.unwrap()).is_none());
                })
                .unwrap();
                let in_stash =
                    visited.values().filter(|placement| placement.location == Location::Stash);
                assert_eq!(in_stash.count(), oram.stash_blocks());
                visited
            });
            owner.join().unwrap()
        });
        assert!(visited.keys().copied().eq(0..BLOCKS));
        for placement in visited.values() {
            if let Location::Bucket(bucket) = placement.location {
                assert!(bucket.is_on_path(placement.leaf), "{placement:?}");
            }
        }
    }
}

#[test]
fn both_trees_of_rho_are_visited_under_addresses() {
    let mut config = OramConfig::flat(SchemeConfig::Path(tree()));
    config.rho = Some(RhoConfig::new(16, BLOCK_BYTES).unwrap());
    let mut oram = built(&config);
    for address in 0..BLOCKS {
        oram.write(address, &[1; BLOCK_BYTES]).unwrap();
    }
    let mut of_tree = BTreeMap::<_, Vec<u64>>::new();
    oram.visit_blocks(&mut |block| {
        of_tree.entry(block.placement.map(|it| it.tree)).or_default().push(block.address);
    })
    .unwrap();
    let mut all: Vec<_> = of_tree.values().flatten().copied().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..BLOCKS), "{of_tree:?}");
    assert!(of_tree.len() >= 2, "{of_tree:?}");
}
