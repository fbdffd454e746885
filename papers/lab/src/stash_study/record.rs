//! The record of a run, which is one line of a file, so that an interrupted study can continue.

use serde::{Deserialize, Serialize};

use super::Run;
use super::plan::Task;

/// The result of a run, and everything that determines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StashRecord {
    /// The parameters of the run.
    pub(super) task: Task,
    /// The result of the run.
    pub(super) run: Run,
    /// Wall-clock seconds of the run.
    seconds: f64,
    /// The name of the machine that made the run.
    machine: String,
    /// The version of this program that made the run.
    version: String,
}

impl StashRecord {
    pub(super) fn new(task: &Task, run: Run, seconds: f64, machine: &str, version: &str) -> Self {
        let (machine, version) = (machine.to_owned(), version.to_owned());
        Self { task: *task, run, seconds, machine, version }
    }
}
