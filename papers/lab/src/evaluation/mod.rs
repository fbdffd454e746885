//! The evaluation of IR-ORAM (sections III-A and VI), and Fig. 7 of Tiny ORAM: all timed figures of
//! the papers, on the simulator.
//!
//! ```text
//!  manifests ──► runs: variant × workload × setting ──► records, a line each ──► figures
//! ```
//!
//! A [`Manifest`] describes a figure, with the numbers that the paper states. Each run is made
//! once, even if several requested figures need it. The result of a run is recorded as soon as the
//! run ends, so that an interrupted evaluation can continue. Figures are made from the records.

mod experiment;
mod figure;
mod manifest;
mod measure;
mod named_settings;
mod own;
mod placed;
mod plan;
mod plotted;
mod record;
mod run;
mod setting;
mod stated_number;
mod switch_words;
mod switches;
#[cfg(test)]
mod tests;
mod time_estimate;
mod tiny;
mod variants;
mod workloads;

pub use experiment::Evaluation;
pub use figure::figures;
pub use manifest::Manifest;
pub use measure::{Mean, Measure, PathPart};
pub use own::ReadBeside;
pub(crate) use placed::checksum;
pub use plan::{EvaluationPlan, Run};
pub use plotted::{Axis, NamedMeasure, Plotted};
pub use record::{RunRecord, Scale};
pub use run::{kept_runs, run};
pub use setting::SwitchSetting;
pub use stated_number::{NumberReading, StatedNumber};
pub(crate) use switch_words::initial_words;
pub use switches::{Pages, Switches};
pub use variants::{VARIANTS, Variant};
pub use workloads::{MADE, MIX, PROGRAMS, Programs, RANDOM, REAL, SJENG, make, place};
