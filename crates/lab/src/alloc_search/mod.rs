//! The alloc search: how small may the buckets of the middle levels be?
//!
//! Most slots of the middle levels of a tree hold no block, and yet every access moves them. IR-ORAM
//! (section IV-B, IR-Alloc) makes those buckets smaller: an access moves fewer slots, space is hardly
//! lost, for it is at the leaves, and what does not fit is left in the stash, so that background
//! evictions become more frequent. A greedy search weighs one against the other.
//!
//! Each profile is judged by running the engine itself with it. `docs/alloc-search.md` has the
//! results.

mod candidate;
mod measure;
mod plan;
mod plot;
mod profile;
mod results;
mod search;
mod table;

pub use candidate::{Candidate, Verdict};
pub use measure::Run;
pub use plan::Plan;
pub use profile::{PAPER_PROFILES, PAPER_SLOTS, PaperProfile, Profile, paper_tree_top_levels};
pub use results::{Search, saved_profile};
pub use search::{Progress, run};

/// How the command line calls this experiment.
pub const NAME: &str = "alloc-search";

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{LabError, Workload};

    /// A tree of 256 leaves, loaded so far and with a stash so small that smaller buckets cost
    /// background evictions.
    fn small_plan() -> Plan {
        Plan {
            stash_blocks_max: 20,
            space_loss_max: 0.05,
            extra_evictions_max: 0.0005,
            warm_up_passes: 2,
            accesses: 10_000,
            endurance_accesses: 20_000,
            ..Plan::like_the_paper(8)
        }
    }

    fn search(plan: &Plan, threads: usize) -> Search {
        run(plan, NonZeroUsize::new(threads).unwrap(), &|_| ()).unwrap()
    }

    #[test]
    fn what_is_found_keeps_to_the_limits_and_moves_fewer_slots() {
        let plan = small_plan();
        let search = search(&plan, 2);
        let (found, baseline) = (search.found(), &search.baseline);
        assert!(found.profile.space_loss(&baseline.profile) <= plan.space_loss_max);
        let evictions = found.evictions_per_access().unwrap();
        assert!(evictions <= baseline.evictions_per_access().unwrap() + plan.extra_evictions_max);
        assert!(evictions > 0.0, "the test is too easy");
        let slots = |candidate: &Candidate| candidate.slots_per_access(&plan).unwrap();
        assert!(slots(found) < 0.9 * slots(baseline));
        // It is a local best: every further step was tried, and refused.
        let steps = found.profile.steps_down(plan.tree_top_levels);
        for step in steps {
            let tried = search.tried.iter().rfind(|tried| tried.profile == step).unwrap();
            assert!(!matches!(tried.verdict, Verdict::Taken | Verdict::Passed), "{tried:?}");
        }
        for verdict in [Verdict::Taken, Verdict::TooManyEvictions, Verdict::TooMuchSpace] {
            assert!(search.tried.iter().any(|tried| tried.verdict == verdict), "{verdict:?}");
        }
    }

    #[test]
    fn overflow_costs_evictions_and_no_run_fails() {
        let search = search(&small_plan(), 2);
        assert!(!search.endurance.ran_away);
        assert_eq!(search.endurance.accesses, 20_000);
        assert!(search.endurance.evictions > 0);
        let blocks: u64 = search.endurance.blocks_on_levels.iter().sum();
        let capacity = small_plan().capacity;
        assert!((capacity - 20..=capacity).contains(&blocks), "{blocks} of {capacity} in the tree");
    }

    #[test]
    fn the_same_seed_gives_the_same_search_on_any_number_of_threads_and_from_its_file() {
        let plan = Plan { workload: Workload::Zipf, ..small_plan() };
        let once = search(&plan, 1);
        assert_eq!(once, search(&plan, 3));
        let file = once.to_json().unwrap();
        assert_eq!(Search::from_json(&file).unwrap(), once);
        assert_eq!(saved_profile(&file).unwrap(), once.found().profile);
        assert_ne!(once.baseline.runs, search(&Plan { seed: 2, ..plan }, 1).baseline.runs);
    }

    #[test]
    fn progress_adds_up() {
        let (planned, made) = (AtomicU64::new(0), AtomicU64::new(0));
        run(&small_plan(), NonZeroUsize::MIN, &|progress| {
            match progress {
                Progress::Planned(accesses) => planned.fetch_add(accesses, Ordering::Relaxed),
                Progress::Made(accesses) => made.fetch_add(accesses, Ordering::Relaxed),
            };
        })
        .unwrap();
        assert_eq!(made.into_inner(), planned.into_inner());
    }

    #[test]
    fn a_tree_that_is_too_full_is_told_and_not_made_fuller() {
        let plan = Plan { stash_blocks_max: 1, ..small_plan() }.with_load(7.5);
        let search = search(&plan, 2);
        assert!(search.baseline.ran_away());
        assert_eq!(search.found(), &search.baseline);
    }

    #[test]
    fn plans_that_cannot_be_followed_are_refused() {
        let mut plans = vec![small_plan(); 8];
        plans[0].leaf_level = 25;
        plans[1].tree_top_levels = 9;
        plans[2].slots = 1;
        plans[3].capacity = 0;
        plans[4].accesses = 10;
        plans[5].space_loss_max = f64::NAN;
        plans[6].runs = 0;
        plans[7] = small_plan().with_load(9.0);
        for plan in plans {
            let result = run(&plan, NonZeroUsize::MIN, &|_| ());
            assert!(matches!(result, Err(LabError::Plan(_))), "{plan:?}");
        }
    }

    #[test]
    fn a_profile_that_is_no_tree_is_refused_not_built() {
        for text in ["{\"profile\":[]}", "{\"profile\":[4,0]}", "{\"profile\":[256]}"] {
            assert!(saved_profile(text).unwrap().geometry().is_err(), "{text}");
        }
        assert!(saved_profile("{}").is_err());
    }
}
