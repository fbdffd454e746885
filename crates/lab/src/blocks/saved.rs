//! What runs need not make again: initial trees, and what a run had made when it was interrupted.
//!
//! Nothing here fails a run. What cannot be used is remarked and made again, and what cannot be kept is
//! remarked.

use std::io::Read;

use oblivio_sim::controller::{Initial, OramSpec};
use oblivio_sim::functional::{Snapshot, Study};
use serde::{Deserialize, Serialize};

use super::course::Stretch;
use super::record::{BlocksRecord, Taken};
use crate::LabError;
use crate::records::{Host, Trees};

/// What is saved for one run, and where.
pub(super) struct Saved<'a, H> {
    pub(super) trees: Option<&'a dyn Trees>,
    pub(super) host: &'a H,
    pub(super) key: &'a str,
    pub(super) trace: u32,
    pub(super) spec: &'a OramSpec,
    pub(super) seed: u64,
}

/// A run after some of its stretches.
pub(super) struct Begun {
    pub(super) study: Study,
    pub(super) taken: Vec<Taken>,
    pub(super) stretches_done: usize,
    /// Seconds that it took.
    pub(super) seconds: f64,
}

/// What is noted beside the study of a run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checkpoint {
    key: String,
    trace: u32,
    snapshots: Vec<Taken>,
    seconds: f64,
}

/// What is noted beside the study of an initial tree.
const INITIAL: &str = "initial tree";

impl<H: Host<BlocksRecord>> Saved<'_, H> {
    /// The initial tree, if it is there.
    pub(super) fn initial(&self) -> Option<Study> {
        self.get(&self.initial_name()?, |study, note| match note {
            INITIAL => Ok(study),
            _ => Err(LabError::Input("it is no initial tree".to_owned())),
        })
    }

    /// Keeps an initial tree that takes long to make.
    pub(super) fn keep_initial(&self, study: &Study) {
        if let Some(name) = self.initial_name() {
            self.keep(&name, study, INITIAL);
        }
    }

    /// This run as it was when it was interrupted, if it was.
    pub(super) fn interrupted(&self, stretches: &[Stretch]) -> Option<Begun> {
        self.get(&self.run_name(), |study, note| self.go_on(study, note, stretches))
    }

    /// Keeps this run as it is now.
    pub(super) fn keep_run(&self, study: &Study, taken: &[Taken], seconds: f64) {
        let checkpoint = Checkpoint {
            key: self.key.to_owned(),
            trace: self.trace,
            snapshots: taken.to_vec(),
            seconds,
        };
        match serde_json::to_string(&checkpoint) {
            Ok(note) => self.keep(&self.run_name(), study, &note),
            Err(error) => self.remark_not_kept(&self.run_name(), &error.into()),
        }
    }

    /// The record of this run is kept: the run itself need not be.
    pub(super) fn forget_run(&self) {
        if let Some(Err(error)) = self.trees.map(|trees| trees.remove(&self.run_name())) {
            self.host.remark(&format!("{} is not removed: {error}", self.run_name()));
        }
    }

    fn go_on(&self, mut study: Study, note: &str, all: &[Stretch]) -> Result<Begun, LabError> {
        let checkpoint = serde_json::from_str(note)
            .map_err(|error| LabError::Input(format!("it is no run under way ({error})")))?;
        let Checkpoint { key, trace, snapshots, seconds } = checkpoint;
        if (key.as_str(), trace) != (self.key, self.trace) {
            return Err(LabError::Input("it is another run, or one of other traces".to_owned()));
        }
        let stretches_done = stretches_of(&snapshots, all);
        let last = snapshots.last().map(|taken| &taken.snapshot);
        let (Some(stretches_done), Some(last)) = (stretches_done, last) else {
            return Err(LabError::Input("its snapshots are not those of the run".to_owned()));
        };
        let is_in_order =
            snapshots.is_sorted_by(|before, after| can_follow(&before.snapshot, &after.snapshot));
        if !is_in_order || *last != study.snapshot()? {
            return Err(LabError::Input("its snapshots are not those of its tree".to_owned()));
        }
        Ok(Begun { study, taken: snapshots, stretches_done, seconds })
    }

    /// What `judge` makes of the study that is kept as `name`, and of the note.
    fn get<T>(
        &self,
        name: &str,
        judge: impl FnOnce(Study, &str) -> Result<T, LabError>,
    ) -> Option<T> {
        let read = |file: Box<dyn Read>| {
            let (study, note) = Study::resume(self.spec, self.seed, file)?;
            judge(study, &note)
        };
        let got = self.trees?.open(name).and_then(|file| file.map(read).transpose());
        got.unwrap_or_else(|error| {
            self.host.remark(&format!("{name} is not used, and made again: {error}"));
            None
        })
    }

    fn keep(&self, name: &str, study: &Study, note: &str) {
        let kept =
            self.trees.map(|trees| trees.replace(name, &mut |file| Ok(study.save(note, file)?)));
        if let Some(Err(error)) = kept {
            self.remark_not_kept(name, &error);
        }
    }

    fn remark_not_kept(&self, name: &str, error: &LabError) {
        self.host.remark(&format!("{name} is not kept: {error}"));
    }

    /// How the initial tree is called, where it takes long to make. Other runs have the same one.
    fn initial_name(&self) -> Option<String> {
        let spec = serde_json::to_string(self.spec).ok()?;
        let (leaf_level, sum) = (self.spec.leaf_level(), crc32fast::hash(spec.as_bytes()));
        (self.spec.initial == Initial::EachOnce)
            .then(|| format!("initial-L{leaf_level}-seed{}-{sum:08x}.tree", self.seed))
    }

    fn run_name(&self) -> String {
        format!("run-{}.tree", self.key.replace('/', "-"))
    }
}

/// How many stretches `snapshots` are of, behind the one before all requests, if they are the first ones
/// of `all` to their ends.
fn stretches_of(snapshots: &[Taken], all: &[Stretch]) -> Option<usize> {
    let mut rest = snapshots.get(1..)?;
    let mut done = 0;
    while !rest.is_empty() {
        let stretch = all.get(done)?;
        let (of_stretch, others) = rest.split_at_checked(stretch.snapshots as usize)?;
        if of_stretch.iter().any(|taken| taken.after != stretch.asked.name()) {
            return None;
        }
        (rest, done) = (others, done + 1);
    }
    Some(done)
}

/// Whether one snapshot can come after another: counts never fall.
fn can_follow(before: &Snapshot, after: &Snapshot) -> bool {
    let counts = |snapshot: &Snapshot| {
        let Snapshot { paths, found, .. } = snapshot;
        [paths.data, paths.position_map, paths.evictions, found.stash, found.nowhere]
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
