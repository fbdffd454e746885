//! How long an evaluation takes, said before it begins.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;

use oblivio_sim::controller::OramSpec;
use oblivio_sim::system::{self, WarmUp};

use super::plan::{Plan, Run};
use super::record::RunRecord;
use super::run::{checksum, initial, lines_of};
use super::workloads::Programs;
use crate::LabError;
use crate::kept_studies::KeptStudies;
use crate::records::Host;

/// Records of a run that is timed where none is kept: enough for the paths to outweigh what comes first.
const TRIAL_RECORDS: u64 = 4000;

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outlook {
    /// All runs.
    runs: usize,
    /// Those that are kept.
    kept: usize,
    /// About how long the others take. Nothing, where there are none.
    seconds: Option<f64>,
}

/// Of runs that `kept` has some of. How long a record takes, the nearest of these say, or where there are
/// none, a trial.
///
/// # Errors
/// [`LabError::Simulation`] when a machine cannot run.
pub(super) fn outlook(
    plan: &Plan,
    runs: &[Run],
    programs: &Programs,
    kept: &[RunRecord],
    jobs: NonZeroUsize,
    host: &impl Host<RunRecord>,
    studies: &KeptStudies<'_>,
) -> Result<Outlook, LabError> {
    let mut left = Vec::new();
    let mut checksums = HashMap::new();
    for run in runs {
        let (spec, key) = (plan.spec(run)?, plan.key(run));
        let alike: Vec<_> = kept.iter().filter(|record| record.key == key).collect();
        if alike.is_empty() {
            left.push(run);
            continue;
        }
        let lines = lines_of(&spec, run.scale.leaf_level);
        let (records, pages) = (run.scale.all_records(), run.switches.pages);
        let name = (run.workload.as_str(), records, lines, pages);
        let trace = match checksums.get(&name) {
            Some(trace) => *trace,
            None => {
                let seed = plan.seed_of(&run.workload);
                let trace = programs.records(&run.workload, records, lines, pages, seed)?;
                *checksums.entry(name).or_insert(checksum(&trace))
            }
        };
        if !alike.iter().any(|record| record.is_same_run(&key, trace, plan.seed, &spec)) {
            left.push(run);
        }
    }
    let mut outlook = Outlook { runs: runs.len(), kept: runs.len() - left.len(), seconds: None };
    let Some(first) = left.first() else { return Ok(outlook) };
    let trial = match kept {
        [] => Some(try_out(plan, first, programs, host, studies)?),
        _ => None,
    };
    let seconds = left.iter().map(|run| {
        let records = run.scale.timed_records() as f64;
        // Half of the blocks take half of the time to place.
        let half = |level: u8| 2f64.powi(i32::from(run.scale.leaf_level) - i32::from(level));
        match &trial {
            Some(Trial { first, record }) => {
                first * half(left[0].scale.leaf_level) + record * records
            }
            None => records * nearest(run, kept),
        }
    });
    outlook.seconds = Some(seconds.sum::<f64>() / jobs.get().min(left.len()) as f64);
    Ok(outlook)
}

/// Seconds of a run before its first record, and of each record.
struct Trial {
    first: f64,
    record: f64,
}

fn try_out(
    plan: &Plan,
    run: &Run,
    programs: &Programs,
    host: &impl Host<RunRecord>,
    studies: &KeptStudies<'_>,
) -> Result<Trial, LabError> {
    let spec = plan.spec(run)?;
    let lines = lines_of(&spec, run.scale.leaf_level);
    let records = run.scale.all_records().min(TRIAL_RECORDS);
    let seed = plan.seed_of(&run.workload);
    let trace = programs.records(&run.workload, records, lines, run.switches.pages, seed)?;
    let start = host.seconds();
    let initial = initial(&spec, plan.seed, studies)?;
    let begun = host.seconds();
    system::run_from(&spec, initial, trace, WarmUp::default(), seed, &())?;
    let ended = host.seconds();
    Ok(Trial { first: begun - start, record: (ended - begun) / records as f64 })
}

/// Seconds a record of the kept runs that are most like `run`: of the same machine on such a tree, on such a tree,
/// or of all.
fn nearest(run: &Run, kept: &[RunRecord]) -> f64 {
    let level = |record: &RunRecord| {
        record.spec.oram.as_ref().map_or(record.scale.leaf_level, OramSpec::leaf_level)
    };
    let is_on_such_a_tree = |record: &RunRecord| level(record) == run.scale.leaf_level;
    let is_same_machine =
        |record: &RunRecord| is_on_such_a_tree(record) && record.variant == run.variant;
    let mean = |is_like: &dyn Fn(&RunRecord) -> bool| {
        let alike = kept.iter().filter(|record| is_like(record));
        let (seconds, records) = alike.fold((0.0, 0), |(seconds, records), record| {
            (seconds + record.seconds, records + record.scale.timed_records())
        });
        (records > 0).then(|| seconds / records as f64)
    };
    mean(&is_same_machine)
        .or_else(|| mean(&is_on_such_a_tree))
        .or_else(|| mean(&|_| true))
        .unwrap_or(0.0)
}

impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, kept, seconds } = self;
        let Some(seconds) = seconds else { return write!(f, "{runs} runs, all of which are kept") };
        write!(f, "{runs} runs, of which {kept} are kept; the rest takes about ")?;
        match seconds {
            0.0..90.0 => write!(f, "{:.0} s", seconds.max(1.0)),
            90.0..5400.0 => write!(f, "{:.0} minutes", seconds / 60.0),
            _ => write!(f, "{:.1} hours", seconds / 3600.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_in_words() {
        let said = |kept, seconds| Outlook { runs: 9, kept, seconds }.to_string();
        assert_eq!(said(9, None), "9 runs, all of which are kept");
        for (seconds, words) in
            [(0.2, "1 s"), (89.0, "89 s"), (91.0, "2 minutes"), (9000.0, "2.5 hours")]
        {
            let expected = format!("9 runs, of which 3 are kept; the rest takes about {words}");
            assert_eq!(said(3, Some(seconds)), expected);
        }
    }
}
