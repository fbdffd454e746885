//! The result of a study, and the results file.

use serde::{Deserialize, Serialize};

use super::fit::BULK_ENDS_AT_BITS;
use super::{Run, Setup, StashStudyPlan, Survival, TailFit};
use crate::{Experiment, LabError};

/// The result of the study.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Study {
    /// The parameters of the study.
    pub plan: StashStudyPlan,
    /// The result for each setup of the plan.
    pub results: Vec<SetupResult>,
}

/// The result for one setup. The runs are measured; all other values are computed from them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SetupResult {
    /// The scheme, the tree and its load.
    pub setup: Setup,
    /// Independent runs of the setup.
    pub runs: Vec<Run>,
}

impl SetupResult {
    pub(super) fn new(setup: Setup, runs: Vec<Run>) -> Self {
        Self { setup, runs }
    }

    /// Whether the stash of any run ran away.
    pub fn ran_away(&self) -> bool {
        self.runs.iter().any(|run| run.ran_away)
    }

    /// The distribution of the number of blocks left, over all runs.
    pub fn survival(&self) -> Survival {
        Survival::from_histograms(self.runs.iter().map(|run| run.histogram.as_slice()))
    }

    /// The fitted tail. `None` if the stash ran away or the observed tail is too short.
    pub fn fit(&self) -> Option<TailFit> {
        self.fit_from(BULK_ENDS_AT_BITS)
    }

    /// The fitted tail, with a fit that starts at a probability of 2^-14 instead of 2^-12. It
    /// agrees with [`Self::fit`] if the tail is a straight line.
    pub fn fit_further_out(&self) -> Option<TailFit> {
        self.fit_from(BULK_ENDS_AT_BITS + 2.0)
    }

    /// Whether the stash stays within the paper's bound except with probability 2^-80, even at the
    /// upper end of the confidence interval. False if the stash ran away; `None` if the observed
    /// tail is too short.
    pub fn holds_stated_bound(&self) -> Option<bool> {
        let stated = f64::from(self.setup.scheme.stated_stash_blocks_max());
        match self.fit() {
            Some(fit) => Some(fit.stash_blocks_max.high <= stated),
            None => self.ran_away().then_some(false),
        }
    }

    fn fit_from(&self, bulk_bits: f64) -> Option<TailFit> {
        let histograms: Vec<_> = self.runs.iter().map(|run| run.histogram.as_slice()).collect();
        if self.ran_away() { None } else { TailFit::fit(&histograms, bulk_bits) }
    }
}

/// One line of the results file: the measurements, and the values computed from them, for readers
/// without this program.
#[derive(Serialize)]
struct Record<'a> {
    setup: &'a Setup,
    blocks_per_leaf: f64,
    slots_used: f64,
    stated_stash_blocks_max: u32,
    holds_stated_bound: Option<bool>,
    fit: Option<TailFit>,
    fit_further_out: Option<TailFit>,
    runs: &'a [Run],
}

impl Study {
    /// Writes the results file as JSON, with one line per setup.
    pub(super) fn to_json(&self) -> Result<String, LabError> {
        let records = self
            .results
            .iter()
            .map(|result| serde_json::to_string(&Record::new(result)))
            .collect::<Result<Vec<_>, _>>()?
            .join(",\n");
        let plan = serde_json::to_string(&self.plan)?;
        let name = StashStudyPlan::NAME;
        Ok(format!(
            "{{\n\"experiment\": \"{name}\",\n\"plan\": {plan},\n\"results\": [\n{records}\n]\n}}\n"
        ))
    }
}

impl<'a> Record<'a> {
    fn new(result: &'a SetupResult) -> Self {
        let SetupResult { setup, runs } = result;
        Self {
            setup,
            blocks_per_leaf: setup.blocks_per_leaf(),
            slots_used: setup.slots_used(),
            stated_stash_blocks_max: setup.scheme.stated_stash_blocks_max(),
            holds_stated_bound: result.holds_stated_bound(),
            fit: result.fit(),
            fit_further_out: result.fit_further_out(),
            runs,
        }
    }
}
