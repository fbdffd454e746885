use std::num::NonZeroUsize;
use std::sync::LazyLock;

use oblivio_core::{HitPolicy, RawConfig, TreeConfig};

use super::measure::{Load, measure};
use super::technique::{NAME_FLAT, NAME_LLC, NAME_RAW_FLAT, NAME_RHO, Setup, Top};
use super::*;
use crate::counting::{Counting, assert_survive_their_file, results_of};
use crate::{Experiment, LabError, Trace, Workload};

/// The results of the quick table, with a synthetic trace as an additional workload. They are
/// computed once.
static QUICK: LazyLock<Results> = LazyLock::new(|| results(&TechniquesPlan::quick(), 2));

fn trace() -> Trace {
    let lines = (0..3000u64).map(|i| format!("1 {} {}\n", i * i * 64 % 77_000, i * 640));
    Trace::read("a.trace", lines.collect::<String>().as_bytes()).unwrap()
}

fn results(plan: &TechniquesPlan, threads: usize) -> Results {
    results_of(Comparison { plan: plan.clone(), traces: vec![trace()] }, threads).unwrap()
}

fn setup_of(name: &str) -> Setup {
    TECHNIQUES.iter().find(|technique| technique.name == name).unwrap().setup
}

fn counts_of(results: &Results, name: &str) -> Vec<Counts> {
    results.row(name).unwrap().runs.iter().map(|run| run.counts).collect()
}

fn measured(setup: &Setup, workload: Workload) -> Counts {
    measure(&TechniquesPlan::quick(), setup, Load::Made(workload), 1, &|_| ()).unwrap().counts
}

#[test]
fn every_row_was_run_and_is_compared_with_an_existing_row() {
    assert_eq!(QUICK.rows.len(), TECHNIQUES.len());
    for row in &QUICK.rows {
        assert!(QUICK.row(&row.against).is_some(), "{}", row.against);
        let workloads: Vec<_> = row.runs.iter().map(|run| run.workload.as_str()).collect();
        assert_eq!(workloads, ["scan", "uniform", "Zipf", "a.trace"]);
        assert!(row.runs.iter().all(|run| run.counts.requests == QUICK.plan.requests));
    }
}

/// Checks that storage saw only paths that the ORAM counts, except for the scheduled evictions of
/// RAW ORAM: one per five accesses.
#[test]
fn storage_saw_only_paths_that_are_counted() {
    for row in &QUICK.rows {
        for Run { counts, .. } in &row.runs {
            let accesses = counts.data + counts.position_map + counts.remap;
            let due = if row.technique.starts_with("RAW") { accesses / 5 } else { 0 };
            let rounding = u64::from(due > 0);
            assert!(
                counts.due_evictions.abs_diff(due) <= rounding,
                "{}: {counts:?}",
                row.technique
            );
        }
    }
}

#[test]
fn a_flat_map_makes_one_path_access_a_request() {
    for counts in counts_of(&QUICK, NAME_FLAT) {
        let evictions = counts.background_evictions;
        assert_eq!(counts.paths() - evictions, counts.requests);
        assert_eq!(counts.data, counts.requests);
    }
}

#[test]
fn without_a_plb_each_request_makes_three() {
    for counts in counts_of(&QUICK, "no PLB") {
        assert_eq!((counts.data, counts.position_map), (counts.requests, 2 * counts.requests));
    }
}

/// IR-Stash makes the same path accesses as Baseline if it does not serve hits on the client.
#[test]
fn ir_stash_that_serves_no_hits_is_the_baseline() {
    for workload in [Workload::Uniform, Workload::Zipf] {
        let stash = Setup { hits: HitPolicy::Access, ..setup_of("IR-Stash") };
        let [stash, baseline] = [stash, setup_of("Baseline, large top")]
            .map(|setup| measured(&setup, workload))
            .map(|counts| Counts { background_evictions: 0, bytes: 0, aes_blocks: 0, ..counts });
        assert_eq!(stash, baseline);
    }
}

#[test]
fn ir_stash_needs_fewer_accesses_for_repeated_blocks() {
    let [stash, baseline] =
        ["IR-Stash", "Baseline, large top"].map(|name| measured(&setup_of(name), Workload::Zipf));
    assert!(stash.data < baseline.data && stash.position_map < baseline.position_map);
    assert!(10 * stash.bytes < 9 * baseline.bytes, "{stash:?} {baseline:?}");
}

/// The numbers of AES blocks of the headers and of the bodies, on the path's levels in storage.
fn aes_of_path(tree: &TreeConfig) -> (u64, u64) {
    let shape = tree.shape().unwrap();
    let levels = &shape.levels()[usize::from(tree.tree_top_levels)..];
    let header = |bytes: u64| (bytes - 8).div_ceil(16);
    levels.iter().fold((0, 0), |(headers, bodies), level| {
        let body = (level.bucket_bytes - level.header_bytes).div_ceil(16);
        (headers + header(level.header_bytes), bodies + body)
    })
}

#[test]
fn raw_oram_seals_headers_and_one_block_and_a_path_every_fifth_time() {
    let mut config = RawConfig::new(TechniquesPlan::quick().capacity, 64).unwrap();
    config.tree.tree_top_levels = TechniquesPlan::quick().large_tree_top_levels;
    let (headers, bodies) = aes_of_path(&config.tree);
    let setup = Setup { top: Top::LikeClient, ..setup_of(NAME_RAW_FLAT) };
    let counts = measured(&setup, Workload::Uniform);
    let access_only = counts.data * (2 * headers + 64 / 16);
    let eviction_only = counts.due_evictions * 2 * (headers + bodies);
    assert_eq!(counts.background_evictions, 0);
    assert_eq!(counts.aes_blocks, access_only + eviction_only);
}

#[test]
fn path_oram_seals_whole_paths_and_moves_them_twice() {
    let plan = TechniquesPlan::quick();
    let mut tree = TreeConfig::new(
        plan.capacity,
        64,
        crate::alloc_search::Profile::uniform(plan.leaf_level, 4).geometry().unwrap(),
        plan.stash_blocks_max,
    );
    tree.tree_top_levels = plan.tree_top_levels;
    let (headers, bodies) = aes_of_path(&tree);
    let bytes = 2 * tree.shape().unwrap().path_bytes();
    for counts in counts_of(&QUICK, NAME_FLAT) {
        assert_eq!(counts.aes_blocks, counts.paths() * 2 * (headers + bodies));
        assert_eq!(counts.bytes, counts.paths() * bytes);
    }
}

#[test]
fn rho_keeps_its_pattern_two_small_for_each_main() {
    for counts in counts_of(&QUICK, NAME_RHO) {
        let main = counts.data + counts.position_map + counts.remap;
        assert!(counts.small > 0 && counts.dummies > 0);
        assert!(counts.paths().is_multiple_of(3), "whole rounds only: {counts:?}");
        assert!(3 * main <= counts.paths());
    }
}

/// Delayed remapping fetches one block per miss and no block for a victim. A victim only costs
/// accesses to the position map.
#[test]
fn delayed_remapping_saves_data_accesses_for_changed_victims() {
    let [llc, delayed] = [NAME_LLC, "LLC-D"].map(|name| counts_of(&QUICK, name));
    for (llc, delayed) in llc.iter().zip(&delayed) {
        assert!(delayed.data < llc.data && delayed.data <= delayed.requests);
    }
}

#[test]
fn ir_alloc_moves_fewer_bytes_a_path() {
    let each = |name: &str| {
        let counts = measured(&setup_of(name), Workload::Scan);
        counts.bytes as f64 / counts.paths() as f64
    };
    let sizes = ["Baseline", "IR-Alloc 1", "IR-Alloc 2", "IR-Alloc 3", "IR-Alloc 4"].map(each);
    assert!(sizes.is_sorted_by(|larger, smaller| larger > smaller), "{sizes:?}");
}

#[test]
fn tables_depend_on_the_seed_not_on_threads_and_survive_their_file() {
    let plan = TechniquesPlan { requests: 1000, warm_up: 10, ..TechniquesPlan::new(8, 1000) };
    let once = results(&plan, 1);
    assert_eq!(once, results(&plan, 3));
    assert_ne!(once.rows, results(&TechniquesPlan { seed: 2, ..plan }, 2).rows);
    assert_survive_their_file::<Comparison>(&once);
}

#[test]
fn the_tables_name_every_row_and_the_papers_numbers() {
    let text = QUICK.text();
    for technique in TECHNIQUES {
        let name = technique.name;
        assert!(text.contains(&format!("| {name} ")), "{name} is missing in\n{text}");
    }
    assert!(!text.contains("NaN"), "{text}");
    let empty = Results { rows: Vec::new(), ..QUICK.clone() };
    assert!(empty.text().contains("the paper"), "a file without rows has tables too");
}

#[test]
fn progress_adds_up() {
    let (plan, host) = (TechniquesPlan::new(8, 1000), Counting::default());
    Comparison { plan, traces: vec![] }.run(&[], NonZeroUsize::MIN, &host).unwrap();
    assert_eq!(host.made.into_inner(), host.planned.into_inner());
}

#[test]
fn impossible_plans_are_refused() {
    for plan in [
        TechniquesPlan::new(7, 1000),
        TechniquesPlan::new(21, 1000),
        TechniquesPlan::new(64, 1000),
        TechniquesPlan::new(8, 999),
    ] {
        let result = results_of(Comparison { plan: plan.clone(), traces: vec![] }, 1);
        assert!(matches!(result, Err(LabError::Plan(_))), "{plan:?}");
    }
}
