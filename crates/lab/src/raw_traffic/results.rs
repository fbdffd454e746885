//! What came out, and the file that keeps it.

use serde::{Deserialize, Serialize};

use super::{Counted, Plan, Setting};
use crate::LabError;
use crate::stash_study::{Run, Survival, TailFit};

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Which experiment it is of.
    pub experiment: String,
    /// What was asked for.
    pub plan: Plan,
    /// Path ORAM with Z = 4.
    pub path: Counted,
    /// RAW ORAM.
    pub settings: Vec<SettingResult>,
}

/// What came out for one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingResult {
    /// Which.
    pub setting: Setting,
    /// Its traffic.
    pub counted: Counted,
    /// Its stash, in independent runs.
    pub runs: Vec<Run>,
}

impl SettingResult {
    /// How often more than `n` blocks were left after an eviction.
    pub(super) fn survival(&self) -> Survival {
        Survival::of(self.runs.iter().map(|run| run.histogram.as_slice()))
    }

    /// Whether the stash of a run grew without end.
    pub(super) fn ran_away(&self) -> bool {
        self.runs.iter().any(|run| run.ran_away)
    }

    /// The tail, if enough of one was seen.
    pub(super) fn fit(&self) -> Option<TailFit> {
        let histograms: Vec<_> = self.runs.iter().map(|run| run.histogram.as_slice()).collect();
        if self.ran_away() { None } else { TailFit::of_bulk(&histograms) }
    }
}

impl Results {
    /// The results file.
    ///
    /// # Errors
    /// [`LabError::Results`] when a figure is not a number.
    pub fn to_json(&self) -> Result<String, LabError> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// What a results file says.
    ///
    /// # Errors
    /// [`LabError::Results`] when it is none.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        Ok(serde_json::from_str(text)?)
    }
}
