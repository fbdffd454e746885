//! Arrays of blocks that hide their access pattern: front ends of schemes.
//!
//! A front end does step 1 of an access: it looks up the path to read, and draws the path that the
//! block moves to (the *frontend* of Freecursive ORAM). Its position map is [flat](FlatOram) or in
//! a tree ([`recursion`]). Optionally there are [ρ](rho) and a [cache](CachedOram) in front.
//!
//! - [`Oram`] is the interface for users: an array of blocks.
//! - [`Front`] is the interface for the owner, for every kind of ORAM. [`build`](build()) makes an
//!   ORAM from its parameters.

mod build;
mod cache;
mod counters;
mod flat;
mod hits;
mod interface;
pub mod recursion;
pub mod rho;

pub use build::{Environment, MapConfig, OnStores, OramConfig, SchemeConfig, build};
pub use cache::{CacheConfig, CacheTally, CachedOram, RemapPolicy};
pub use counters::{Counters, FrontTally};
pub use flat::{FlatOram, PathOram, RawOram};
pub use hits::HitPolicy;
pub use interface::{Access, Front, Oram, Placement, VisitedBlock, check_request};
pub(crate) use interface::{check_buffer, check_requests, visit_tree};
pub use recursion::{
    FreecursiveConfig, FreecursiveOram, Integrity, RecursiveConfig, RecursiveOram,
};
pub use rho::{RhoConfig, RhoOram, RhoTally};
