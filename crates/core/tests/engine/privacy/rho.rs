//! Tests that ρ accesses its two trees in a fixed pattern for all requests, with and without a
//! cache in front.

use std::cell::RefCell;
use std::rc::Rc;

use oblivio_core::front::rho::{RhoTally, TwoTrees};
use oblivio_core::geometry::Geometry;
use oblivio_core::scheme::{self, PathScheme};
use oblivio_core::store::{Part, TreeId};
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{
    CacheConfig, CachedOram, FlatOram, FreecursiveOram, Front, Key, MemoryStore, Oram, RemapPolicy,
    RhoConfig, RhoOram, Sealer, TreeConfig,
};
use oblivio_testkit::statistics::{
    Verdicts, histogram, homogeneity, serial_correlation, uniformity, uniformity_of_pairs,
};
use oblivio_testkit::workload::Workload;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::FALSE_ALARMS;
use super::run::{BLOCK_BYTES, CAPACITY, Frontend, Scheme, Setup, freecursive_config};

const REQUESTS: usize = 3000;
const MAIN: TreeId = TreeId(0);
const SMALL: TreeId = TreeId(1);
const SMALL_LEAF_LEVEL: u8 = 4;
const FRONTENDS: [Frontend; 2] = [Frontend::Flat, Frontend::Freecursive];

/// No cache, or a cache of one block with delayed remapping. In that cache, every change of address
/// puts one block back and takes out another.
const CACHES: [Option<CacheConfig>; 2] = [None, Some(CacheConfig { blocks: 1, ways: 1 })];

type Log = Rc<RefCell<Vec<Event>>>;

/// A path that was read and written back.
#[derive(Debug)]
struct Path {
    tree: TreeId,
    leaf: u64,
    /// Operations, levels, parts and bytes of the path: everything that storage sees except the
    /// leaf.
    shape: Vec<(Operation, u8, Part, u64)>,
}

struct Run {
    workload: Workload,
    /// The paths of each request.
    requests: Vec<Vec<Path>>,
    tally: RhoTally,
}

impl Run {
    fn leaves(&self, tree: TreeId) -> Vec<u64> {
        let paths = self.requests.iter().flatten().filter(|path| path.tree == tree);
        paths.map(|path| path.leaf).collect()
    }
}

/// Parameters of ρ with 16 blocks in sets of 4: fewer blocks than most workloads request.
fn config() -> RhoConfig {
    let geometry = Geometry::uniform(SMALL_LEAF_LEVEL, 2).unwrap();
    let small = TreeConfig::new(16, BLOCK_BYTES, geometry, 16).with_tree(SMALL);
    RhoConfig::of_tree(small, 4, 2)
}

fn run(frontend: Frontend, cache: Option<CacheConfig>, workload: Workload) -> Run {
    let log = Log::default();
    let mut coins = StdRng::seed_from_u64(frontend as u64 + 1);
    let main = match frontend {
        Frontend::Flat => Setup::new(Scheme::Path, REQUESTS).tree(),
        Frontend::Freecursive => Setup::freecursive(Scheme::Path, REQUESTS).tree(),
    };
    let shapes = [main.shape().unwrap(), config().small.shape().unwrap()];
    let mut scheme = |tree: &TreeConfig| {
        let memory = MemoryStore::new(&shapes, MemoryStore::default_layout()).unwrap();
        let log = Rc::clone(&log);
        let sink = move |event: &Event, _: &[u8]| log.borrow_mut().push(*event);
        let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
        PathScheme::new(tree, sealer, Recorder::new(memory, sink)).unwrap()
    };
    let (main, small) = (scheme(&main), scheme(&config().small));
    let trees = TwoTrees::new(&config(), main, small, StdRng::from_rng(&mut coins)).unwrap();
    let (requests, tally) = match frontend {
        Frontend::Flat => drive(FlatOram::new(trees, coins).unwrap(), cache, &log, workload),
        Frontend::Freecursive => {
            let main = FreecursiveOram::new(&freecursive_config(), trees, coins).unwrap();
            drive(main, cache, &log, workload)
        }
    };
    Run { workload, requests, tally }
}

fn drive<F, B>(
    main: F,
    cache: Option<CacheConfig>,
    log: &Log,
    workload: Workload,
) -> (Vec<Vec<Path>>, RhoTally)
where
    F: Front + AsRef<TwoTrees<B, StdRng>> + AsMut<TwoTrees<B, StdRng>>,
    B: scheme::Scheme,
{
    let mut rho = RhoOram::new(&config(), main).unwrap();
    let Some(cache) = cache else {
        let requests = requests(&mut rho, log, workload);
        return (requests, rho.tally());
    };
    let mut cached = CachedOram::new(cache, RemapPolicy::Delayed, rho).unwrap();
    let requests = requests(&mut cached, log, workload);
    (requests, cached.oram().tally())
}

/// Makes the requests of `workload`. Returns the paths of each request.
fn requests(oram: &mut impl Oram, log: &Log, workload: Workload) -> Vec<Vec<Path>> {
    let requests = workload.requests(CAPACITY, 1).take(REQUESTS).map(|request| {
        let mut block = [1; BLOCK_BYTES];
        if request.is_write {
            oram.write(request.address, &block).unwrap();
        } else {
            oram.read(request.address, &mut block).unwrap();
        }
        paths(&std::mem::take(&mut *log.borrow_mut()))
    });
    requests.collect()
}

/// Splits events into paths, each a read and a write of the same whole buckets.
#[track_caller]
fn paths(events: &[Event]) -> Vec<Path> {
    let piece = |event: &Event| event.piece.expect("there are no flushes");
    let call = |event: &Event| (piece(event).tree, event.trip);
    let calls: Vec<_> = events.chunk_by(|a, b| call(a) == call(b)).collect();
    let (pairs, rest) = calls.as_chunks::<2>();
    assert!(rest.is_empty(), "a call without its pair");
    let paths = pairs.iter().map(|[read, write]| {
        let operations = [read, write].map(|events| events[0].operation);
        assert_eq!(operations, [Operation::Read, Operation::Write]);
        let pieces = [read, write].map(|events| events.iter().map(piece).collect::<Vec<_>>());
        assert_eq!(pieces[0], pieces[1], "the path written must be the path read");
        let shape = read.iter().chain(*write).map(|event| {
            let piece = piece(event);
            (event.operation, piece.bucket.level(), piece.part, event.bytes)
        });
        let deepest = pieces[0].last().expect("a path has buckets");
        Path { tree: deepest.tree, leaf: deepest.bucket.index(), shape: shape.collect() }
    });
    paths.collect()
}

#[test]
fn keeps_to_the_pattern() {
    for frontend in FRONTENDS {
        for cache in CACHES {
            assert_keeps_to_the_pattern(frontend, cache);
        }
    }
}

#[track_caller]
fn assert_keeps_to_the_pattern(frontend: Frontend, cache: Option<CacheConfig>) {
    let (mut hits, mut put_back, mut dummies) = (0, 0, 0);
    let mut shapes = [None, None];
    for workload in Workload::ALL {
        let run = run(frontend, cache, workload);
        for (i, request) in run.requests.iter().enumerate() {
            let place = format!("request {i}, {workload}, {frontend:?}, {cache:?}");
            let (rounds, rest) = request.as_chunks::<3>();
            assert!(rest.is_empty(), "an incomplete round, {place}");
            assert!(cache.is_some() || !rounds.is_empty(), "no round, {place}");
            for round in rounds {
                let trees = round.each_ref().map(|path| path.tree);
                assert_eq!(trees, [SMALL, SMALL, MAIN], "{place}");
                for path in round {
                    let first =
                        shapes[usize::from(path.tree.0)].get_or_insert_with(|| path.shape.clone());
                    assert_eq!(*first, path.shape, "{place}");
                }
            }
        }
        let rounds: usize = run.requests.iter().map(|request| request.len() / 3).sum();
        assert_eq!(rounds as u64, run.tally.rounds());
        hits += run.tally.hits;
        put_back += run.tally.put_back;
        dummies += run.tally.small_dummies.min(run.tally.main_dummies);
    }
    let rare = [hits, put_back, dummies];
    assert!(rare.iter().all(|times| *times > 1000), "rare states did not occur: {rare:?}");
}

#[test]
fn leaves_are_uniform_and_independent() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for frontend in FRONTENDS {
        for cache in CACHES {
            judge(frontend, cache, &mut verdicts);
        }
    }
    verdicts.conclude();
}

fn judge(frontend: Frontend, cache: Option<CacheConfig>, verdicts: &mut Verdicts) {
    const PAIR_BINS: u64 = 8;
    // Enough paths for the tests: if one address repeats, the cache answers.
    let is_judged = |run: &Run| run.requests.iter().flatten().count() > REQUESTS;
    let runs = Workload::ALL.map(|workload| run(frontend, cache, workload));
    let runs: Vec<_> = runs.into_iter().filter(is_judged).collect();
    assert!(runs.len() + 2 >= Workload::ALL.len(), "too few paths");
    for (tree, leaf_level) in [(MAIN, super::run::LEAF_LEVEL), (SMALL, SMALL_LEAF_LEVEL)] {
        let range = 1 << leaf_level;
        let mut first = None;
        for run in &runs {
            let leaves = run.leaves(tree);
            let mut add = |test: &str, p_value| {
                let name = format!("{test}, {tree:?}, {}, {frontend:?}, {cache:?}", run.workload);
                verdicts.add(name, p_value);
            };
            let counts = histogram(leaves.iter().copied(), range, range);
            add("uniform", uniformity(&counts));
            for distance in 1..=3 {
                let apart = leaves.iter().step_by(distance).copied().collect::<Vec<_>>();
                add("uncorrelated", serial_correlation(&apart));
                let pairs = leaves.iter().copied().zip(leaves.iter().copied().skip(distance));
                let pairs = pairs.step_by(2 * distance);
                if leaves.len() / (2 * distance) > 20 * (PAIR_BINS * PAIR_BINS) as usize {
                    add("serially independent", uniformity_of_pairs(pairs, range, PAIR_BINS));
                }
            }
            let first = first.get_or_insert_with(|| counts.clone());
            if *first != counts {
                add("like the first", homogeneity(first, &counts));
            }
        }
    }
}
