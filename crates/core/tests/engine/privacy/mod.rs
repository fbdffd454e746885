//! The view of storage must not depend on secrets: tests of the view.
//!
//! Trees are small and tight (Z = 2, seven levels), so that rare states occur. The requested block
//! is in the stash or in the tree top. Blocks are stuck. The stash is at its bound. A block was
//! never written, or was forgotten. A batch has a block twice. A position-map block is in the PLB
//! or is evicted from it. Counters overflow. A hit is served. Each test checks that its rare states
//! occurred.
//!
//! All seeds are fixed, so a result is reproducible. The statistical tests raise a false alarm for
//! one choice of seeds in a million ([`FALSE_ALARMS`]). The crate `planted-leaks` checks that each
//! test here detects the leaks that it is meant for.

mod ciphertext;
mod crash;
mod delayed;
mod dummies;
mod grid;
mod hits;
mod leaves;
mod paths;
mod rho;
mod rings;
mod run;
mod shape;
mod tampered;
mod trips;

/// The rate of false alarms of one statistical test function. Three such functions share a rate of
/// one in a million.
const FALSE_ALARMS: f64 = 1e-6 / 3.0;
