//! The record of a run.

use oblivio_sim::MODEL;
use oblivio_sim::system::{Outcome, SystemSpec};
use serde::{Deserialize, Serialize};

use super::plan::EvaluationPlan;
use crate::records::first_model;

/// The size of the tree, and the number of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// The level of the leaves.
    pub leaf_level: u8,
    /// Measured records, after the warm-up.
    pub records: u64,
    /// Records of the warm-up.
    pub warm_up: u64,
    /// Records before the warm-up, which fill the LLC and are not timed.
    #[serde(default)]
    pub llc_warm_up: u64,
}

impl Scale {
    /// Timed records: the warm-up and the measured records.
    pub(super) fn timed_records(self) -> u64 {
        self.records + self.warm_up
    }

    /// The total number of records taken from the trace.
    pub(super) fn all_records(self) -> u64 {
        self.timed_records() + self.llc_warm_up
    }
}

/// The result of a run, and everything that determines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// The name of the run: see [`EvaluationPlan::key`](super::EvaluationPlan::key).
    pub key: String,
    /// The name of the machine.
    pub variant: String,
    /// The name of the workload.
    pub workload: String,
    /// CRC-32 of the trace's records, after their pages were placed in memory. It distinguishes
    /// runs of different traces.
    pub trace: u32,
    /// Whether the traces of programs were the simulator's short samples. Records without this
    /// field used recorded traces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub samples: bool,
    /// The size of the tree, and the number of records.
    pub scale: Scale,
    /// The seed of the run's requests.
    pub seed: u64,
    /// The seed of the run's initial tree. Records without this field used `seed`.
    #[serde(default)]
    pub initial_seed: Option<u64>,
    /// The complete description of the simulated machine.
    pub spec: SystemSpec,
    /// The result, without the warm-up.
    pub outcome: Outcome,
    /// The number of DRAM commands that were checked and legal. `None` if they were not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_commands: Option<u64>,
    /// The [model](oblivio_sim::MODEL) of the simulator. Records of another model are not reused.
    #[serde(default = "first_model")]
    pub model: u32,
    /// Wall-clock seconds of the run.
    pub seconds: f64,
    /// The name of the machine that made the run.
    pub machine: String,
    /// The version of this program that made the run.
    pub version: String,
}

impl RunRecord {
    /// Whether this record is of the run `key` with the given trace, initial tree and machine, and
    /// of the current model.
    pub(super) fn is_same_run(
        &self,
        key: &str,
        trace: u32,
        initial_seed: u64,
        spec: &SystemSpec,
    ) -> bool {
        let run = (self.key.as_str(), self.trace, self.initial_seed, &self.spec, self.model);
        run == (key, trace, Some(initial_seed), spec, MODEL)
    }

    /// Whether the DRAM commands of the run were checked, or `plan` does not require that.
    pub(super) fn is_checked_as(&self, plan: &EvaluationPlan) -> bool {
        self.checked_commands.is_some() || !plan.checks_commands
    }
}
