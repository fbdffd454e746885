//! The results of the table, and the results file.

use serde::{Deserialize, Serialize};

use super::{Comparison, Counts, TechniquesPlan};
use crate::{Experiment, LabError, Trace};

/// The results of the techniques table: a row for each technique, under all workloads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Results {
    /// The version of the engine.
    pub version: String,
    /// The parameters of the table.
    pub plan: TechniquesPlan,
    /// The names of the traces, in the order of their columns, with their numbers of requests.
    pub traces: Vec<(String, u64)>,
    /// A row for each technique.
    pub rows: Vec<Row>,
}

/// The results of a technique under all workloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The name of the technique.
    pub technique: String,
    /// The name of the row with which the technique is compared.
    pub against: String,
    /// The results for each workload.
    pub runs: Vec<Run>,
}

/// The results of a technique under one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The name of the workload.
    pub workload: String,
    /// The cost of the counted requests.
    pub counts: Counts,
    /// The maximum number of blocks left in the stash after a request. For ρ, this is the number in
    /// both stashes together.
    pub stash_blocks_peak: usize,
}

impl Results {
    pub(super) fn new(plan: &TechniquesPlan, traces: &[Trace], rows: Vec<Row>) -> Self {
        let name = |trace: &Trace| (trace.name().to_owned(), trace.records().len() as u64);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { version, plan: plan.clone(), traces: traces.iter().map(name).collect(), rows }
    }

    /// The workloads, in the order of each row's runs.
    pub fn workloads(&self) -> impl Iterator<Item = &str> {
        let first = self.rows.first().map_or(&[][..], |row| &row.runs);
        first.iter().map(|run| run.workload.as_str())
    }

    /// The row of a technique. `None` if the table does not have it.
    pub(super) fn row(&self, technique: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.technique == technique)
    }

    /// Writes the results file as JSON, with one line per run.
    pub(super) fn to_json(&self) -> Result<String, LabError> {
        let row = |row: &Row| {
            let runs = row.runs.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
            let [technique, against] = [&row.technique, &row.against].map(serde_json::to_string);
            Ok(format!(
                "{{\"technique\": {}, \"against\": {}, \"runs\": [\n{}\n]}}",
                technique?,
                against?,
                runs.join(",\n")
            ))
        };
        let rows = self.rows.iter().map(row).collect::<Result<Vec<_>, LabError>>()?;
        Ok(format!(
            "{{\n\"experiment\": \"{}\",\n\"version\": {},\n\"plan\": {},\n\"traces\": {},\n\
             \"rows\": [\n{}\n]\n}}\n",
            Comparison::NAME,
            serde_json::to_string(&self.version)?,
            serde_json::to_string(&self.plan)?,
            serde_json::to_string(&self.traces)?,
            rows.join(",\n"),
        ))
    }
}
