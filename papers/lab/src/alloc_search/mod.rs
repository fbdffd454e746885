//! The search for IR-Alloc: the smallest useful buckets on the middle levels.
//!
//! Most slots of the middle levels of a tree hold no block, but every access moves them. IR-ORAM
//! (section IV-B, IR-Alloc) makes those buckets smaller. An access then moves fewer slots, and
//! little space is lost, since most slots are at the leaves. Blocks that do not fit stay in the
//! stash, so that background evictions become more frequent. A greedy search balances the two
//! effects.
//!
//! The engine, or a simulated processor, runs with each profile, and [`Judge`] compares the
//! results. `docs/alloc-search.md` in the repository has the results.

mod judge;
mod paper_profiles;
mod plot;
mod search;
mod sized;
mod table;
mod timed;

pub use judge::{Judge, TimeJudge};
pub use oblivio_models::alloc_search::{Candidate, Profile, Run, Scheme, Time, Verdict};
pub use paper_profiles::{
    PAPER_PROFILES, PaperProfile, SEARCHED_SLOTS, SEARCHED_TREE_TOP_LEVELS, searched_profile,
};
pub use search::{full_plan, quick_plan};
pub use sized::{profile_beside_ir_stash, sized_profile};
pub use table::SearchTables;
pub use timed::TimedRecord;

/// Parameters of a search, by slots or by time.
pub type SearchPlan = oblivio_models::alloc_search::SearchPlan<Judge>;

/// Result of a search, by slots or by time.
pub type Search = oblivio_models::alloc_search::Search<Judge>;

/// Result of a search, reduced to the parameters that a tree needs.
pub type Allocation = oblivio_models::alloc_search::Allocation<Judge>;
