//! The contents of the results file.

use oblivio_sim::dram::DramSpec;
use oblivio_sim::dram::published::Verdict;
use serde::{Deserialize, Serialize};

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the simulator.
    pub version: String,
    /// The DRAM: each of its channels.
    pub part: DramSpec,
    /// Where all coins came from.
    pub seed: u64,
    /// What others measured, and what we did.
    pub measured: Vec<Verdict>,
}
