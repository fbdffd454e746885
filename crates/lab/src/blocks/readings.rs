//! What the snapshots of a run say.

use oblivio_sim::functional::Snapshot;

use super::course::Asked;
use super::record::{BlocksRecord, Taken};
use crate::LabError;

/// Between the tree top and these lowest levels are the middle levels (section III-B: 10 to 21 of 24).
const BOTTOM_LEVELS: usize = 3;

/// What the levels hold after programs, and after chance.
pub(super) struct Levels {
    pub(super) tree_top: usize,
    pub(super) programs: Vec<f64>,
    pub(super) chance: Vec<f64>,
}

impl Levels {
    pub(super) fn of(record: &BlocksRecord) -> Result<Self, LabError> {
        let [_, programs, chance] = ends(record)?.map(Snapshot::utilisation);
        Ok(Self { tree_top: record.spec.tree_top_levels.into(), programs, chance })
    }

    pub(super) fn middle(&self, utilisation: &[f64]) -> Option<f64> {
        let end = utilisation.len().saturating_sub(BOTTOM_LEVELS);
        mean(utilisation.get(self.tree_top..end)?)
    }
}

/// Where requests found their blocks: parts of all.
pub(super) struct Shares {
    pub(super) stash: f64,
    pub(super) levels: Vec<f64>,
}

impl Shares {
    pub(super) fn between(from: &Snapshot, to: &Snapshot, levels: usize) -> Self {
        let requests = (to.found.requests() - from.found.requests()).max(1) as f64;
        let of_level = |snapshot: &Snapshot, level: usize| {
            snapshot.found.levels.get(level).copied().unwrap_or(0)
        };
        let part = |from: u64, to: u64| (to - from) as f64 / requests;
        let level = |level| part(of_level(from, level), of_level(to, level));
        Self {
            stash: part(from.found.stash, to.found.stash),
            levels: (0..levels).map(level).collect(),
        }
    }

    pub(super) fn above(&self, level: usize) -> f64 {
        self.levels.iter().take(level).sum()
    }
}

/// The first snapshot, the last one of programs, and the last one.
pub(super) fn ends(record: &BlocksRecord) -> Result<[&Snapshot; 3], LabError> {
    let snapshots = &record.snapshots;
    let programs = snapshots.iter().rfind(|taken| taken.after != Asked::UNIFORM);
    match (snapshots.first(), programs, snapshots.last()) {
        (Some(start), Some(programs), Some(end)) => {
            Ok([start, programs, end].map(|taken| &taken.snapshot))
        }
        _ => Err(LabError::Plan(format!("the run {} has no snapshots", record.key))),
    }
}

/// Each stretch: what was asked for, and the snapshots around it.
pub(super) fn stretches(record: &BlocksRecord) -> Vec<(&str, &Snapshot, &Snapshot)> {
    let mut stretches = Vec::new();
    let mut before = record.snapshots.first();
    for stretch in record.snapshots.get(1..).unwrap_or_default().chunk_by(|a, b| a.after == b.after)
    {
        let last = stretch.last();
        if let (Some(before), Some(last)) = (before, last) {
            stretches.push((last.after.as_str(), &before.snapshot, &last.snapshot));
        }
        before = last;
    }
    stretches
}

/// Each snapshot stands for the paths since the one before.
pub(super) fn mean_over_paths(snapshots: &[Taken]) -> Vec<f64> {
    let mut sum = vec![0.0; snapshots.first().map_or(0, |taken| taken.snapshot.slots.len())];
    let mut all = 0;
    for taken in snapshots {
        let paths = taken.snapshot.paths.paths() - all;
        all += paths;
        for (sum, part) in sum.iter_mut().zip(taken.snapshot.utilisation()) {
            *sum += part * paths as f64;
        }
    }
    sum.into_iter().map(|sum| sum / all.max(1) as f64).collect()
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
