//! Tests of studies of small trees. Some compare a study with the engine without observer and
//! prefetching.

mod watched;

use oblivio_core::scheme::{Location, PathScheme, Scheme as _};
use oblivio_core::seal::NoSecrecy;
use oblivio_core::{FreecursiveOram, Front, MemoryStore, Oram, Sealer};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::*;
use crate::MODEL;
use crate::cache::CacheShape;
use crate::controller::OldCopyPolicy;
use crate::controller::tags::{AccessObserver, Contents, TagScheme};
use crate::controller::{Remap, RhoSpec, Scheme};
use crate::trace::{AccessKind, Record, Trace};

const SEED: u64 = 7;

fn study(spec: &OramSpec, initial: Initial) -> Study {
    Study::new(&OramSpec { initial, ..spec.clone() }, SEED, &mut |_| ()).unwrap()
}

fn random(paths: u64) -> Phase<'static> {
    Phase { requests: Requests::Uniform, paths }
}

fn trace(lines: &[(AccessKind, u64)]) -> Trace {
    let records = lines.iter().map(|(kind, line)| Record { gap: 3, kind: *kind, line: *line });
    Trace::new("a", records.collect()).unwrap()
}

fn hot(lines: u64) -> Trace {
    let line = |i: u64| (AccessKind::Read, i * 7919 % lines);
    trace(&(0..4 * lines).map(line).collect::<Vec<_>>())
}

const SMALL_LLC: CacheShape = CacheShape { lines: 8, ways: 2 };

/// Number of blocks of data and of the position map.
fn all_blocks(spec: &OramSpec) -> u64 {
    let levels = spec.frontend().unwrap().level_addresses().unwrap();
    let fan_out = spec.fan_out;
    (0..levels.len())
        .fold((0, spec.data_blocks), |(all, on_level), _| {
            (all + on_level, on_level.div_ceil(fan_out))
        })
        .0
}

/// Returns snapshots before and after `paths` random paths.
fn mixed(spec: &OramSpec, paths: u64) -> Vec<Snapshot> {
    let mut study = study(spec, Initial::EachOnce);
    let snapshots = study.run(&[random(paths)], &[0, paths], &mut |_| ()).unwrap();
    for snapshot in &snapshots {
        let in_tree: u64 = snapshot.blocks.iter().sum();
        let in_plb = all_blocks(spec) - in_tree - snapshot.stash_blocks as u64;
        assert!(
            in_plb <= spec.plb_blocks as u64,
            "{in_plb} are neither in the tree nor in the stash"
        );
    }
    study.check_invariants().unwrap();
    snapshots
}

/// Checks that the results of this model are unchanged. As for timed runs, a change that alters
/// results must raise the model number.
#[test]
fn the_same_model_places_blocks_in_the_same_way() {
    let snapshots = mixed(&OramSpec::paper(10), 3000);
    assert_eq!(
        (MODEL, &snapshots[1].blocks),
        (1, &vec![1, 3, 2, 4, 9, 26, 52, 108, 207, 818, 3122])
    );
}

#[test]
fn utilisation_has_the_shape_of_the_paper() {
    // Uniform requests in Fig. 3: about 70 % on the last level, about 30 % or less in the middle.
    let all_on_the_client = OramSpec { client_entries_max: 1 << 20, ..OramSpec::paper(12) };
    // Position-map blocks are used more often than data, and data sink while they are unused.
    let spec = OramSpec::paper(12);
    for (spec, last_level) in [(all_on_the_client, 0.66..0.73), (spec, 0.74..0.82)] {
        let utilisation = mixed(&spec, 100_000)[1].utilisation();
        let middle = utilisation[5..11].iter().sum::<f64>() / 6.0;
        assert!(last_level.contains(&utilisation[12]), "{utilisation:?}");
        assert!((0.15..0.30).contains(&middle), "{utilisation:?}");
        assert!(utilisation[10] < utilisation[11] && utilisation[11] < utilisation[12]);
    }
}

#[test]
fn paths_and_places_are_counted() {
    let spec = OramSpec { data_blocks: 3 << 9, ..OramSpec::paper(9) };
    let mut study = study(&spec, Initial::Placed);
    let snapshots = study.run(&[random(5000), random(3000)], &[1000, 7999, 9000], &mut |_| ());
    let snapshots = snapshots.unwrap();
    let paths: Vec<_> = snapshots.iter().map(|snapshot| snapshot.paths.paths()).collect();
    assert_eq!(paths.len(), 2, "9000 is past the end");
    // A request may take several paths.
    assert!((1000..1004).contains(&paths[0]) && (7999..8003).contains(&paths[1]), "{paths:?}");
    let Snapshot { paths, found, .. } = &snapshots[1];
    assert_eq!(found.nowhere, 0, "all blocks were there from the start");
    assert!(found.requests() >= paths.data && found.requests() - paths.data <= found.stash);
    assert!(paths.position_map > paths.data / 2);
    assert!(found.levels[9] > found.requests() / 2, "{found:?}");
}

#[test]
fn an_oram_holds_at_first_what_its_specification_says() {
    let spec = OramSpec::paper(9);
    let blocks = |initial| {
        let snapshot = study(&spec, initial).snapshot().unwrap();
        assert_eq!((snapshot.paths.paths(), snapshot.found.requests()), (0, 0));
        snapshot.blocks.iter().sum::<u64>() + snapshot.stash_blocks as u64
    };
    assert_eq!(blocks(Initial::Empty), 0);
    for initial in [Initial::Placed, Initial::EachOnce, Initial::Aged(50)] {
        assert!(blocks(initial) + spec.plb_blocks as u64 >= all_blocks(&spec), "{initial:?}");
    }
}

/// Checks that the narrow levels, with fewer than four slots per bucket, are as full in an aged
/// tree as in a tree in use. The tree is configuration 4 of IR-Alloc without its upper levels.
/// Direct placement alone leaves the narrow levels less than half as full.
#[test]
fn an_aged_tree_has_its_narrow_levels_as_full_as_one_in_use() {
    let slots = [vec![4; 2], vec![1; 4], vec![2; 3], vec![4; 5]].concat();
    let spec = OramSpec { slots, tree_top_levels: 2, ..OramSpec::paper(13) };
    let narrow = |study: &mut Study| {
        let utilisation = study.snapshot().unwrap().utilisation();
        utilisation[2..9].iter().sum::<f64>() / 7.0
    };
    let placed = narrow(&mut study(&spec, Initial::Placed));
    let mut aged = study(&spec, Initial::Aged(100));
    aged.check_invariants().unwrap();
    let mut in_use = study(&spec, Initial::EachOnce);
    in_use.run(&[random(100_000)], &[], &mut |_| ()).unwrap();
    let (aged, in_use) = (narrow(&mut aged), narrow(&mut in_use));
    assert!(placed < in_use / 2.0, "the test is too easy: {placed} {in_use}");
    assert!((aged - in_use).abs() < 0.05, "{aged} {in_use}");
}

#[test]
fn a_small_working_set_is_found_near_the_root() {
    let hot = hot(40);
    let phases =
        [Phase { requests: Requests::Trace { trace: &hot, llc: Some(SMALL_LLC) }, paths: 2000 }];
    let spec = OramSpec { tree_top_levels: 4, ..OramSpec::paper(12) };
    let mut dedicated = study(&spec, Initial::Placed);
    let found = dedicated.run(&phases, &[2000], &mut |_| ()).unwrap().remove(0).found;
    let near_root = found.stash + found.levels[..8].iter().sum::<u64>();
    assert!(near_root * 2 > found.requests(), "{found:?}");

    // A tree top that is searched by address keeps all of these blocks.
    let mut in_sets = study(&OramSpec { tree_top_ways: Some(4), ..spec }, Initial::Placed);
    let error = in_sets.run(&phases, &[2000], &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("client holds"), "{error}");
}

#[test]
fn a_hit_on_the_client_is_no_path_and_is_counted_where_it_was() {
    let spec = OramSpec { tree_top_levels: 4, tree_top_ways: Some(4), ..OramSpec::paper(9) };
    let mut study = study(&spec, Initial::EachOnce);
    let Snapshot { paths, found, .. } =
        study.run(&[random(4000)], &[4000], &mut |_| ()).unwrap().remove(0);
    let hits = found.requests() - paths.data;
    let on_client = found.stash + found.levels[..4].iter().sum::<u64>();
    assert!(hits > 0 && on_client >= hits, "{found:?} {paths:?}");
}

/// Compares a study with the engine, which serves the same requests from ordinary storage, without
/// observer and prefetching.
#[test]
fn a_study_does_what_the_engine_does() {
    struct Blind;
    impl<B> AccessObserver<B> for Blind {
        fn access(&mut self, _: &mut B, _: usize, _: u64, _: oblivio_core::Leaf) {}
        fn idle(&mut self) {}
    }
    let spec = OramSpec { tree_top_ways: Some(4), ..OramSpec::paper(9) };
    let mut study = study(&spec, Initial::EachOnce);
    let snapshot = study.run(&[random(4000)], &[4000], &mut |_| ()).unwrap().remove(0);

    let mut coins = StdRng::seed_from_u64(SEED);
    let (tree, frontend) = (spec.tree().unwrap(), spec.frontend().unwrap());
    let store = MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let tags = PathScheme::new(&tree, sealer, store).unwrap();
    let contents =
        Contents::new(&frontend.level_addresses().unwrap(), frontend.block_bytes).unwrap();
    let scheme = TagScheme::new(tags, contents, Blind);
    let oram_coins = StdRng::from_rng(&mut coins);
    let mut oram = FreecursiveOram::new(&frontend, scheme, oram_coins).unwrap();
    let mut order: Vec<u32> = (0..spec.data_blocks as u32).collect();
    order.shuffle(&mut coins);
    let mut random = StdRng::from_rng(&mut coins);
    let serve = |oram: &mut FreecursiveOram<TagScheme<_, Blind>, StdRng>, block: u64| {
        let mut evictions = 0;
        while oram.scheme_mut().check_ready().is_err() {
            oram.evict().unwrap();
            evictions += 1;
        }
        oram.write(block, &[0; 64]).unwrap();
        evictions
    };
    order.iter().for_each(|block| {
        serve(&mut oram, u64::from(*block));
    });
    let before = oram.tally().accesses();
    let mut evictions = 0;
    while oram.tally().accesses() - before + evictions < 4000 {
        evictions += serve(&mut oram, random.random_range(0..spec.data_blocks));
    }
    assert_eq!(oram.tally().accesses() - before + evictions, snapshot.paths.paths());
    assert_eq!(evictions, snapshot.paths.evictions);
    let mut blocks = vec![0; 10];
    oram.scheme_mut()
        .visit_blocks(&mut |at, _, _| {
            if let Location::Bucket(bucket) = at {
                blocks[usize::from(bucket.level())] += 1;
            }
        })
        .unwrap();
    assert_eq!(blocks, snapshot.blocks);
}

#[test]
fn the_same_seed_gives_the_same_snapshots_and_progress() {
    let hot = hot(300);
    let run = |seed| {
        let spec = OramSpec { initial: Initial::EachOnce, ..OramSpec::paper(9) };
        let mut reported = Vec::new();
        let mut study = Study::new(&spec, seed, &mut |paths| reported.push(paths)).unwrap();
        let requests = Requests::Trace { trace: &hot, llc: Some(SMALL_LLC) };
        let phases = [Phase { requests, paths: 9000 }, random(1000)];
        let snapshots =
            study.run(&phases, &[100, 9500], &mut |paths| reported.push(paths)).unwrap();
        (snapshots, reported)
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first.0, run(2).0);
    assert!(!first.1.is_empty());
}

#[test]
fn a_study_can_go_on() {
    let spec = OramSpec::paper(9);
    let mut study = study(&spec, Initial::Placed);
    let first = study.run(&[random(500)], &[500], &mut |_| ()).unwrap().remove(0);
    let second = study.run(&[random(500)], &[0, 500], &mut |_| ()).unwrap();
    assert_eq!(second[0], first, "nothing happened in between");
    assert!(second[1].paths.paths() >= 1000);
}

#[test]
fn a_trace_asks_for_what_its_cache_does_not_hold() {
    let (read, write) = (AccessKind::Read, AccessKind::Write);
    let trace = trace(&[(read, 0), (write, 0), (read, 2), (write, 4), (read, 6), (read, 6)]);
    let llc = CacheShape { lines: 2, ways: 1 };
    let asked = |llc| {
        let requests = Requests::Trace { trace: &trace, llc };
        let mut lines = LineSource::new(&requests, 8, StdRng::seed_from_u64(1)).unwrap();
        [0; 8].map(|_| lines.next_line().unwrap())
    };
    // 0 is written back when 2 is read. 4 is not fetched; it is written back when 6 comes.
    assert_eq!(asked(Some(llc)), [0, 2, 0, 6, 4, 0, 2, 0]);
    // Without a cache each record is a request.
    assert_eq!(asked(None), [0, 0, 2, 4, 6, 6, 0, 0]);
}

#[test]
fn what_cannot_be_studied_is_refused() {
    let refused = |spec: OramSpec| Study::new(&spec, 1, &mut |_| ()).err().unwrap().to_string();
    let small = OramSpec::paper(9);
    let rho = Some(RhoSpec { blocks: 64, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut });
    assert!(refused(OramSpec { rho, ..small.clone() }).contains("functional"));
    let raw = Scheme::Raw { evict_period: 3 };
    assert!(refused(OramSpec { scheme: raw, ..small.clone() }).contains("functional"));
    assert!(refused(OramSpec { remap: Remap::Delayed, ..small.clone() }).contains("functional"));
    assert!(refused(OramSpec { slots: vec![4; 3], ..small.clone() }).contains("engine refused"));

    let mut study = study(&small, Initial::Placed);
    let mut run = |trace: &Trace, shape| {
        let phase = Phase { requests: Requests::Trace { trace, llc: Some(shape) }, paths: 10 };
        study.run(&[phase], &[], &mut |_| ()).unwrap_err().to_string()
    };
    let far = trace(&[(AccessKind::Read, 1), (AccessKind::Read, small.data_blocks)]);
    assert!(run(&far, SMALL_LLC).contains("record 2 of a"));
    let fits = trace(&[(AccessKind::Read, 1)]);
    assert!(run(&fits, SMALL_LLC).contains("smaller cache"));
    assert!(run(&fits, CacheShape { lines: 9, ways: 2 }).contains("cache"));
}
