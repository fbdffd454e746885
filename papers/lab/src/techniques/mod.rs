//! The table of techniques: what each one gains, alone and with others.
//!
//! The papers give speeds of simulated processors. Here everything is counted on the engine itself:
//! path accesses and what they were for, bytes to and from storage, AES blocks, the stash. So a figure
//! here is a cost a request, the same on any machine. `docs/techniques.md` of the repository has the results beside
//! what the papers state.
//!
//! [`TECHNIQUES`] are the rows. IR-DWB is not among them: it fills slots of a fixed rate that nobody
//! needs, so what it gains depends on a clock.

mod build;
mod counts;
mod measure;
mod plan;
mod results;
mod run;
mod stated;
mod subject;
mod table;
mod technique;

pub use counts::Counts;
pub use plan::Plan;
pub use results::{Results, Row, Run};
pub use run::Comparison;
pub use technique::{TECHNIQUES, Technique};

#[cfg(test)]
mod tests;
