//! Every combination of techniques that makes sense composes, and the others are refused with the
//! reason: over a covering set of combinations, small enough to run at every build.
//!
//! What storage sees of the same combinations is tested by `privacy/grid.rs`.

mod answers;
mod covered;
mod refused;
