//! The levels on which blocks are, and on which requests find them (IR-ORAM, sections III-B, III-C
//! and VI-B).
//!
//! ```text
//!  figures ──► runs: an ORAM × a course of requests ──► snapshots, a line for each run ──► figures
//! ```
//!
//! Nothing is timed: the simulator's [functional mode](oblivio_sim::functional) makes the paths in
//! sequence. A [`Course`] determines the requests and the snapshots. Finished runs are recorded as
//! in the [evaluation](crate::evaluation). After an interruption, the study makes only the runs
//! that are not recorded. With [storage for trees](crate::Trees), an interrupted run continues
//! after its last complete stretch.

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
pub use plan::{BlocksPlan, Run};
pub use record::{BlocksRecord, Taken};
pub use run::run;
pub use setting::RequestSetting;
