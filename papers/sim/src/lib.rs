//! ORAM in a secure processor, simulated.
//!
//! A program's misses in the first-level cache are read from a [`trace`]. They go through a [`processor`]
//! and its last-level [`cache`], to a controller made of the engine itself, to DRAM. So the same
//! scheme code that serves volumes is timed here in cycles (IR-ORAM, section V).
//!
//! Everything follows from its inputs and a seed: there is no clock and no chance of its own.

pub mod cache;
pub mod controller;
pub mod dram;
mod error;
mod excerpt;
pub mod functional;
pub mod processor;
pub mod recording;
pub mod samples;
pub mod system;
pub mod trace;

pub use error::SimError;
pub use excerpt::cut_lines;

/// The number of the model. It is raised when another result follows from the same specification, trace and seed, so that
/// what came out of another model is told from what would come out of this one. What was kept before models had
/// numbers is of the first.
pub const MODEL: u32 = 1;

/// A point in time, or a stretch of it, in cycles of the processor.
pub type Cycle = u64;

/// Bytes of a line of memory: what caches and ORAM blocks hold.
pub const LINE_BYTES: u64 = 64;
