//! Tests that the view of storage does not depend on secrets.
//!
//! Trees are small and tight (Z = 2, seven levels), so that rare states occur: the requested block
//! is in the stash or in the tree top; blocks are stuck; the stash is at its bound; a block was
//! never written, or was forgotten; a batch requests a block twice; a position-map block is in the
//! PLB or is evicted from it; counters overflow; a hit is served. Each test checks that its rare
//! states occurred.
//!
//! All seeds are fixed, so a result is reproducible. Each statistical test raises a false alarm for
//! one choice of seeds in three million ([`FALSE_ALARMS`]). The crate `planted-leaks` checks that
//! each test here detects the leaks that it is meant for.

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

/// The rate of false alarms of one statistical test function: one in three million.
const FALSE_ALARMS: f64 = 1e-6 / 3.0;
