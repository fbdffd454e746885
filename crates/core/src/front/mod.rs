//! Arrays of blocks that hide how they are used: what stands before a scheme.
//!
//! A front end does step 1 of an access: which path is read, and which one the block moves to (the
//! *frontend* of Freecursive ORAM). Its position map is [flat](FlatOram) or lies in a tree
//! ([`recursion`]); before it there can be [ρ](rho) and a [cache](CachedOram).
//!
//! - [`Oram`] is what its users have: an array of blocks.
//! - [`Front`] is what its owner has besides, whatever it is made of: [`build`](build()) makes it from parameters.

mod build;
mod cache;
mod counters;
mod flat;
mod hits;
mod interface;
pub mod recursion;
pub mod rho;

pub use build::{Ground, MapConfig, OnStores, OramConfig, SchemeConfig, build};
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
