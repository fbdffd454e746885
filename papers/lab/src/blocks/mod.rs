//! Where blocks are in the tree, and where they are found (IR-ORAM, sections III-B, III-C and VI-B).
//!
//! ```text
//!  figures ──► runs: an ORAM × a course of requests ──► snapshots, a line for each run ──► figures
//! ```
//!
//! Nothing is timed: the simulator's [functional mode](oblivio_sim::functional) makes the paths, one after
//! the other. A [`Course`] says what is asked for, and when snapshots are taken. Runs are kept as those of
//! the [evaluation](crate::evaluation) are, so that what was interrupted goes on with the next run; and with
//! [a place for trees](crate::Trees), with the next stretch of a run.

mod catalogue;
mod course;
mod experiment;
mod figure;
mod found;
mod makers;
mod migration;
mod plan;
mod readings;
mod record;
mod run;
mod saved;
mod setting;
#[cfg(test)]
mod tests;

pub use catalogue::FIGURES;
pub use course::Course;
pub use experiment::Blocks;
pub use figure::{BlocksFigure, figures};
pub use plan::{Plan, Run};
pub use record::{BlocksRecord, Taken};
pub use run::run;
pub use setting::Setting;
