//! What came out, and the file that keeps it.

use serde::{Deserialize, Serialize};

use super::beside::Beside;
use super::claim::Claim;
use super::figures::Cell;
use super::ground::Ground;
use super::points::Measured;
use super::rates::Machine;

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// How fast this machine computes.
    pub machine: Machine,
    /// What the paper states, and ours.
    pub claims: Vec<Claim>,
    /// The points of its figures, by the model.
    pub cells: Vec<Cell>,
    /// What real servers take apart from computing, if there were any.
    pub ground: Option<Ground>,
    /// What else the machine did, as far as whoever ran this knows.
    pub meanwhile: Option<String>,
    /// Trees on real servers.
    pub measured: Vec<Measured>,
    /// Other ORAMs behind the same link. Results of earlier versions have none.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// What is wanted of all that.
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
