//! What storage sees must not depend on what the client does: tests of the view.
//!
//! Trees are small and tight (Z = 2, seven levels), so that rare states occur: the block asked for
//! is in the stash or in the tree top, blocks are stuck, the stash is at its bound, a block was
//! never written or was forgotten, a batch asks for one block twice, a position-map block is in the PLB
//! or is pushed out of it, counters begin anew, a hit is served. Each test proves that they did.
//!
//! All seeds are fixed, so a run passes or fails for good. The statistical tests alarm falsely for
//! one choice of seeds in a million ([`FALSE_ALARMS`]). `planted-leaks` of the test kit shows that
//! each test here notices the leaks it is for.

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

/// The rate of false alarms of one statistical test function: three of them share one in a million.
const FALSE_ALARMS: f64 = 1e-6 / 3.0;
