//! A line for each run that has ended, so that a long study goes on where it was interrupted.

use serde::{Deserialize, Serialize};

use super::Run;
use super::plan::Task;

/// A run, and everything to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StashRecord {
    /// What was measured.
    pub(super) task: Task,
    /// What came out.
    pub(super) run: Run,
    /// How long it took.
    seconds: f64,
    /// On which computer.
    machine: String,
    /// By which version of this program.
    version: String,
}

impl StashRecord {
    pub(super) fn new(task: &Task, run: Run, seconds: f64, machine: &str, version: &str) -> Self {
        let (machine, version) = (machine.to_owned(), version.to_owned());
        Self { task: *task, run, seconds, machine, version }
    }
}
