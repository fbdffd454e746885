//! The alloc search: how small may the buckets of the middle levels be?
//!
//! Most slots of the middle levels of a tree hold no block, and yet every access moves them. IR-ORAM
//! (section IV-B, IR-Alloc) makes those buckets smaller: an access moves fewer slots, space is hardly
//! lost, for it is at the leaves, and what does not fit is left in the stash, so that background
//! evictions become more frequent. A greedy search weighs one against the other.
//!
//! The engine runs with each profile. What it moves, or the time of a simulated processor, judges
//! the profile: see [`Judge`].
//! `docs/alloc-search.md` of the repository has the results.

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

/// What to search, by slots or by time.
pub type Plan = oblivio_models::alloc_search::Plan<Judge>;

/// What a search found, by slots or by time.
pub type Search = oblivio_models::alloc_search::Search<Judge>;

/// What a search found, as a tree takes it.
pub type Allocation = oblivio_models::alloc_search::Allocation<Judge>;
