//! What came out of a run.

use oblivio_sim::MODEL;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::functional::Snapshot;
use serde::{Deserialize, Serialize};

use crate::records::first_model;

/// A run, and everything to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlocksRecord {
    /// What it is called; see [`Plan::key`](super::Plan::key).
    pub key: String,
    /// Whose ORAM it is.
    pub variant: String,
    /// What was asked of it.
    pub course: String,
    /// CRC-32 of the traces: other traces are other runs.
    pub trace: u32,
    /// Where all coins came from.
    pub seed: u64,
    /// The ORAM in full.
    pub spec: OramSpec,
    /// What was seen, in order. The first is before all requests.
    pub snapshots: Vec<Taken>,
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

/// A snapshot, and what was asked for before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// A program, `uniform`, or nothing: `start`.
    pub after: String,
    /// Where blocks were.
    pub snapshot: Snapshot,
}

impl BlocksRecord {
    /// Whether it is the run called `key`, of this trace, machine and model, whatever came out.
    pub(super) fn is_same_run(&self, key: &str, trace: u32, spec: &OramSpec) -> bool {
        (self.key.as_str(), self.trace, &self.spec, self.model) == (key, trace, spec, MODEL)
    }
}
