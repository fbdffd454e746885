//! Quantities computed from the snapshots of a run.

use oblivio_sim::functional::{FoundCounts, Snapshot};

use super::course::RequestSource;
use super::record::{BlocksRecord, Taken};
use crate::LabError;

/// Number of levels next to the leaves, leaves included, that are not middle levels. In section
/// III-B, levels 10 to 21 are the middle levels, and the leaves are on level 24.
const BOTTOM_LEVELS: usize = 3;

/// Utilisation of the levels after programs and after random requests.
pub(super) struct Levels {
    pub(super) programs: Vec<f64>,
    pub(super) chance: Vec<f64>,
}

impl Levels {
    pub(super) fn from_record(record: &BlocksRecord) -> Result<Self, LabError> {
        let [_, programs, chance] = ends(record)?.map(Snapshot::utilisation);
        Ok(Self { programs, chance })
    }
}

/// The mean utilisation of the middle levels of a run's tree. `utilisation` has the value of each
/// level.
pub(super) fn middle_of(record: &BlocksRecord, utilisation: &[f64]) -> Option<f64> {
    let end = utilisation.len().saturating_sub(BOTTOM_LEVELS);
    mean(utilisation.get(record.spec.tree_top_levels.into()..end)?)
}

/// The fractions of requests that found their block in the stash, and on each level.
pub(super) struct FoundShares {
    pub(super) stash: f64,
    pub(super) levels: Vec<f64>,
}

impl FoundShares {
    /// Counts requests for data between two snapshots.
    pub(super) fn between(from: &Snapshot, to: &Snapshot, levels: usize) -> Self {
        FoundShares::from_counts([(&from.found, &to.found)], levels)
    }

    /// Counts requests for blocks of the position map that missed the PLB.
    pub(super) fn of_position_map(from: &Snapshot, to: &Snapshot, levels: usize) -> Self {
        FoundShares::from_counts([(&from.found_position_map, &to.found_position_map)], levels)
    }

    /// Counts requests for data and for blocks of the position map.
    pub(super) fn of_both_kinds(from: &Snapshot, to: &Snapshot, levels: usize) -> Self {
        let map = (&from.found_position_map, &to.found_position_map);
        FoundShares::from_counts([(&from.found, &to.found), map], levels)
    }

    /// Counts requests of several kinds. Each kind is given by its counts in the two snapshots.
    fn from_counts<const N: usize>(
        kinds: [(&FoundCounts, &FoundCounts); N],
        levels: usize,
    ) -> Self {
        let sum = |count: &dyn Fn(&FoundCounts) -> u64| -> u64 {
            kinds.iter().map(|(from, to)| count(to) - count(from)).sum()
        };
        let requests = sum(&FoundCounts::requests).max(1) as f64;
        let level = |level: usize| {
            sum(&|found| found.levels.get(level).copied().unwrap_or(0)) as f64 / requests
        };
        Self {
            stash: sum(&|found| found.stash) as f64 / requests,
            levels: (0..levels).map(level).collect(),
        }
    }

    pub(super) fn above(&self, level: usize) -> f64 {
        self.levels.iter().take(level).sum()
    }
}

/// The first snapshot of a run, the last snapshot while programs run, and the last snapshot of the
/// run.
pub(super) fn ends(record: &BlocksRecord) -> Result<[&Snapshot; 3], LabError> {
    let snapshots = &record.snapshots;
    let programs = snapshots.iter().rfind(|taken| taken.after != RequestSource::UNIFORM);
    match (snapshots.first(), programs, snapshots.last()) {
        (Some(start), Some(programs), Some(end)) => {
            Ok([start, programs, end].map(|taken| &taken.snapshot))
        }
        _ => Err(LabError::Plan(format!("the run {} has no snapshots", record.key))),
    }
}

/// The name of each stretch, with the snapshots at its beginning and end.
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

/// The mean utilisation of each level over all paths. Each snapshot is weighted with the paths
/// since the previous one.
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
