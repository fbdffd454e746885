//! What came out of a run.

use oblivio_sim::MODEL;
use oblivio_sim::system::{Outcome, SystemSpec};
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::records::first_model;

/// How large and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// The level of the leaves.
    pub leaf_level: u8,
    /// Records that count.
    pub records: u64,
    /// Records before them.
    pub warm_up: u64,
    /// Records before those, which fill the LLC alone and take no time.
    #[serde(default)]
    pub llc_warm_up: u64,
}

impl Scale {
    /// Those that take time: those that count, and those before.
    pub(super) fn timed_records(self) -> u64 {
        self.records + self.warm_up
    }

    /// Those that are taken from the trace.
    pub(super) fn all_records(self) -> u64 {
        self.timed_records() + self.llc_warm_up
    }
}

/// A run, and everything to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// What it is called; see [`Plan::key`](super::Plan::key).
    pub key: String,
    /// The machine.
    pub variant: String,
    /// What ran on it.
    pub workload: String,
    /// CRC-32 of the records as they were run: other traces are other runs.
    pub trace: u32,
    /// Whether programs were the short samples that come with the simulator. Of records without it, they were recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub samples: bool,
    /// How large and how long.
    pub scale: Scale,
    /// Where the coins of its requests came from.
    pub seed: u64,
    /// Where those of its initial tree came from. Of records without it: from `seed` as well.
    #[serde(default)]
    pub initial_seed: Option<u64>,
    /// The machine in full.
    pub spec: SystemSpec,
    /// What came out, without the warm-up.
    pub outcome: Outcome,
    /// How many commands of DRAM were held against its rules, and were legal. Nothing: they were not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_commands: Option<u64>,
    /// The [model](oblivio_sim::MODEL) of the simulator: what another one made is not used again.
    #[serde(default = "first_model")]
    pub model: u32,
    /// How long it took.
    pub seconds: f64,
    /// On which computer.
    pub machine: String,
    /// By which version of this program.
    pub version: String,
}

impl RunRecord {
    /// Whether it is the run called `key`, of this trace, initial tree, machine and model, whatever came out.
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

    /// Whether its commands were checked, if `plan` wants that.
    pub(super) fn is_checked_as(&self, plan: &Plan) -> bool {
        self.checked_commands.is_some() || !plan.checks_commands
    }
}
