//! The contents of the results file.

use oblivio_sim::dram::DramSpec;
use oblivio_sim::dram::published::Verdict;
use serde::{Deserialize, Serialize};

/// The result of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the simulator.
    pub version: String,
    /// The parameters of one channel of the measured DRAM.
    pub part: DramSpec,
    /// The seed of all random choices.
    pub seed: u64,
    /// The published numbers, each with our number.
    pub measured: Vec<Verdict>,
}
