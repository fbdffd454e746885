//! Tests that, to storage, a dummy access of Path and RAW ORAM looks like any other access.

use std::sync::{Arc, Mutex};

use oblivio_core::front::{OnStores, OramConfig, SchemeConfig, build};
use oblivio_core::store::Part;
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{Key, MemoryStore, RawConfig, Sealer, TreeConfig};
use oblivio_testkit::statistics::{
    Verdicts, histogram, homogeneity, serial_correlation, uniformity,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::FALSE_ALARMS;
use super::run::{BLOCK_BYTES, CAPACITY, LEAF_LEVEL, LEAVES, Scheme, Setup};

const ACCESSES: usize = 3000;
const SCHEMES: [Scheme; 3] = [Scheme::Path, Scheme::Raw(1), Scheme::Raw(3)];

/// A sequence of accesses: `Some` is a request for that block, `None` a dummy.
type Turns = Vec<Option<u64>>;

/// Three sequences: only requests, a random mix of requests and dummies, and only dummies.
fn turns(coins: &mut StdRng) -> [Turns; 3] {
    [1.0, 0.5, 0.0].map(|requests| {
        let mut turn = || coins.random_bool(requests).then(|| coins.random_range(0..CAPACITY));
        (0..ACCESSES).map(|_| turn()).collect()
    })
}

/// The view of the accesses in `turns`.
fn view(scheme: Scheme, tree_top_levels: u8, turns: &Turns) -> Vec<Event> {
    let tree = Setup::new(scheme, ACCESSES).tree().with_tree_top_levels(tree_top_levels);
    let scheme = match scheme {
        Scheme::Path => SchemeConfig::Path(tree),
        Scheme::Raw(evict_period) => SchemeConfig::Raw(RawConfig::of_tree(tree, evict_period)),
        Scheme::Rotating(_) => unreachable!("its dummies are moves without a block"),
    };
    let log = Arc::new(Mutex::new(Vec::new()));
    let make_storage = |tree: &TreeConfig| {
        let log = Arc::clone(&log);
        let sink = move |event: &Event, _: &[u8]| log.lock().unwrap().push(*event);
        let memory = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
        let sealer = Sealer::aes128(Key::from_bytes([7; 16]), tree.tree);
        Ok((sealer, Recorder::new(memory, sink)))
    };
    let mut environment = OnStores::new(make_storage, || StdRng::seed_from_u64(2));
    let mut oram = build(&OramConfig::flat(scheme), &mut environment).unwrap();
    for turn in turns {
        match turn {
            Some(address) => oram.write(*address, &[1; BLOCK_BYTES]).unwrap(),
            None => oram.dummy().unwrap(),
        }
    }
    let seen = std::mem::take(&mut *log.lock().unwrap());
    oram.check_invariants().unwrap();
    seen
}

/// Calls, levels, parts and bytes of a view: everything but the leaves.
fn shape(view: &[Event]) -> Vec<(u64, Operation, u8, Part, u64)> {
    let event = |event: &Event| {
        let piece = event.piece.unwrap();
        (event.trip, event.operation, piece.bucket.level(), piece.part, event.bytes)
    };
    view.iter().map(event).collect()
}

#[test]
fn have_the_shape_of_requests_and_the_same_evictions_between_them() {
    for scheme in SCHEMES {
        for tree_top_levels in [0, 2] {
            let turns = turns(&mut StdRng::seed_from_u64(1));
            let [requests, mixed, dummies] =
                turns.map(|turns| shape(&view(scheme, tree_top_levels, &turns)));
            assert!(requests.len() > ACCESSES, "the view is too short");
            assert!(requests == mixed, "{scheme:?}, some of them dummies");
            assert!(requests == dummies, "{scheme:?}, all of them dummies");
        }
    }
}

#[test]
fn read_uniform_leaves_unrelated_to_blocks() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for scheme in SCHEMES {
        let [requests, _, dummies] = turns(&mut StdRng::seed_from_u64(1))
            .map(|turns| leaves(scheme, &view(scheme, 0, &turns)));
        let [of_requests, of_dummies] =
            [&requests, &dummies].map(|leaves| histogram(leaves.iter().copied(), LEAVES, LEAVES));
        verdicts.add(format!("uniform, {scheme:?}"), uniformity(&of_dummies));
        verdicts.add(format!("uncorrelated, {scheme:?}"), serial_correlation(&dummies));
        verdicts.add(format!("like requests, {scheme:?}"), homogeneity(&of_dummies, &of_requests));
    }
    verdicts.conclude();
}

/// The leaves of accesses. Excludes the evictions of RAW ORAM: after every `A` accesses, an
/// eviction reads the next path.
fn leaves(scheme: Scheme, view: &[Event]) -> Vec<u64> {
    let of_leaf = view.iter().filter(|event| {
        let level = event.piece.unwrap().bucket.level();
        event.operation == Operation::Read && level == LEAF_LEVEL
    });
    let paths: Vec<_> = of_leaf.map(|event| event.piece.unwrap().bucket.index()).collect();
    let period = match scheme {
        Scheme::Raw(evict_period) => evict_period as usize + 1,
        _ => paths.len() + 1,
    };
    let is_access = |i: &usize| !(i + 1).is_multiple_of(period);
    let accesses = (0..paths.len()).filter(is_access).map(|i| paths[i]);
    accesses.collect()
}
