//! The results file of the experiment.

use serde::{Deserialize, Serialize};

use super::{Form, StepCell};
use oblivio_models::link::{Link, Traffic};

/// The costs of one ORAM with one size of blocks on one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The ORAM whose costs these are.
    pub form: Form,
    /// The link between client and server.
    pub link: Link,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes from the server per access.
    pub down_bytes: f64,
    /// Bytes to the server per access.
    pub up_bytes: f64,
    /// Seconds until the block arrives, if no other request is in flight and no eviction is due.
    pub answer_seconds: f64,
    /// Seconds of a whole request with its share of evictions, if no two transfers overlap.
    pub serial_seconds: f64,
    /// Requests per second, with enough requests in flight.
    pub requests_per_second: f64,
}

impl Cell {
    pub(super) fn new(form: Form, link: Link, block_bytes: u32, traffic: &Traffic) -> Self {
        Self {
            form,
            link,
            block_bytes,
            down_bytes: traffic.down_bytes(),
            up_bytes: traffic.up_bytes(),
            answer_seconds: traffic.answer_seconds(link),
            serial_seconds: traffic.serial_seconds(link),
            requests_per_second: 1.0 / traffic.pipelined_seconds(link),
        }
    }

    /// Bytes of whole blocks per second, with enough requests in flight.
    pub fn bytes_per_second(&self) -> f64 {
        self.requests_per_second * f64::from(self.block_bytes)
    }
}

/// The result of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// All ORAMs on all links.
    pub cells: Vec<Cell>,
    /// The steps from the paper's Path ORAM to a volume.
    pub steps: Vec<StepCell>,
}

impl Results {
    /// The cell for these parameters.
    pub fn cell(&self, form: Form, link: Link, block_bytes: u32) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.form, cell.link, cell.block_bytes) == (form, link, block_bytes);
        self.cells.iter().find(is_it)
    }
}
