//! A simulator of ORAM in a secure processor.
//!
//! A [`trace`] lists the misses and write-backs of a program's first-level cache. They pass through
//! a [`processor`] with its last-level [`cache`], a [`controller`] made of the engine itself, and
//! [`dram`]. So the scheme code that serves volumes is timed here in cycles (IR-ORAM, section V).
//!
//! All results follow from the inputs and a seed. The simulator uses no clock and no other
//! randomness.

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

/// The version of the model. It is raised whenever the same specification, trace and seed give a
/// different result, so that results of different versions are not mixed. Results without a version
/// are from version 1.
pub const MODEL: u32 = 1;

/// A point in time or a duration, in processor cycles.
pub type Cycle = u64;

/// Bytes of a cache line, and of the ORAM blocks that hold one line.
pub const LINE_BYTES: u64 = 64;
