//! The experiments of Oblivio: statements of papers, tested on the engine, on simulators and by
//! models.
//!
//! Each experiment is a module with a type that implements [`Experiment`]: its parameters, a `run`
//! that gives results, and conversions of results to a file, tables, figures and plots. The same
//! parameters give the same results except for measured times, on any machine and with any number
//! of threads. [`experiments!`] lists all experiments.

pub mod alloc_search;
pub mod blocks;
mod choice;
#[cfg(test)]
mod counting;
pub mod dram;
mod error;
pub mod evaluation;
mod experiment;
mod kept_studies;
pub mod links;
mod markdown;
#[cfg(test)]
mod memory_trees;
pub mod range_media;
pub mod range_stash;
pub mod raw_traffic;
mod records;
pub mod relay;
pub mod report;
pub mod roram;
pub mod s3oram;
pub mod share_overflow;
pub mod stash_study;
pub mod techniques;

pub use choice::chosen;
pub use error::LabError;
pub use experiment::{Experiment, experiment_of};
use oblivio_models::workers;
pub use oblivio_models::workload::Workload;
pub use oblivio_sim::trace::Trace;
pub use records::{Host, KeptRecords, Trees, counted_runs, line_of, unpack};
