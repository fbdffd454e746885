//! Every meaningful combination of techniques works, and the others are refused with a reason.
//! Tests a covering set of combinations, small enough to run in every build.
//!
//! `privacy/grid.rs` tests what storage sees of the same combinations.

mod answers;
mod covered;
mod refused;
