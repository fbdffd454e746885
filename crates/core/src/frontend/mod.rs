//! Frontends whose position map does not lie in client memory: Tiny ORAM, sections II-B and V-E.
//!
//! The words *frontend* (step 1 of an access: which path, and which one next) and *backend* (the
//! other steps) are those of Freecursive ORAM (Fletcher et al., ASPLOS'15).
//!
//! - [`RecursiveOram`]: plain recursion (Shi et al., Asiacrypt'11). The position map lies in a
//!   smaller ORAM, the position map of that one in a smaller one still. Literal and slow: what the
//!   other is held against.
//! - [`FreecursiveOram`]: all levels in one tree, counters in place of leaves, and a small cache of
//!   position-map blocks (PLB) that makes the recursion nearly free where requests are near each
//!   other.
//!
//! # What storage sees of Freecursive ORAM
//! A sequence of path accesses of one shape, to leaves that are uniform, independent and never used
//! before. It cannot tell which of them fetch data and which the position map. But it sees **how many
//! there are**, and that depends on the addresses: a scan needs about one a request, random requests
//! two or three. Whoever must hide that too makes path accesses at a fixed rate, or uses
//! [`RecursiveOram`] or [`FlatOram`](crate::FlatOram).

mod client_map;
mod compressed;
mod config;
mod integrity;
mod leaf_prf;
mod plb;
mod pmmac;
mod recursive;
mod tally;
mod unified;

pub use config::FreecursiveConfig;
pub use integrity::Integrity;
pub use pmmac::PMMAC_BYTES;
pub use recursive::{RecursiveConfig, RecursiveOram};
pub use tally::FrontendTally;
pub use unified::FreecursiveOram;
