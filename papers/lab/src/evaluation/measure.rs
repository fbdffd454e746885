//! Measures: the numbers that figures show, computed from the results of runs.

use oblivio_sim::controller::{ControllerTally, OramSpec};
use oblivio_sim::dram::Energy;
use oblivio_sim::system::Outcome;
use serde::{Deserialize, Serialize};

use super::record::RunRecord;

#[cfg(test)]
mod tests;

/// A kind of path (IR-ORAM, section III-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathPart {
    /// Paths for requested blocks (`PT_d`).
    Data,
    /// Paths for the position map (`PT_p`).
    PositionMap,
    /// Paths for the level of the position map nearest to the data (`Pos1`).
    #[serde(rename = "position-map-1")]
    PositionMap1,
    /// Paths for the next level of the position map (`Pos2`).
    #[serde(rename = "position-map-2")]
    PositionMap2,
    /// Background evictions, which drain the stash.
    Evictions,
    /// Dummy paths (`PT_m`).
    Dummies,
}

impl PathPart {
    fn paths(self, tally: &ControllerTally) -> u64 {
        let level = |number: usize| tally.position_map.get(number - 1).copied().unwrap_or(0);
        match self {
            Self::Data => tally.data,
            Self::PositionMap => tally.position_map.iter().sum(),
            Self::PositionMap1 => level(1),
            Self::PositionMap2 => level(2),
            Self::Evictions => tally.evictions,
            Self::Dummies => tally.dummies,
        }
    }
}

/// A number computed from a run, alone or compared with the run of another variant under the same
/// workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Cycles of the named variant over cycles of this variant, for the same records: more is
    /// better. The warm-up may end a few records earlier on one machine than on another, so cycles
    /// are divided by records.
    SpeedOver(String),
    /// The speed of the named variant over this variant: cycles of this variant over cycles of the
    /// named one, for the same records.
    SpeedOf(String),
    /// Cycles of this variant without background evictions, divided by all cycles of the named
    /// variant.
    TimeWithoutEvictionsOver(String),
    /// Cycles of background evictions of this variant, divided by all cycles of the named variant.
    EvictionTimeOver(String),
    /// Paths for the position map of this variant, divided by those of the named variant.
    PositionMapOver(String),
    /// DRAM energy of the named variant over DRAM energy of this variant, for the same records:
    /// more is better, as with speed.
    LessEnergyThan(String),
    /// The fraction of all paths that are of the given kind.
    Share(PathPart),
    /// The first kind's share of paths divided by the second kind's share. Over several workloads,
    /// this is a ratio of means, since the second share can be zero under one of them.
    Times(PathPart, PathPart),
    /// Cycles in which paths were in progress, for any purpose, divided by answered requests.
    CyclesForEachRequest,
    /// Cycles in which paths were in progress, divided by the paths of requests, for data or the
    /// position map. This is the cost of an access of the scheme, with its share of the evictions.
    CyclesForEachAccess,
    /// Evictions divided by the paths of requests, for data or the position map.
    EvictionsForEachAccess,
    /// The fraction of DRAM energy due to evictions. Their energy for commands is proportional to
    /// their share of paths, and their energy that depends only on time is proportional to the time
    /// that they took.
    EvictionEnergy,
    /// DRAM energy per line read or written, in nanojoules.
    NanojoulesForEachLine,
    /// The size in KiB of the pointers that form the tree structure of an S-Stash (TT; IR-ORAM,
    /// section IV-C).
    PointerTableKib,
    /// The fraction of all cycles that context switches took: emptying the stash, and moving the
    /// tree top.
    ContextSwitchTime,
    /// Evictions that emptied the stash, per context switch.
    EvictionsForEachSwitch,
    /// Cycles in which the reorder buffer was full, divided by the reads that missed the LLC. If
    /// the buffer holds one instruction, this is the time that a read waits for its line, including
    /// work in progress before it.
    WaitForEachRead,
}

/// Ways to combine the numbers of several workloads. Papers rarely state which one they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// The sum divided by the count.
    Arithmetic,
    /// The geometric mean, which is usual for ratios.
    Geometric,
    /// The standard deviation of a sample, which is not a mean.
    Deviation,
}

impl Mean {
    /// The arithmetic and the geometric mean, in the order in which figures show them.
    pub const ALL: [Self; 2] = [Self::Arithmetic, Self::Geometric];

    /// The kind of mean in words, such as "geometric".
    pub fn kind(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Geometric => "geometric",
            Self::Deviation => "standard deviation",
        }
    }

    /// The name of the mean in figures.
    pub fn name(self) -> String {
        match self {
            Self::Arithmetic | Self::Geometric => format!("{} mean", self.kind()),
            Self::Deviation => self.kind().to_owned(),
        }
    }

    fn average(self, values: &[f64]) -> Option<f64> {
        let mean = |sum: f64| sum / values.len() as f64;
        if values.len() < self.values_min() {
            return None;
        }
        Some(match self {
            Self::Arithmetic => mean(values.iter().sum()),
            Self::Geometric => mean(values.iter().map(|value| value.ln()).sum()).exp(),
            Self::Deviation => {
                let mean = mean(values.iter().sum());
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                (squares / (values.len() - 1) as f64).sqrt()
            }
        })
    }

    fn values_min(self) -> usize {
        match self {
            Self::Arithmetic | Self::Geometric => 1,
            Self::Deviation => 2,
        }
    }
}

impl Measure {
    /// The variant that the measure compares this variant with.
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::SpeedOver(over)
            | Self::SpeedOf(over)
            | Self::TimeWithoutEvictionsOver(over)
            | Self::EvictionTimeOver(over)
            | Self::PositionMapOver(over)
            | Self::LessEnergyThan(over) => Some(over),
            Self::Share(_)
            | Self::Times(..)
            | Self::CyclesForEachRequest
            | Self::CyclesForEachAccess
            | Self::EvictionsForEachAccess
            | Self::EvictionEnergy
            | Self::NanojoulesForEachLine
            | Self::PointerTableKib
            | Self::ContextSwitchTime
            | Self::EvictionsForEachSwitch
            | Self::WaitForEachRead => None,
        }
    }

    /// Whether the measure is a ratio of two variants, for which several means over workloads make
    /// sense. Shares of paths are parts of a whole, and only add up in the arithmetic mean.
    pub fn is_ratio(&self) -> bool {
        self.reference().is_some()
    }

    /// The `mean` of the measure over runs, each paired with its reference. If the measure needs no
    /// reference, the caller pairs the run with itself. Runs for which the measure has no value are
    /// skipped. [`Self::Times`] is the ratio of two means. `None` if too few runs are left, or a
    /// ratio is not finite.
    pub fn evaluate(&self, runs: &[(&RunRecord, &RunRecord)], mean: Mean) -> Option<f64> {
        if let Self::Times(first, second) = self {
            let part = |part: &PathPart| Self::Share(*part).evaluate(runs, mean);
            return Some(part(first)? / part(second)?).filter(|times| times.is_finite());
        }
        mean.average(&self.of_each(runs))
    }

    fn of_each(&self, runs: &[(&RunRecord, &RunRecord)]) -> Vec<f64> {
        runs.iter().filter_map(|(run, reference)| self.of_one(run, reference)).collect()
    }

    fn of_one(&self, record: &RunRecord, reference_record: &RunRecord) -> Option<f64> {
        let (run, reference) = (&record.outcome, &reference_record.outcome);
        let paths = |outcome: &Outcome, part: PathPart| {
            outcome.memory.controller.as_ref().map(|tally| part.paths(tally))
        };
        let evicting = run.memory.controller.as_ref().map_or(0, |tally| tally.busy_evicting);
        let over = |count, of| ratio_for_each((count, run.records), (of, reference.records));
        match self {
            Self::SpeedOver(_) => {
                ratio_for_each((reference.cycles, reference.records), (run.cycles, run.records))
            }
            Self::SpeedOf(_) => over(run.cycles, reference.cycles),
            Self::TimeWithoutEvictionsOver(_) => {
                over(run.cycles.saturating_sub(evicting), reference.cycles)
            }
            Self::EvictionTimeOver(_) => over(evicting, reference.cycles),
            Self::PositionMapOver(_) => {
                over(paths(run, PathPart::PositionMap)?, paths(reference, PathPart::PositionMap)?)
            }
            Self::Share(part) => ratio(paths(run, *part)?, run.memory.controller.as_ref()?.paths()),
            Self::Times(first, second) => ratio(paths(run, *first)?, paths(run, *second)?),
            Self::CyclesForEachRequest => cycles_for_each(run, |tally| {
                PathPart::Data.paths(tally) + tally.served_on_client + tally.forwarded
            }),
            Self::CyclesForEachAccess => cycles_for_each(run, accesses),
            Self::EvictionsForEachAccess => {
                let tally = run.memory.controller.as_ref()?;
                ratio(tally.evictions, accesses(tally))
            }
            Self::LessEnergyThan(_) => {
                let for_each = |record: &RunRecord| {
                    Some(energy(record)?.total() / record.outcome.records as f64)
                };
                let less = for_each(reference_record)? / for_each(record)?;
                Some(less).filter(|less| less.is_finite())
            }
            Self::EvictionEnergy => {
                let (tally, energy) = (run.memory.controller.as_ref()?, energy(record)?);
                let of_lines = energy.of_lines() * ratio(tally.evictions, tally.paths())?;
                let of_time = energy.of_time() * ratio(tally.busy_evicting, run.cycles)?;
                Some((of_lines + of_time) / energy.total())
            }
            Self::NanojoulesForEachLine => {
                let lines = run.memory.dram.lines();
                (lines > 0).then_some(energy(record)?.total() / lines as f64)
            }
            Self::PointerTableKib => {
                let bits = record.spec.oram.as_ref().and_then(OramSpec::tree_top_pointer_bits)?;
                Some(bits as f64 / f64::from(8 << 10))
            }
            Self::ContextSwitchTime => {
                let tally = run.memory.controller.as_ref()?;
                ratio(tally.busy_flushing + tally.moving_tree_top, run.cycles)
            }
            Self::EvictionsForEachSwitch => {
                let tally = run.memory.controller.as_ref()?;
                ratio(tally.flush_evictions, tally.context_switches)
            }
            Self::WaitForEachRead => ratio(run.processor.stalls.rob, run.processor.read_misses),
        }
    }
}

/// The energy of DRAM, if the currents of its chips are known.
fn energy(record: &RunRecord) -> Option<Energy> {
    record.outcome.dram_energy(&record.spec).ok()
}

/// Number of paths that requests took.
fn accesses(tally: &ControllerTally) -> u64 {
    PathPart::Data.paths(tally) + PathPart::PositionMap.paths(tally)
}

/// Busy cycles of the controller divided by a count.
fn cycles_for_each(run: &Outcome, count: impl Fn(&ControllerTally) -> u64) -> Option<f64> {
    let tally = run.memory.controller.as_ref()?;
    ratio(tally.busy, count(tally))
}

/// The ratio of two counts, each divided by its number of records.
fn ratio_for_each((count, records): (u64, u64), (of, of_records): (u64, u64)) -> Option<f64> {
    let product = |a, b| u128::from(a) * u128::from(b);
    let (over, under) = (product(count, of_records), product(of, records));
    (under > 0).then(|| over as f64 / under as f64)
}

fn ratio(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}
