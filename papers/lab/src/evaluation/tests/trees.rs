//! Tests of runs that start from saved initial trees.

use oblivio_sim::controller::{Initial, InitialOram};
use oblivio_sim::system::{self, WarmUp};

use super::*;
use crate::memory_trees::MemoryTrees;

/// Makes the runs with `trees`. Returns the records without times, and the remarks.
fn with(
    plan: &EvaluationPlan,
    figures: &[Manifest],
    trees: &MemoryTrees,
) -> (Vec<RunRecord>, String) {
    let (records, host) = evaluate_with(plan, figures, &[], 2, Some(trees));
    (untimed(&records), host.remarks.into_inner().unwrap().join("\n"))
}

/// A manifest with every kind of ORAM, under two workloads.
fn all_kinds() -> Manifest {
    let variants = ["baseline", "rho", "llc-d", "ir-stash", "ir-oram", "tiny-raw", "none"];
    Manifest { variants: variants.map(str::to_owned).to_vec(), ..manifest() }
}

#[test]
fn saved_trees_give_identical_records_and_are_made_once() {
    for initial in [Initial::Placed, Initial::EachOnce] {
        let small = small();
        let plan = EvaluationPlan { switches: Switches { initial, ..small.switches }, ..small };
        let (without, _) = evaluate(&plan, &[all_kinds()], &[], 2);
        let trees = MemoryTrees::default();
        let expected = (untimed(&without), String::new());
        // The first pass makes the trees; the second finds them.
        for _ in 0..2 {
            assert_eq!(with(&plan, &[all_kinds()], &trees), expected, "{initial:?}");
        }
        // Baseline, the variants with the same tree, and all workloads share one tree. The tree of
        // RAW ORAM is not a tree of tags, so it is not saved.
        assert_eq!(trees.put().len(), 3, "{:?}", trees.put());
        assert!(trees.put().iter().all(|name| name.starts_with("initial-L12-seed1-")));
    }
}

/// Compares runs on copies of a shared tree with runs of each machine alone, on its own tree.
#[test]
fn runs_on_copies_equal_runs_on_their_own_tree() {
    let plan = small();
    let (records, _) = with(&plan, &[all_kinds()], &MemoryTrees::default());
    let programs = Programs::samples().unwrap();
    for record in records {
        let RunRecord { spec, workload, scale, seed, outcome, key, .. } = record;
        let lines = spec.oram.as_ref().map_or(EvaluationPlan::lines(12), |oram| oram.data_blocks);
        let records = scale.all_records();
        let trace = programs.records(&workload, records, lines, Pages::Scattered, seed).unwrap();
        let warm_up =
            WarmUp { llc_records: scale.llc_warm_up, records: scale.warm_up, ..WarmUp::default() };
        let own = InitialOram::Seed(plan.seed);
        let expected = system::run_from(&spec, own, trace, warm_up, seed, &()).unwrap();
        assert_eq!(outcome, expected, "{key}");
    }
}

#[test]
fn a_tree_is_read_once_for_all_its_runs() {
    let (plan, figures) = (small(), [all_kinds()]);
    let runs = plan.runs(&figures, &Programs::samples().unwrap()).unwrap();
    let mut begun: Vec<_> = runs.iter().map(|run| plan.initial_tree(run).unwrap()).collect();
    begun.dedup();
    // Three trees, then the runs without one.
    assert_eq!(begun.len(), 4, "{begun:?}");
    let trees = MemoryTrees::default();
    with(&plan, &figures, &trees);
    trees.read.lock().unwrap().clear();
    let (records, _) = evaluate_with(&plan, &figures, &[], 1, Some(&trees));
    // The estimate reads the first tree, and the runs read the others after it.
    let read = trees.read.into_inner().unwrap();
    assert_eq!((records.len(), read.len()), (14, 2 * 3), "checked, then read: {read:?}");
}

#[test]
fn another_seed_has_another_tree_and_empty_trees_are_not_saved() {
    let trees = MemoryTrees::default();
    let baseline = Manifest { variants: vec!["baseline".to_owned()], ..manifest() };
    for seed in [1, 2] {
        with(&EvaluationPlan { seed, ..small() }, std::slice::from_ref(&baseline), &trees);
    }
    assert_eq!(trees.names().len(), 2);
    let empty = Switches { initial: Initial::Empty, ..small().switches };
    with(&EvaluationPlan { switches: empty, ..small() }, &[baseline], &trees);
    assert_eq!(trees.names().len(), 2);
}

#[test]
fn a_damaged_tree_is_named_and_made_again() {
    let (trees, figures) = (MemoryTrees::default(), [manifest()]);
    let (expected, _) = with(&small(), &figures, &trees);
    let name = trees.names().remove(0);
    let damage = |bytes: &mut Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    };
    trees.trees.lock().unwrap().entry(name.clone()).and_modify(damage);
    let (records, remarks) = with(&small(), &figures, &trees);
    assert_eq!(records, expected);
    assert!(remarks.starts_with(&format!("{name} is unusable and is made again")), "{remarks}");
    assert_eq!(with(&small(), &figures, &trees), (expected.clone(), String::new()));

    let full = MemoryTrees { is_full: true, ..MemoryTrees::default() };
    let (records, remarks) = with(&small(), &figures, &full);
    assert_eq!(records, expected);
    assert!(remarks.contains(".tree: no space is left"), "{remarks}");
}
