//! The results file of the evaluation.

use serde::{Deserialize, Serialize};

use super::beside::OramComparison;
use super::claim::Claim;
use super::figures::Cell;
use super::ground::Testbed;
use super::points::Measured;
use super::rates::Machine;

/// The result of the evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// The computing rates of this machine.
    pub machine: Machine,
    /// The paper's claims, with our numbers.
    pub claims: Vec<Claim>,
    /// The points of the paper's figures, as our model computes them.
    pub cells: Vec<Cell>,
    /// The costs of real servers apart from computing. `None` if no servers were measured.
    pub ground: Option<Testbed>,
    /// The load of the machine during the measurement, if known.
    pub meanwhile: Option<String>,
    /// The measurements of trees on real servers.
    pub measured: Vec<Measured>,
    /// The measurements of other ORAMs behind the same link. Results of earlier versions lack this
    /// field.
    #[serde(default)]
    pub beside: Vec<OramComparison>,
    /// The targets for these measurements.
    pub targets: Vec<Claim>,
}

impl Results {
    pub(super) fn new(machine: Machine, claims: Vec<Claim>, cells: Vec<Cell>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
            claims,
            cells,
            ground: None,
            meanwhile: None,
            measured: Vec::new(),
            beside: Vec::new(),
            targets: Vec::new(),
        }
    }
}
