//! The grid of the engine: every technique is a factor, and a choice of one level of each factor is
//! a combination. A few dozen combinations cover every compatible pair of levels.
//!
//! The chapter `manual::composition` describes the combinations in words.

mod build;
mod composed;
mod covering;
mod drive;
mod factors;
mod refusal;

pub(crate) use build::{
    ACCESSES_PER_EVICTION, CAPACITY, LEAVES, POSITION_MAP_DEPTH, SMALL_PER_MAIN, TOP_LEVELS,
    compose,
};
pub(crate) use covering::{all_allowed, all_refused, allowed_together, covering_set, together};
pub(crate) use drive::{GridOram, Request, RequestKind, requests};
pub(crate) use factors::{Bound, Combination, Front, Map, Requests, Scheme, Top};
pub(crate) use refusal::{Refusal, refusal};
