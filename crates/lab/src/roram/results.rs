//! What came out, and the file that keeps it.

use serde::{Deserialize, Serialize};

use super::media::{Medium, Tally};
use super::{Form, NAME};
use crate::LabError;

/// One ORAM on one medium, with ranges of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which ORAM.
    pub form: Form,
    /// On what.
    pub medium: Medium,
    /// Ranges have two to this number of blocks.
    pub exponent: u8,
    /// What a block of a range takes.
    pub seconds_per_block: f64,
    /// Requests, a block of a range.
    pub requests_per_block: f64,
    /// Those that did not begin where the one before had ended.
    pub seeks_per_block: f64,
    /// Bytes moved, a block of a range.
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

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    experiment: String,
    /// The version of the program.
    pub version: String,
    /// There are two to this number of blocks.
    pub level: u8,
    /// The longest ranges have two to this number of blocks.
    pub ell: u8,
    /// Where all coins came from.
    pub seed: u64,
    /// What was counted.
    pub cells: Vec<Cell>,
}

impl Results {
    pub(super) fn new(level: u8, ell: u8, seed: u64, cells: Vec<Cell>) -> Self {
        let (experiment, version) = (NAME.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { experiment, version, level, ell, seed, cells }
    }

    /// One of them.
    pub fn cell(&self, form: Form, medium: Medium, exponent: u8) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.form, cell.medium, cell.exponent) == (form, medium, exponent);
        self.cells.iter().find(is_it)
    }

    /// How many times as long one ORAM takes as another, with ranges of each length from 2^`from` on.
    pub(super) fn factors(&self, medium: Medium, slow: Form, fast: Form, from: u8) -> Vec<f64> {
        let seconds =
            |form, exponent| self.cell(form, medium, exponent).map(|cell| cell.seconds_per_block);
        let factor = |exponent| Some(seconds(slow, exponent)? / seconds(fast, exponent)?);
        (from..=self.ell).filter_map(factor).collect()
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
