//! The table of techniques: the gain of each technique, alone and with others.
//!
//! The papers give speeds of simulated processors. Here, the engine's work is counted: path
//! accesses by purpose, bytes to and from storage, AES blocks, the stash. All numbers are costs per
//! request, which are the same on any machine. `docs/techniques.md` in the repository compares the
//! results with the papers.
//!
//! [`TECHNIQUES`] lists the rows. IR-DWB is not among them: it uses dummy slots of a fixed rate, so
//! its gain depends on time.

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
pub use plan::TechniquesPlan;
pub use results::{Results, Row, Run};
pub use run::Comparison;
pub use technique::{TECHNIQUES, Technique};

#[cfg(test)]
mod tests;
