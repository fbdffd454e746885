//! The results file of the experiment.

use serde::{Deserialize, Serialize};

use super::{Counted, RawTrafficPlan, RawTrafficSetting, formula};
use crate::markdown;
use crate::stash_study::{Run, Survival, TailFit};

/// The result of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The parameters of the experiment.
    pub plan: RawTrafficPlan,
    /// The counted costs of Path ORAM with Z = 4.
    pub path: Counted,
    /// The results of RAW ORAM for each setting.
    pub settings: Vec<SettingResult>,
}

/// The result for one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingResult {
    /// The parameters Z and A.
    pub setting: RawTrafficSetting,
    /// The counted costs of an access with this setting.
    pub counted: Counted,
    /// Measurements of the stash, in independent runs.
    pub runs: Vec<Run>,
}

impl SettingResult {
    /// The distribution of the number of blocks left after an eviction.
    pub(super) fn survival(&self) -> Survival {
        Survival::from_histograms(self.runs.iter().map(|run| run.histogram.as_slice()))
    }

    /// Whether the stash of any run ran away.
    pub(super) fn ran_away(&self) -> bool {
        self.runs.iter().any(|run| run.ran_away)
    }

    /// The fitted tail. `None` if the stash ran away or the observed tail is too short.
    pub(super) fn fit(&self) -> Option<TailFit> {
        let histograms: Vec<_> = self.runs.iter().map(|run| run.histogram.as_slice()).collect();
        if self.ran_away() { None } else { TailFit::of_bulk(&histograms) }
    }
}

const HEAD: &str = "\
| Z | A | memory, formula | counted | encryption, formula | AES blocks | seen max \
| C for 2^-80 (95 %) | condition |
|--:|--:|----------------:|--------:|--------------------:|-----------:|---------:\
|-------------------:|-----------|
";

impl Results {
    /// A table with a row per pair of Z and A, relative to Path ORAM with Z = 4.
    pub fn table(&self) -> String {
        let row = |result: &SettingResult| {
            let (setting, counted) = (result.setting, result.counted);
            let bound = match (result.ran_away(), result.fit()) {
                (true, _) => "ran away".to_owned(),
                (false, None) => "?".to_owned(),
                (false, Some(TailFit { stash_blocks_max: c, .. })) => {
                    format!("{:.1} ({:.1} – {:.1})", c.value, c.low, c.high)
                }
            };
            let holds = if formula::ring_bound(setting) > 0.0 { "holds" } else { "fails" };
            format!(
                "| {:2}| {:2}| {:15.3} | {:7.3} | {:19.3} | {:10.3} | {:8} | {bound:18} | \
                 {holds:9} |",
                setting.z,
                setting.a,
                formula::memory(setting) / formula::path(),
                counted.units / self.path.units,
                formula::encryption(setting) / formula::path(),
                counted.aes_blocks / self.path.aes_blocks,
                result.survival().peak(),
            )
        };
        markdown::table(HEAD, self.settings.iter().map(row))
    }
}
