//! Tests of blocks that the client finds by their address (IR-ORAM, IR-Stash). If hits make an
//! access, storage cannot distinguish them from misses. If hits are served, storage sees the number
//! of the remaining accesses.

use oblivio_core::view::Operation;
use oblivio_core::{HitPolicy, TreeTopKind};
use oblivio_testkit::statistics::{Verdicts, histogram, uniformity};
use oblivio_testkit::workload::Workload;

use super::FALSE_ALARMS;
use super::leaves::{ACCESSES, assert_shown_ahead_are_read_next, judge, judge_all};
use super::paths::assert_whole;
use super::run::{Frontend, Run, Scheme, Setup, States};
use super::shape::{assert_alike, shape};
use super::trips::{Purpose, leaves, schedule, trips};

const SETS: [TreeTopKind; 2] =
    [TreeTopKind::SetAssociative { ways: 1 }, TreeTopKind::SetAssociative { ways: 4 }];

fn with_sets(tree_top: TreeTopKind, setup: Setup) -> Setup {
    Setup { tree_top_levels: 3, tree_top, ..setup }
}

fn serving(setup: Setup) -> Setup {
    Setup { hits: HitPolicy::Serve, ..setup }
}

/// Tests that hits without [`HitPolicy::Serve`] are invisible: all workloads, with either kind of
/// tree top, make one access per request, and all accesses have one shape.
#[test]
fn unserved_hits_are_not_seen() {
    for scheme in Scheme::each(3) {
        let mut states = States::default();
        for batched in [false, true] {
            let dedicated = Setup { batched, tree_top_levels: 3, ..Setup::new(scheme, 700) };
            let expected = shape(&dedicated.run(Workload::Scan));
            for tree_top in SETS {
                let setup = with_sets(tree_top, dedicated);
                states += assert_alike(&setup);
                assert_eq!(shape(&setup.run(Workload::SameAddress)), expected, "{setup:?}");
            }
        }
        states.assert_rare_ones_occurred(10);
        assert_eq!(states.frontend.stash_hits, 0, "{states:?}");
    }
}

/// Tests that unserved hits of Freecursive ORAM are invisible: for each workload, the view has the
/// same shape with a set-associative tree top as with a dedicated one.
#[test]
fn unserved_hits_of_freecursive_are_not_seen() {
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        let dedicated = Setup { tree_top_levels: 3, ..Setup::freecursive(scheme, 400) };
        for workload in Workload::ALL {
            let expected = shape(&dedicated.run(workload));
            for tree_top in SETS {
                let run = with_sets(tree_top, dedicated).run(workload);
                assert_eq!(shape(&run), expected, "{workload}, {:?}", run.setup);
            }
        }
    }
}

#[test]
fn unserved_hits_leave_uniform_independent_and_fresh_leaves() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for scheme in Scheme::each(3) {
        let setup = with_sets(SETS[0], Setup::new(scheme, ACCESSES / 2));
        judge_all(setup, &mut verdicts).assert_rare_ones_occurred(50);
    }
    verdicts.conclude();
}

/// Minimum number of paths in a run for the statistical tests of its leaves. Runs of hot workloads
/// have fewer.
const ENOUGH: usize = ACCESSES / 3;

/// Tests the accesses that remain when the client serves hits itself: their leaves are uniform,
/// used once, and independent of the block's earlier leaves, with either position map.
#[test]
fn served_hits_leave_uniform_and_fresh_leaves() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        for setup in [Setup::new(scheme, ACCESSES), Setup::freecursive(scheme, ACCESSES)] {
            let (mut judged, mut states) = (0, States::default());
            for (seed, tree_top) in (1..).zip(SETS) {
                let setup = Setup { seed, batched: seed == 1, ..setup };
                for run in serving(with_sets(tree_top, setup)).runs() {
                    states += run.states;
                    let leaves = leaves(&run, Purpose::Access);
                    if leaves.len() >= ENOUGH {
                        judge(&run, &leaves, &mut verdicts);
                        judged += 1;
                    }
                }
            }
            assert!(judged >= 6, "{judged} runs of {setup:?}");
            let hits = states.frontend;
            assert!(hits.stash_hits > 10_000, "{states:?}");
            let is_freecursive = setup.frontend == Frontend::Freecursive;
            assert_eq!(hits.position_map_stash_hits > 1000, is_freecursive, "{states:?}");
        }
    }
    verdicts.conclude();
}

/// Tests that a request that the client serves itself makes no access, and that all other accesses
/// have the usual shape. So storage sees only the number of accesses.
#[test]
fn served_hits_leave_whole_accesses() {
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        for setup in [Setup::new(scheme, 500), Setup::freecursive(scheme, 300)] {
            for batched in [false, true] {
                let setup = serving(with_sets(SETS[1], Setup { batched, ..setup }));
                for run in setup.runs() {
                    assert_whole(&run);
                }
            }
        }
    }
}

/// Tests that with served hits a path is announced only if it is certain to be read.
#[test]
fn served_hits_are_not_announced() {
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        let setup = Setup { batched: true, ..Setup::new(scheme, 1000) };
        let setup = serving(with_sets(SETS[1], setup));
        for run in setup.runs() {
            assert_shown_ahead_are_read_next(&run);
            let shown = |run| {
                let all = trips(run).into_iter();
                all.filter(|trip| trip.operation == Operation::Prefetch).count()
            };
            assert!(scheme != Scheme::Path || shown(&run) == 0, "{}", run.workload);
        }
    }
}

/// Tests what storage learns with [`HitPolicy::Serve`] in addition to the number of accesses. An
/// eviction moves blocks off the client, and only a block that is not on the client makes an
/// access. So with requests for few blocks, accesses follow the path of the eviction before them
/// more often than by chance. If this test fails, the policy reveals less than its documentation
/// says.
#[test]
fn served_hits_reveal_recent_evictions() {
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        for setup in [Setup::new(scheme, ACCESSES), Setup::freecursive(scheme, ACCESSES)] {
            let setup = with_sets(SETS[1], setup);
            let p_value = |setup: Setup| follows_the_eviction_before(&setup.run(Workload::Zipf));
            let (served, not_served) = (p_value(serving(setup)), p_value(setup));
            assert!(served < 1e-6 && not_served > 1e-3, "{served:e}, {not_served:e}, {setup:?}");
        }
    }
}

/// The p-value of the hypothesis that accesses share the three levels below the root with the last
/// evicted path only by chance.
fn follows_the_eviction_before(run: &Run) -> f64 {
    const PARTS: u64 = 1 << 3;
    let mut schedule = schedule(run).into_iter();
    let mut evicted = None;
    let mut parts = Vec::new();
    for trip in trips(run).iter().filter(|trip| trip.operation == Operation::Read) {
        let purpose = schedule.next().expect("the schedule has every read");
        if let (Purpose::Access, Some(evicted)) = (purpose, evicted) {
            parts.push((trip.leaf() ^ evicted) % PARTS);
        }
        if run.setup.scheme == Scheme::Path || purpose == Purpose::Eviction {
            evicted = Some(trip.leaf());
        }
    }
    uniformity(&histogram(parts, PARTS, PARTS))
}
