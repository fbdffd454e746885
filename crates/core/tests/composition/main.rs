//! Every combination of techniques that makes sense composes, and the others are refused with the
//! reason: over a covering set of combinations, small enough to run at every build.
//!
//! What storage sees of the same combinations is tested by `privacy/grid.rs`.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod answers;
mod covered;
mod refused;

#[path = "../support/composition/mod.rs"]
mod composition;
#[path = "../support/noting.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod noting;
