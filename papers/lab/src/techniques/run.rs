//! All rows under all workloads.

use std::num::NonZeroUsize;

use super::measure::{Load, measure};
use super::{Plan, Results, Row, TECHNIQUES};
use crate::{LabError, Trace, Workload, workers};

/// The workloads that need no trace.
const MADE: [Workload; 3] = [Workload::Scan, Workload::Uniform, Workload::Zipf];

impl Plan {
    /// How many requests [`run`] makes with so many traces.
    pub fn total_requests(&self, traces: usize) -> u64 {
        let runs = TECHNIQUES.len() as u64 * (MADE.len() + traces) as u64;
        runs.saturating_mul(self.requests_per_run())
    }
}

/// Measures every technique as `plan` asks, on scan, uniform and Zipf requests and on `traces`, on
/// `threads` threads. `progress` is told of requests that have been made.
///
/// # Errors
/// [`LabError::Plan`] when the plan cannot be followed, [`LabError::Engine`] when the engine fails.
pub fn run(
    plan: &Plan,
    traces: &[Trace],
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Results, LabError> {
    plan.check()?;
    let loads: Vec<_> =
        MADE.into_iter().map(Load::Made).chain(traces.iter().map(Load::Trace)).collect();
    let seeds = plan.seeds(loads.len());
    let tasks: Vec<_> = TECHNIQUES
        .iter()
        .flat_map(|row| loads.iter().zip(&seeds).map(|(load, seed)| (&row.setup, *load, *seed)))
        .collect();
    let runs = workers::run_all(&tasks, threads, |(setup, load, seed)| {
        measure(plan, setup, *load, *seed, &|requests| progress(requests))
    })?;
    let rows = TECHNIQUES.iter().zip(runs.chunks(loads.len())).map(|(row, runs)| Row {
        technique: row.name.to_owned(),
        against: row.against.to_owned(),
        runs: runs.to_vec(),
    });
    Ok(Results::new(plan, traces, rows.collect()))
}
