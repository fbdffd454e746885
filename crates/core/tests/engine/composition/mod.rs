//! Tests that every meaningful combination of techniques works, and that all others are refused
//! with a reason. The tests use a covering set of combinations, small enough to run in every build.
//!
//! `privacy/grid.rs` tests the views of the same combinations.

mod answers;
mod covered;
mod refused;
