//! What came out of a run, and the file that keeps it: a line of JSON each, written when the run ends.

use oblivio_sim::system::{Outcome, SystemSpec};
use serde::{Deserialize, Serialize};

use crate::LabError;

/// How large and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// The level of the leaves.
    pub leaf_level: u8,
    /// Records that count.
    pub records: u64,
    /// Records before them.
    pub warm_up: u64,
}

/// A run, and everything to make it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// What it is called; see [`Plan::key`](super::Plan::key).
    pub key: String,
    /// The machine.
    pub variant: String,
    /// What ran on it.
    pub workload: String,
    /// CRC-32 of the records as they were run: other traces are other runs.
    pub trace: u32,
    /// How large and how long.
    pub scale: Scale,
    /// Where all coins came from.
    pub seed: u64,
    /// The machine in full.
    pub spec: SystemSpec,
    /// What came out, without the warm-up.
    pub outcome: Outcome,
    /// How long it took.
    pub seconds: f64,
    /// On which computer.
    pub machine: String,
    /// By which version of this program.
    pub version: String,
}

impl RunRecord {
    /// Its line, with the end.
    ///
    /// # Errors
    /// [`LabError::Results`] when a number is none.
    pub fn to_line(&self) -> Result<String, LabError> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// Whether `other` is the same run, whatever came out.
    pub(super) fn is_same_run(&self, key: &str, trace: u32, spec: &SystemSpec) -> bool {
        (self.key.as_str(), self.trace, &self.spec) == (key, trace, spec)
    }
}

/// What a file of records holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Its records.
    pub records: Vec<RunRecord>,
    /// Bytes of whole lines. What is behind them was torn off when an evaluation was interrupted, and has to
    /// go before a line is appended.
    pub whole_bytes: usize,
}

impl Kept {
    /// What `text`, that of the file called `file`, holds.
    ///
    /// # Errors
    /// [`LabError::Input`] with the number of the first whole line that is no record.
    pub fn read(file: &str, text: &[u8]) -> Result<Self, LabError> {
        let whole_bytes = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines = text[..whole_bytes].split_inclusive(|byte| *byte == b'\n');
        let record = |(number, line): (usize, &[u8])| {
            serde_json::from_slice(line).map_err(|error| {
                LabError::Input(format!(
                    "line {number} of {file} is no record of a run ({error}): remove the line, or choose \
                     another --output"
                ))
            })
        };
        let records = (1..).zip(lines).map(record).collect::<Result<_, _>>()?;
        Ok(Self { records, whole_bytes })
    }
}
