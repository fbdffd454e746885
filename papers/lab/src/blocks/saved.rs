//! Saves the state of a run after each stretch, so that an interrupted run can continue.

use oblivio_sim::MODEL;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::functional::{Snapshot, Study};
use serde::{Deserialize, Serialize};

use super::course::Stretch;
use super::record::Taken;
use crate::LabError;
use crate::kept_studies::KeptStudies;
use crate::records::first_model;

/// Identifies a run, and the storage for its saved state.
pub(super) struct Saved<'a> {
    pub(super) studies: &'a KeptStudies<'a>,
    pub(super) key: &'a str,
    pub(super) trace: u32,
    pub(super) spec: &'a OramSpec,
    pub(super) seed: u64,
}

/// The state of a run after some of its stretches.
pub(super) struct PartialRun {
    pub(super) study: Study,
    pub(super) taken: Vec<Taken>,
    pub(super) stretches_done: usize,
    /// Seconds that the completed stretches took.
    pub(super) seconds: f64,
}

/// The note that is saved with the study of an interrupted run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checkpoint {
    key: String,
    trace: u32,
    snapshots: Vec<Taken>,
    #[serde(default = "first_model")]
    model: u32,
    seconds: f64,
}

impl Saved<'_> {
    /// Loads the saved state of this run. `None` if no state is saved, or if it is unusable.
    pub(super) fn interrupted(&self, stretches: &[Stretch]) -> Option<PartialRun> {
        let resume = |study, note: &_| self.resume(study, note, stretches);
        self.studies.get(&self.run_name(), self.spec, self.seed, resume)
    }

    /// Saves the current state of this run.
    pub(super) fn keep_run(&self, study: &Study, taken: &[Taken], seconds: f64) {
        let checkpoint = Checkpoint {
            key: self.key.to_owned(),
            trace: self.trace,
            snapshots: taken.to_vec(),
            model: MODEL,
            seconds,
        };
        match serde_json::to_string(&checkpoint) {
            Ok(note) => self.studies.keep(&self.run_name(), study, &note),
            Err(error) => self.studies.remark_not_kept(&self.run_name(), &error.into()),
        }
    }

    /// Removes the saved state of this run, once its record is written.
    pub(super) fn forget_run(&self) {
        self.studies.forget(&self.run_name());
    }

    fn resume(
        &self,
        mut study: Study,
        note: &str,
        all: &[Stretch],
    ) -> Result<PartialRun, LabError> {
        let checkpoint = serde_json::from_str(note)
            .map_err(|error| LabError::Input(format!("it is not a saved run ({error})")))?;
        let Checkpoint { key, trace, snapshots, model, seconds } = checkpoint;
        if (key.as_str(), trace) != (self.key, self.trace) {
            return Err(LabError::Input("it belongs to another run or to other traces".to_owned()));
        }
        if model != MODEL {
            return Err(LabError::Input(format!(
                "it was made by model {model} of the simulator, not {MODEL}"
            )));
        }
        let stretches_done = stretches_of(&snapshots, all);
        let last = snapshots.last().map(|taken| &taken.snapshot);
        let (Some(stretches_done), Some(last)) = (stretches_done, last) else {
            return Err(LabError::Input("its snapshots do not match the run".to_owned()));
        };
        let is_in_order =
            snapshots.is_sorted_by(|before, after| can_follow(&before.snapshot, &after.snapshot));
        if !is_in_order || *last != study.snapshot()? {
            return Err(LabError::Input("its snapshots do not match its tree".to_owned()));
        }
        Ok(PartialRun { study, taken: snapshots, stretches_done, seconds })
    }

    fn run_name(&self) -> String {
        format!("run-{}.tree", self.key.replace('/', "-"))
    }
}

/// The number of stretches that `snapshots` completes after the initial snapshot. `None` if they
/// are not the first stretches of `all`.
fn stretches_of(snapshots: &[Taken], all: &[Stretch]) -> Option<usize> {
    let mut rest = snapshots.get(1..)?;
    let mut done = 0;
    while !rest.is_empty() {
        let stretch = all.get(done)?;
        let (of_stretch, others) = rest.split_at_checked(stretch.snapshots as usize)?;
        if of_stretch.iter().any(|taken| taken.after != stretch.source.name()) {
            return None;
        }
        (rest, done) = (others, done + 1);
    }
    Some(done)
}

/// Whether snapshot `after` can follow `before`: counts never decrease.
fn can_follow(before: &Snapshot, after: &Snapshot) -> bool {
    let counts = |snapshot: &Snapshot| {
        let Snapshot { paths, found, found_position_map: map, .. } = snapshot;
        let paths = [paths.data, paths.position_map, paths.evictions];
        let [found, map] = [found, map].map(|found| [found.stash, found.nowhere]);
        [&paths[..], &found, &map].concat()
    };
    let levels = |snapshot: &Snapshot| {
        let mut levels = snapshot.found.levels.clone();
        levels.resize(snapshot.slots.len().max(levels.len()), 0);
        levels
    };
    let (levels_before, levels_after) = (levels(before), levels(after));
    let mut pairs = counts(before).into_iter().zip(counts(after));
    before.slots == after.slots
        && levels_before.len() == levels_after.len()
        && pairs.all(|(before, after)| before <= after)
        && levels_before.iter().zip(&levels_after).all(|(before, after)| before <= after)
}
