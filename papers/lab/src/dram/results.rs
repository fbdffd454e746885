//! What was measured, and the file that keeps it.

use oblivio_sim::dram::DramSpec;
use oblivio_sim::dram::published::Verdict;
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::LabError;

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    experiment: String,
    /// The version of the simulator.
    pub version: String,
    /// The DRAM: each of its channels.
    pub part: DramSpec,
    /// Where all coins came from.
    pub seed: u64,
    /// What others measured, and what we did.
    pub measured: Vec<Verdict>,
}

impl Results {
    pub(super) fn new(part: DramSpec, seed: u64, measured: Vec<Verdict>) -> Self {
        let (experiment, version) = (NAME.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { experiment, version, part, seed, measured }
    }

    /// The results file.
    ///
    /// # Errors
    /// [`LabError::Results`] when a figure is not a number.
    pub fn to_json(&self) -> Result<String, LabError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// What a results file says.
    ///
    /// # Errors
    /// [`LabError::Results`] when it is none.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        Ok(serde_json::from_str(text)?)
    }
}
