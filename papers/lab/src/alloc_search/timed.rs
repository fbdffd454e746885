//! One run on a simulated processor: random requests to an aged tree with a given profile.

#[cfg(test)]
mod tests;

use oblivio_models::alloc_search::all_records;
use oblivio_sim::MODEL;
use oblivio_sim::system::{self, Outcome, SystemSpec, WarmUp};
use serde::{Deserialize, Serialize};

use super::{Profile, Run, SearchPlan, Time, TimeJudge};
use crate::evaluation::make;
use crate::records::first_model;
use crate::{Host, LabError};

/// Number of records that fill the LLC and are not timed: about three times the number of lines in
/// Table I's LLC.
const LLC_RECORDS: u64 = 100_000;

/// A run of a search by time, with everything that determines it. It is one line of the file of
/// runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedRecord {
    /// The complete description of the simulated machine.
    pub spec: SystemSpec,
    /// Measured records. Before them come the records that fill the LLC, and a warm-up of a quarter
    /// of this number.
    pub records: u64,
    /// The result, and the seed of the initial tree and of the requests.
    pub run: Run,
    /// The [model](oblivio_sim::MODEL) of the simulator. Records of another model are not reused.
    #[serde(default = "first_model")]
    pub model: u32,
    /// Wall-clock seconds of the run.
    pub seconds: f64,
    /// The name of the machine that made the run.
    pub machine: String,
    /// The version of this program that made the run.
    pub version: String,
}

impl TimedRecord {
    fn is_of(&self, spec: &SystemSpec, records: u64, seed: u64) -> bool {
        (&self.spec, self.records, self.run.seed, self.model) == (spec, records, seed, MODEL)
    }
}

/// Runs `records` trace records on `profile`, and returns the result. If `kept` contains this run,
/// returns the recorded result.
pub(super) fn time(
    judge: &TimeJudge,
    plan: &SearchPlan,
    profile: &Profile,
    (records, seed): (u64, u64),
    kept: &[TimedRecord],
    host: &impl Host<TimedRecord>,
) -> Result<Run, LabError> {
    let spec = judge.spec(plan, profile)?;
    if let Some(same) = kept.iter().find(|record| record.is_of(&spec, records, seed)) {
        host.made(all_records(records));
        return Ok(same.run.clone());
    }
    let start = host.seconds();
    let warm_up = WarmUp { llc_records: LLC_RECORDS, records: records / 4, ..WarmUp::default() };
    let count = (warm_up.llc_records + all_records(records)) as usize;
    let trace = make("uniform", count, plan.capacity, seed)?;
    let outcome = system::run(&spec, trace.records().iter().copied(), warm_up, seed, &())?;
    let run = run_of(&outcome, seed);
    host.keep(&TimedRecord {
        spec,
        records,
        run: run.clone(),
        model: MODEL,
        seconds: host.seconds() - start,
        machine: host.machine().to_owned(),
        version: host.version().to_owned(),
    })?;
    host.made(all_records(records));
    Ok(run)
}

fn run_of(outcome: &Outcome, seed: u64) -> Run {
    let tally = outcome.memory.controller.clone().unwrap_or_default();
    Run {
        seed,
        accesses: tally.data + tally.position_map.iter().sum::<u64>(),
        evictions: tally.evictions,
        evictions_at_once_max: 0,
        stash_blocks_peak: tally.stash_blocks_max,
        blocks_on_levels: Vec::new(),
        ran_away: false,
        time: Some(Time { cycles: outcome.cycles, records: outcome.records }),
    }
}
