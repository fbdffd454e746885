//! The record of a run.

use oblivio_sim::MODEL;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::functional::Snapshot;
use serde::{Deserialize, Serialize};

use crate::records::first_model;

/// The result of a run, and everything that determines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlocksRecord {
    /// The name of the run: see [`BlocksPlan::key`](super::BlocksPlan::key).
    pub key: String,
    /// The variant whose ORAM the run uses.
    pub variant: String,
    /// The name of the course of the run.
    pub course: String,
    /// CRC-32 of the traces. It distinguishes runs of different traces.
    pub trace: u32,
    /// The seed of all random choices.
    pub seed: u64,
    /// The complete specification of the ORAM.
    pub spec: OramSpec,
    /// The snapshots, in order. The first precedes all requests.
    pub snapshots: Vec<Taken>,
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

/// A snapshot, and the source of the requests before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The name of a program, `uniform`, or `start` before all requests.
    pub after: String,
    /// The number of blocks on each level, and counts of paths and requests so far.
    pub snapshot: Snapshot,
}

impl BlocksRecord {
    /// Whether this record is of the run `key` with the given trace and ORAM, and of the current
    /// model.
    pub(super) fn is_same_run(&self, key: &str, trace: u32, spec: &OramSpec) -> bool {
        (self.key.as_str(), self.trace, &self.spec, self.model) == (key, trace, spec, MODEL)
    }
}
