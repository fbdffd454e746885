//! The results of a search, and their file format.

use serde::{Deserialize, Serialize};

use super::{BySlots, Candidate, FORMAT_VERSION, Judge, NAME, Run, SearchPlan, Verdict};
use crate::Error;

/// The results of a search.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(bound = "J: Judge")]
pub struct Search<J = BySlots> {
    /// The parameters of the search.
    pub plan: SearchPlan<J>,
    /// The uniform tree and its runs.
    pub baseline: Candidate,
    /// All profiles tried by the search, in order.
    pub tried: Vec<Candidate>,
    /// The profiles that were run only for comparison.
    pub paper: Vec<Candidate>,
    /// The run of the found profile on the last tree.
    pub endurance: Run,
}

impl<J: Judge> Search<J> {
    /// The profile that the search found. The uniform tree if no profile was better.
    pub fn found(&self) -> &Candidate {
        let taken = self.tried.iter().rev().find(|tried| tried.verdict == Verdict::Taken);
        taken.unwrap_or(&self.baseline)
    }

    /// Formats the results file: JSON, with one line per profile.
    ///
    /// # Errors
    /// [`Error::Results`] if serialization fails.
    pub fn to_json(&self) -> Result<String, Error> {
        let record = |candidate: &Candidate| serde_json::to_string(&Record::new(candidate, self));
        let records = |candidates: &[Candidate]| {
            let lines = candidates.iter().map(record).collect::<Result<Vec<_>, _>>();
            lines.map(|lines| lines.join(",\n"))
        };
        Ok(format!(
            "{{\n\"experiment\": \"{NAME}\",\n\"version\": {FORMAT_VERSION},\n\"plan\": {},\n\
             \"profile\": {},\n\"baseline\": {},\n\"tried\": [\n{}\n],\n\"paper\": [\n{}\n],\n\
             \"endurance\": {}\n}}\n",
            serde_json::to_string(&self.plan)?,
            serde_json::to_string(&self.found().profile)?,
            record(&self.baseline)?,
            records(&self.tried)?,
            records(&self.paper)?,
            serde_json::to_string(&self.endurance)?,
        ))
    }

    /// Parses a results file.
    ///
    /// # Errors
    /// [`Error::Results`] if `text` is not a results file.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(text)?)
    }
}

/// A candidate in the file: its measurements, and derived figures for readers without this program.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    candidate: &'a Candidate,
    path_slots: u64,
    space_loss: f64,
    evictions_per_access: Option<f64>,
    slots_per_access: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles_per_record: Option<f64>,
}

impl<'a> Record<'a> {
    fn new<J: Judge>(candidate: &'a Candidate, search: &Search<J>) -> Self {
        Self {
            candidate,
            path_slots: candidate.profile.path_slots(search.plan.tree_top_levels),
            space_loss: candidate.profile.space_loss(&search.baseline.profile),
            evictions_per_access: candidate.evictions_per_access(),
            slots_per_access: candidate.slots_per_access(&search.plan),
            cycles_per_record: candidate.cycles_per_record(),
        }
    }
}
