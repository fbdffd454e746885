//! What came out, and the file that keeps it.

use serde::{Deserialize, Serialize};

use super::Form;
use super::recordings::Mix;
use oblivio_models::medium::{Medium, Tally};

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

/// One ORAM on one medium, under what a file system asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixCell {
    /// Which ORAM.
    pub form: Form,
    /// On what.
    pub medium: Medium,
    /// What programs did.
    pub mix: Mix,
    /// Requests of the file system.
    pub requests: u64,
    /// Blocks of these.
    pub blocks: u64,
    /// What all of them took.
    pub seconds: f64,
}

impl MixCell {
    /// Requests of the file system a second.
    pub fn requests_per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Blocks a second.
    pub fn blocks_per_second(&self) -> f64 {
        self.blocks as f64 / self.seconds
    }
}

/// Seeks of rORAM as published, an access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeekCell {
    /// There are two to this number of blocks.
    pub level: u8,
    /// The longest ranges have two to this number of blocks.
    pub ell: u8,
    /// In how many parts storage is.
    pub parts: u8,
    /// One after the other; those of different parts are made at once.
    pub seeks: f64,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// There are two to this number of blocks.
    pub level: u8,
    /// The longest ranges have two to this number of blocks.
    pub ell: u8,
    /// Where all coins came from.
    pub seed: u64,
    /// What ranges of each length take.
    pub cells: Vec<Cell>,
    /// What mixes of programs take.
    pub mixes: Vec<MixCell>,
    /// Seeks of an access.
    pub seeks: Vec<SeekCell>,
}

impl Results {
    /// Of so many blocks and ranges up to so many, with nothing measured yet.
    pub(super) fn new(level: u8, ell: u8, seed: u64) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (cells, mixes, seeks) = (Vec::new(), Vec::new(), Vec::new());
        Self { version, level, ell, seed, cells, mixes, seeks }
    }

    /// One of them.
    pub fn cell(&self, form: Form, medium: Medium, exponent: u8) -> Option<&Cell> {
        let is_it =
            |cell: &&Cell| (cell.form, cell.medium, cell.exponent) == (form, medium, exponent);
        self.cells.iter().find(is_it)
    }

    /// One of the mixes.
    pub fn mix(&self, form: Form, medium: Medium, mix: Mix) -> Option<&MixCell> {
        let is_it = |cell: &&MixCell| (cell.form, cell.medium, cell.mix) == (form, medium, mix);
        self.mixes.iter().find(is_it)
    }

    /// How many times as long a mix takes with one ORAM as with another.
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

    /// How many times as long one ORAM takes as another, with ranges of each length from 2^`from` on.
    pub(super) fn factors(&self, medium: Medium, slow: Form, fast: Form, from: u8) -> Vec<f64> {
        let seconds =
            |form, exponent| self.cell(form, medium, exponent).map(|cell| cell.seconds_per_block);
        let factor = |exponent| Some(seconds(slow, exponent)? / seconds(fast, exponent)?);
        (from..=self.ell).filter_map(factor).collect()
    }
}
