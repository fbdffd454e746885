//! Runs all rows under all workloads.

use std::num::NonZeroUsize;

use super::measure::{Load, measure};
use super::{Results, Row, TECHNIQUES, TechniquesPlan};
use crate::{Experiment, Host, LabError, Trace, Workload, workers};

/// The workloads that need no trace.
const MADE: [Workload; 3] = [Workload::Scan, Workload::Uniform, Workload::Zipf];

/// The plan of the table: each technique under scan, uniform and Zipf requests and under `traces`.
pub struct Comparison {
    /// The parameters of the table.
    pub plan: TechniquesPlan,
    /// The traces that serve as additional workloads.
    pub traces: Vec<Trace>,
}

impl Experiment for Comparison {
    const NAME: &'static str = "techniques";
    const RESULTS: &'static str = "techniques.json";
    const STEPS: &'static str = "requests";
    type Record = ();
    type Results = Results;

    fn run(
        self,
        _: &[()],
        threads: NonZeroUsize,
        host: &impl Host<()>,
    ) -> Result<Results, LabError> {
        let Self { plan, traces } = &self;
        plan.check()?;
        let loads: Vec<_> =
            MADE.into_iter().map(Load::Made).chain(traces.iter().map(Load::Trace)).collect();
        let seeds = plan.seeds(loads.len());
        let tasks: Vec<_> = TECHNIQUES
            .iter()
            .flat_map(|row| loads.iter().zip(&seeds).map(|(load, seed)| (&row.setup, *load, *seed)))
            .collect();
        host.planned((tasks.len() as u64).saturating_mul(plan.requests_per_run()));
        let runs = workers::run_all(&tasks, threads, |(setup, load, seed)| {
            measure(plan, setup, *load, *seed, &|requests| host.made(requests))
        })?;
        let rows = TECHNIQUES.iter().zip(runs.chunks(loads.len())).map(|(row, runs)| Row {
            technique: row.name.to_owned(),
            against: row.against.to_owned(),
            runs: runs.to_vec(),
        });
        Ok(Results::new(plan, traces, rows.collect()))
    }

    fn to_json(results: &Results) -> Result<String, LabError> {
        results.to_json()
    }

    fn text(results: &Results) -> String {
        results.text()
    }
}
