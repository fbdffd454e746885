//! What came out, and the file that keeps it.

use serde::{Deserialize, Serialize};

use super::{Form, StepCell};
use oblivio_models::link::{Link, Traffic};

/// One ORAM with blocks of one size on one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which ORAM.
    pub form: Form,
    /// On what.
    pub link: Link,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes from the server, an access.
    pub down_bytes: f64,
    /// Bytes to the server, an access.
    pub up_bytes: f64,
    /// Until the block is there, with nothing else under way and no eviction due; seconds.
    pub answer_seconds: f64,
    /// The whole request with its share of evictions and nothing done at the same time; seconds.
    pub serial_seconds: f64,
    /// Requests a second, if enough are under way.
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

    /// Bytes of whole blocks a second, if enough requests are under way.
    pub fn bytes_per_second(&self) -> f64 {
        self.requests_per_second * f64::from(self.block_bytes)
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// Every ORAM on every link.
    pub cells: Vec<Cell>,
    /// From the paper's Path ORAM to a volume.
    pub steps: Vec<StepCell>,
}

impl Results {
    /// One of them.
    pub fn cell(&self, form: Form, link: Link, block_bytes: u32) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.form, cell.link, cell.block_bytes) == (form, link, block_bytes);
        self.cells.iter().find(is_it)
    }
}
