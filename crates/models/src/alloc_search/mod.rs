//! The search for bucket sizes: how small can the buckets of the middle levels be?
//!
//! Most slots of the middle levels of a tree hold no block, yet every access moves them. IR-ORAM
//! (section IV-B, IR-Alloc) makes those buckets smaller. An access then moves fewer slots, and
//! little space is lost, because most slots are near the leaves. Blocks that no longer fit stay in
//! the stash, so background evictions become more frequent. A greedy search looks for the profile
//! that moves the fewest slots without too many background evictions. At the end, it runs this
//! profile on the *last tree*, where the profile must keep to the same limits. The last tree is
//! deeper than the searched tree if the search is for a deeper volume.

mod allocation;
mod candidate;
#[cfg(test)]
mod counting;
mod judge;
mod measure;
mod plan;
mod profile;
mod results;
mod scheme;
mod search;
mod volume_tree;

pub use allocation::Allocation;
pub use candidate::{Candidate, Verdict};
pub use judge::{BySlots, Judge};
pub use measure::{Run, Time, measure};
pub use plan::{SearchPlan, all_records};
pub use profile::Profile;
pub use results::Search;
pub use scheme::Scheme;
pub use search::{Bench, run, steps_down};
pub use volume_tree::{SEARCHED_LEAF_LEVEL, VolumeTree};

/// The name of this search in its results file.
pub const NAME: &str = "alloc-search";

/// The version of the format of the results file.
const FORMAT_VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use super::counting::Counting;
    use super::*;
    use crate::Error;
    use crate::workload::Workload;

    /// Returns the plan of a search on a tree of 256 leaves. The load is high enough and the stash
    /// small enough that smaller buckets cause background evictions.
    fn small_plan() -> SearchPlan {
        SearchPlan {
            stash_blocks_max: 20,
            space_loss_max: 0.05,
            extra_evictions_max: 0.0005,
            warm_up_passes: 2,
            accesses: 10_000,
            endurance_accesses: 20_000,
            ..SearchPlan::like_the_paper(8)
        }
    }

    fn search(plan: &SearchPlan, threads: usize) -> Search {
        Counting::default().search(plan, threads).unwrap()
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
        // It is a local optimum: every further step was tried and rejected.
        let steps = found.profile.steps_down(plan.tree_top_levels, &[1]);
        for step in steps {
            let tried = search.tried.iter().rfind(|tried| tried.profile == step).unwrap();
            assert!(!matches!(tried.verdict, Verdict::Taken | Verdict::NotBest), "{tried:?}");
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
        let plan = SearchPlan { workload: Workload::Zipf, ..small_plan() };
        let once = search(&plan, 1);
        assert_eq!(once, search(&plan, 3));
        let file = once.to_json().unwrap();
        assert_eq!(Search::from_json(&file).unwrap(), once);
        assert_eq!(Allocation::from_json(&file).unwrap(), Allocation::from_search(&once));
        assert_ne!(once.baseline.runs, search(&SearchPlan { seed: 2, ..plan }, 1).baseline.runs);
    }

    #[test]
    fn progress_adds_up() {
        let bench = Counting::default();
        bench.search(&small_plan(), 1).unwrap();
        assert_eq!(bench.made.into_inner(), bench.planned.into_inner());
    }

    #[test]
    fn a_tree_that_is_too_full_keeps_its_uniform_profile() {
        let plan = SearchPlan { stash_blocks_max: 1, ..small_plan() }.with_load(7.5);
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
            let result = Counting::default().search(&plan, 1);
            assert!(matches!(result, Err(Error::Plan(_))), "{plan:?}");
        }
    }

    /// Returns a volume with 512 leaves. Its search uses a tree of 128 leaves, whose stash fills
    /// soon if buckets are small.
    fn volume() -> VolumeTree {
        VolumeTree {
            slots: 5,
            evict_period: 5,
            stash_blocks_max: 5,
            leaf_level: 9,
            tree_top_levels: 2,
        }
    }

    fn volume_plan() -> SearchPlan {
        SearchPlan {
            tree_top_levels: 0,
            path_slots_beside: 0,
            space_loss_max: 0.1,
            warm_up_passes: 2,
            accesses: 10_000,
            endurance_accesses: 20_000,
            ..volume().search(7)
        }
    }

    #[test]
    fn raw_oram_is_searched_with_evictions_beyond_the_scheduled_ones() {
        let plan = volume_plan();
        let search = search(&plan, 2);
        let found = search.found();
        assert_eq!(search.baseline.evictions_per_access(), Some(0.0));
        assert!(search.paper.is_empty());
        assert!(found.profile.space_loss(&search.baseline.profile) <= plan.space_loss_max);
        let evictions = search.endurance.evictions_per_access().unwrap();
        assert!(evictions > 0.0, "the test is too easy");
        assert!(plan.scheme.extra_paths(evictions) <= plan.extra_evictions_max);
        let slots = |candidate: &Candidate| candidate.slots_per_access(&plan).unwrap();
        assert_eq!(slots(&search.baseline), 1.4 * 5.0 * f64::from(8 - plan.tree_top_levels));
        assert!(slots(found) < 0.9 * slots(&search.baseline), "{search:?}");
        // The last tree has its leaves on level 9.
        assert_eq!(search.endurance.blocks_on_levels.len(), 10);
        let blocks: u64 = search.endurance.blocks_on_levels.iter().sum();
        assert!((1270..=1280).contains(&blocks), "{blocks} of 1280 in the tree");
    }

    #[test]
    fn without_a_background_eviction_allowed_there_is_none() {
        let plan = SearchPlan { stash_blocks_max: 10, endurance_leaf_level: 7, ..volume_plan() };
        let plan = SearchPlan { extra_evictions_max: 0.0, space_loss_max: 0.3, ..plan };
        let search = search(&plan, 2);
        assert_eq!(search.endurance.evictions, 0);
        let found = search.found().profile.path_slots(plan.tree_top_levels);
        assert!(found < plan.uniform().path_slots(plan.tree_top_levels));
        assert!(search.tried.iter().any(|tried| tried.verdict == Verdict::TooManyEvictions));
    }

    #[test]
    fn a_profile_that_fails_on_the_last_tree_gives_way_to_an_earlier_one() {
        // On a tree of 16 leaves the stash can hold all blocks that small buckets leave over.
        let shallow =
            SearchPlan { leaf_level: 4, stash_blocks_max: 20, ..volume_plan() }.with_load(2.5);
        let plan = SearchPlan { space_loss_max: 0.4, extra_evictions_max: 0.0, ..shallow };
        let search = search(&plan, 2);
        let given_up: Vec<_> =
            search.tried.iter().filter(|tried| tried.verdict == Verdict::NotOnLastTree).collect();
        assert!(!given_up.is_empty(), "{search:?}");
        assert_ne!(&search.found(), given_up.last().unwrap());
        assert_eq!(search.endurance.evictions, 0);
    }

    #[test]
    fn a_tree_as_full_as_the_engine_can_make_it_is_not_searched_past_its_bounds() {
        for (leaf_level, tree_top_levels) in [(1, 0), (1, 1), (2, 2), (3, 1)] {
            let tree = VolumeTree { leaf_level, tree_top_levels, ..volume() };
            let plan = SearchPlan { accesses: 2000, endurance_accesses: 1000, ..tree.search(17) };
            let search = search(&plan, 1);
            assert_eq!(search.found(), &search.baseline, "one percent is less than a slot here");
        }
    }
}
