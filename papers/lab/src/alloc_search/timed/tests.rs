//! Searches by time, on small trees.

use std::num::NonZeroUsize;

use oblivio_models::alloc_search::steps_down;
use oblivio_sim::controller::Initial;

use super::super::{
    Candidate, Judge, Scheme, Search, SearchPlan, SearchTables, TimeJudge, TimedRecord, Verdict,
};
use crate::counting::{Counting, results_of};
use crate::{Experiment, KeptRecords, LabError, Workload};

/// A search on a tree of 1024 leaves, where small buckets soon fill the stash.
fn timed_plan(judge: TimeJudge) -> SearchPlan {
    let plan = SearchPlan::like_the_paper(10)
        .by_time(Judge::Time(TimeJudge { aging: 300, ..judge }), 2000);
    SearchPlan { stash_blocks_max: 30, space_loss_max: 0.1, ..plan }
}

fn search_by_time(plan: &SearchPlan, kept: &[TimedRecord]) -> (Search, Vec<TimedRecord>) {
    let host = Counting::default();
    let search = plan.clone().run(kept, NonZeroUsize::new(2).unwrap(), &host).unwrap();
    assert_eq!(host.made.into_inner(), host.planned.into_inner());
    let file = host.file.into_inner().unwrap();
    (search, KeptRecords::read("runs", file.as_bytes()).unwrap().records)
}

#[test]
fn a_search_by_time_finds_the_fastest_profile_within_the_eviction_limit() {
    let plan = timed_plan(TimeJudge::PAPER);
    let (search, records) = search_by_time(&plan, &[]);
    let (found, baseline) = (search.found(), &search.baseline);
    let cycles = |candidate: &Candidate| candidate.cycles_per_record().unwrap();
    assert!(cycles(found) < 0.95 * cycles(baseline), "{}", search.table());
    assert!(search.paper.iter().all(|paper| paper.cycles_per_record().is_some()));
    for step in steps_down(&plan, &found.profile) {
        let tried = search.tried.iter().rfind(|tried| tried.profile == step).unwrap();
        let is_no_better = tried.runs.is_empty() || cycles(tried) >= cycles(found);
        assert!(is_no_better || tried.verdict == Verdict::TooManyEvictions, "{tried:?}");
    }
    // The machine is the one of Table I, with these buckets and an aged tree.
    let of_found = records.iter().find(|record| record.run == found.runs[0]).unwrap();
    let oram = of_found.spec.oram.as_ref().unwrap();
    assert_eq!((&oram.slots[..], oram.tree_top_ways), (found.profile.slots(), None));
    assert_eq!(oram.initial, Initial::Aged(300));
    // Without a limit on evictions, only time ends the search.
    let bold = SearchPlan { extra_evictions_max: 100.0, ..plan.clone() };
    let (bold, _) = search_by_time(&bold, &records);
    let tried = bold.tried.iter().map(|tried| tried.verdict);
    assert!(tried.clone().any(|verdict| verdict == Verdict::NoGain), "{}", bold.table());
    assert!(!tried.clone().any(|verdict| verdict == Verdict::TooManyEvictions));
    assert!(cycles(bold.found()) <= cycles(found));
    let again = Search::from_json(&search.to_json().unwrap()).unwrap();
    assert_eq!((again.table(), again), (search.table(), search));
}

#[test]
fn a_search_by_time_reuses_recorded_runs() {
    let plan = timed_plan(TimeJudge::PAPER);
    let (whole, records) = search_by_time(&plan, &[]);
    let (again, left) = search_by_time(&plan, &records[..records.len() - 2]);
    assert_eq!((again, left.len()), (whole.clone(), 2));
    // Records of another model are not reused.
    let of_another =
        |record: &TimedRecord| TimedRecord { model: record.model + 1, ..record.clone() };
    let older: Vec<_> = records.iter().map(of_another).collect();
    assert_eq!(search_by_time(&plan, &older).1.len(), records.len());
    // Another machine, another seed or another number of records is another run.
    let others = [
        timed_plan(TimeJudge { ir_stash: true, ..TimeJudge::PAPER }),
        timed_plan(TimeJudge { channels: 1, ..TimeJudge::PAPER }),
        SearchPlan { seed: 2, ..plan.clone() },
        SearchPlan { accesses: 1500, endurance_accesses: 1500, ..plan },
    ];
    for other in others {
        let (search, made) = search_by_time(&other, &records);
        assert!(made.len() > 6, "{other:?}");
        assert_ne!(search.baseline.runs, whole.baseline.runs);
    }
}

#[test]
fn with_ir_stash_the_tree_top_is_indexed_by_address() {
    let judge = TimeJudge { ir_stash: true, ..TimeJudge::PAPER };
    let plan = timed_plan(judge);
    let spec = judge.spec(&plan, &plan.uniform()).unwrap();
    let oram = spec.oram.unwrap();
    assert_eq!((oram.tree_top_ways, oram.tree_top_levels), (Some(4), 4));
    assert_eq!((oram.data_blocks, oram.stash_blocks_max), (4 << 10, 30));
}

#[test]
fn impossible_searches_by_time_are_refused() {
    let good = timed_plan(TimeJudge::PAPER);
    let mut plans = vec![good.clone(); 4];
    plans[0].workload = Workload::Zipf;
    plans[1].leaf_level = 26;
    plans[2].scheme = Scheme::Raw { evict_period: 5 };
    plans[3].endurance_leaf_level = 11;
    for plan in plans {
        let result = results_of(plan.clone(), 1);
        assert!(matches!(result, Err(LabError::Plan(_))), "{plan:?}");
    }
}
