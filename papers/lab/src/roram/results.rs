//! The results file of the experiment.

use serde::{Deserialize, Serialize};

use super::Form;
use super::recordings::Mix;
use oblivio_models::medium::{Medium, Tally};

/// The costs of one ORAM on one medium, with ranges of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The measured ORAM.
    pub form: Form,
    /// The medium of the ORAM's storage.
    pub medium: Medium,
    /// Base-2 logarithm of the blocks in a range.
    pub exponent: u8,
    /// Seconds per block of a range.
    pub seconds_per_block: f64,
    /// Requests per block of a range.
    pub requests_per_block: f64,
    /// Requests that did not start where the previous one ended, per block of a range.
    pub seeks_per_block: f64,
    /// Bytes transferred per block of a range.
    pub bytes_per_block: f64,
}

impl Cell {
    pub(super) fn new(form: Form, exponent: u8, tally: &Tally, blocks: f64) -> Self {
        let Tally { medium, requests, seeks, bytes, seconds, .. } = *tally;
        Self {
            form,
            medium,
            exponent,
            seconds_per_block: seconds / blocks,
            requests_per_block: requests as f64 / blocks,
            seeks_per_block: seeks as f64 / blocks,
            bytes_per_block: bytes as f64 / blocks,
        }
    }
}

/// The costs of one ORAM on one medium, with the requests of a file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixCell {
    /// The measured ORAM.
    pub form: Form,
    /// The medium of the ORAM's storage.
    pub medium: Medium,
    /// The mix of programs.
    pub mix: Mix,
    /// Requests of the file system.
    pub requests: u64,
    /// Blocks that these requests read or write.
    pub blocks: u64,
    /// Seconds for all requests.
    pub seconds: f64,
}

impl MixCell {
    /// Requests of the file system per second.
    pub fn requests_per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Blocks of the file system's requests per second.
    pub fn blocks_per_second(&self) -> f64 {
        self.blocks as f64 / self.seconds
    }
}

/// The seeks of an access of published rORAM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeekCell {
    /// Base-2 logarithm of the number of blocks.
    pub level: u8,
    /// Base-2 logarithm of the blocks in the longest ranges.
    pub ell: u8,
    /// The number of parts of storage.
    pub parts: u8,
    /// Mean sequential seeks of an access; different parts seek in parallel.
    pub seeks: f64,
}

/// The result of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// Base-2 logarithm of the number of blocks.
    pub level: u8,
    /// Base-2 logarithm of the blocks in the longest ranges.
    pub ell: u8,
    /// The seed of all random choices.
    pub seed: u64,
    /// Costs of ranges of each length.
    pub cells: Vec<Cell>,
    /// Costs of mixes of programs.
    pub mixes: Vec<MixCell>,
    /// Seeks of an access, for each number of blocks and of parts.
    pub seeks: Vec<SeekCell>,
}

impl Results {
    /// Creates empty results for these parameters.
    pub(super) fn new(level: u8, ell: u8, seed: u64) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (cells, mixes, seeks) = (Vec::new(), Vec::new(), Vec::new());
        Self { version, level, ell, seed, cells, mixes, seeks }
    }

    /// The cell for these parameters.
    pub fn cell(&self, form: Form, medium: Medium, exponent: u8) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.form, cell.medium, cell.exponent) == (form, medium, exponent);
        self.cells.iter().find(is_it)
    }

    /// The cell for a mix.
    pub fn mix(&self, form: Form, medium: Medium, mix: Mix) -> Option<&MixCell> {
        let is_it = |cell: &&MixCell| (cell.form, cell.medium, cell.mix) == (form, medium, mix);
        self.mixes.iter().find(is_it)
    }

    /// The time of a mix with ORAM `slow`, divided by the time with ORAM `fast`.
    pub(super) fn mix_factor(
        &self,
        medium: Medium,
        mix: Mix,
        slow: Form,
        fast: Form,
    ) -> Option<f64> {
        let seconds = |form| self.mix(form, medium, mix).map(|cell| cell.seconds);
        Some(seconds(slow)? / seconds(fast)?)
    }

    /// The time of ORAM `slow` divided by the time of ORAM `fast`, for each length of ranges from
    /// 2^`from` blocks on.
    pub(super) fn factors(&self, medium: Medium, slow: Form, fast: Form, from: u8) -> Vec<f64> {
        let seconds =
            |form, exponent| self.cell(form, medium, exponent).map(|cell| cell.seconds_per_block);
        let factor = |exponent| Some(seconds(slow, exponent)? / seconds(fast, exponent)?);
        (from..=self.ell).filter_map(factor).collect()
    }
}
