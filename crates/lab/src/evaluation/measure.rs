//! Numbers that figures show, from what came out of runs.

use oblivio_sim::controller::ControllerTally;
use oblivio_sim::system::Outcome;
use serde::{Deserialize, Serialize};

/// A kind of paths (IR-ORAM, section III-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// For blocks that were asked for (`PT_d`).
    Data,
    /// For the position map (`PT_p`).
    PositionMap,
    /// For its level nearest the data (`Pos1`).
    #[serde(rename = "position-map-1")]
    PositionMap1,
    /// For the next level (`Pos2`).
    #[serde(rename = "position-map-2")]
    PositionMap2,
    /// For room in the stash.
    Evictions,
    /// For nothing (`PT_m`).
    Dummies,
}

impl Part {
    fn of(self, tally: &ControllerTally) -> u64 {
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

/// What is taken of a run, alone or beside that of another variant under the same workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Cycles of that variant over those of this one, for the same records: more is better. A warm-up ends
    /// some records earlier or later on one machine than on another, so all is counted for each record.
    SpeedOver(String),
    /// Cycles without those of background evictions, over all cycles of that variant.
    TimeWithoutEvictionsOver(String),
    /// Cycles of background evictions, over all cycles of that variant.
    EvictionTimeOver(String),
    /// Paths for the position map, over those of that variant.
    PositionMapOver(String),
    /// The part of all paths that are of this kind.
    Share(Part),
    /// How often the part of the first kind is that of the second: of the means, if it is of several
    /// workloads, since one of them may have none.
    Times(Part, Part),
    /// Cycles in which paths were under way, whatever they were for, for each request that was answered.
    CyclesForEachRequest,
    /// The same for each path that requests take, for data or the position map: an access of the scheme,
    /// with its share of the evictions.
    CyclesForEachAccess,
    /// Background evictions for each path that requests take, for data or the position map.
    EvictionsForEachAccess,
    /// Cycles in which the reorder buffer was full for each read that missed the LLC. With room for one
    /// instruction that is how long a read waits for its line, also behind what was under way before it.
    WaitForEachRead,
}

/// How one number is made of those of several workloads. Papers seldom say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// The sum over the count.
    Arithmetic,
    /// The root of the product, as is usual for ratios.
    Geometric,
}

impl Mean {
    /// Both, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Arithmetic, Self::Geometric];

    /// Which it is, in a word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Geometric => "geometric",
        }
    }

    /// What it is called.
    pub fn name(self) -> String {
        format!("{} mean", self.kind())
    }

    fn of(self, values: &[f64]) -> Option<f64> {
        let mean = |sum: f64| sum / values.len() as f64;
        (!values.is_empty()).then(|| match self {
            Self::Arithmetic => mean(values.iter().sum()),
            Self::Geometric => mean(values.iter().map(|value| value.ln()).sum()).exp(),
        })
    }
}

impl Measure {
    /// The variant that it is held against.
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::SpeedOver(over)
            | Self::TimeWithoutEvictionsOver(over)
            | Self::EvictionTimeOver(over)
            | Self::PositionMapOver(over) => Some(over),
            Self::Share(_)
            | Self::Times(..)
            | Self::CyclesForEachRequest
            | Self::CyclesForEachAccess
            | Self::EvictionsForEachAccess
            | Self::WaitForEachRead => None,
        }
    }

    /// Whether it is a ratio, of which more than one mean over workloads makes sense. Shares of paths are parts of
    /// one whole, and add up in the arithmetic mean alone.
    pub fn is_ratio(&self) -> bool {
        self.reference().is_some()
    }

    /// The number, for pairs of a run and that of the reference, which is the run itself where there is no
    /// other: one of one pair, the `mean` of several. Runs that have none do not count.
    pub fn of(&self, runs: &[(&Outcome, &Outcome)], mean: Mean) -> Option<f64> {
        if let Self::Times(first, second) = self {
            let part = |part: &Part| Self::Share(*part).of(runs, mean);
            return Some(part(first)? / part(second)?).filter(|times| times.is_finite());
        }
        mean.of(&self.of_each(runs))
    }

    fn of_each(&self, runs: &[(&Outcome, &Outcome)]) -> Vec<f64> {
        runs.iter().filter_map(|(run, reference)| self.of_one(run, reference)).collect()
    }

    fn of_one(&self, run: &Outcome, reference: &Outcome) -> Option<f64> {
        let paths = |outcome: &Outcome, part: Part| {
            outcome.memory.controller.as_ref().map(|tally| part.of(tally))
        };
        let evicting = run.memory.controller.as_ref().map_or(0, |tally| tally.busy_evicting);
        let over = |count, of| ratio_for_each((count, run.records), (of, reference.records));
        match self {
            Self::SpeedOver(_) => {
                ratio_for_each((reference.cycles, reference.records), (run.cycles, run.records))
            }
            Self::TimeWithoutEvictionsOver(_) => {
                over(run.cycles.saturating_sub(evicting), reference.cycles)
            }
            Self::EvictionTimeOver(_) => over(evicting, reference.cycles),
            Self::PositionMapOver(_) => {
                over(paths(run, Part::PositionMap)?, paths(reference, Part::PositionMap)?)
            }
            Self::Share(part) => ratio(paths(run, *part)?, run.memory.controller.as_ref()?.paths()),
            Self::Times(first, second) => ratio(paths(run, *first)?, paths(run, *second)?),
            Self::CyclesForEachRequest => cycles_for_each(run, |tally| {
                Part::Data.of(tally) + tally.served_on_client + tally.forwarded
            }),
            Self::CyclesForEachAccess => cycles_for_each(run, accesses),
            Self::EvictionsForEachAccess => {
                let tally = run.memory.controller.as_ref()?;
                ratio(tally.evictions, accesses(tally))
            }
            Self::WaitForEachRead => ratio(run.processor.stalls.rob, run.processor.read_misses),
        }
    }
}

/// Paths that requests take.
fn accesses(tally: &ControllerTally) -> u64 {
    Part::Data.of(tally) + Part::PositionMap.of(tally)
}

/// How long the controller was busy for each of what `count` counts.
fn cycles_for_each(run: &Outcome, count: impl Fn(&ControllerTally) -> u64) -> Option<f64> {
    let tally = run.memory.controller.as_ref()?;
    ratio(tally.busy, count(tally))
}

/// How a count for each of some records compares with another for each of others.
fn ratio_for_each((count, records): (u64, u64), (of, of_records): (u64, u64)) -> Option<f64> {
    let product = |a, b| u128::from(a) * u128::from(b);
    let (over, under) = (product(count, of_records), product(of, records));
    (under > 0).then(|| over as f64 / under as f64)
}

fn ratio(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use oblivio_sim::system::MemoryTally;

    use super::*;

    fn outcome(cycles: u64, paths: [u64; 5], busy_evicting: u64) -> Outcome {
        let [data, first, second, evictions, dummies] = paths;
        let position_map = vec![first, second];
        let tally = ControllerTally {
            data,
            position_map,
            evictions,
            dummies,
            busy_evicting,
            ..ControllerTally::default()
        };
        let memory = MemoryTally { controller: Some(tally), ..MemoryTally::default() };
        Outcome { cycles, records: 100, memory, ..Outcome::default() }
    }

    fn over(name: fn(String) -> Measure) -> Measure {
        name("baseline".to_owned())
    }

    #[test]
    fn measures_by_hand() {
        let baseline = outcome(1000, [56, 24, 8, 1, 11], 10);
        let run = outcome(800, [50, 12, 4, 20, 14], 200);
        let of = |measure: Measure| measure.of(&[(&run, &baseline)], Mean::Arithmetic).unwrap();
        assert_eq!(of(over(Measure::SpeedOver)), 1.25);
        assert_eq!(of(over(Measure::TimeWithoutEvictionsOver)), 0.6);
        assert_eq!(of(over(Measure::EvictionTimeOver)), 0.2);
        assert_eq!(of(over(Measure::PositionMapOver)), 0.5);
        assert_eq!(of(Measure::Share(Part::Data)), 0.5);
        assert_eq!(of(Measure::Share(Part::PositionMap)), 0.16);
        assert_eq!(of(Measure::Share(Part::PositionMap1)), 0.12);
        assert_eq!(of(Measure::Share(Part::Evictions)), 0.2);
        assert_eq!(of(Measure::Share(Part::Dummies)), 0.14);
        assert_eq!(of(Measure::EvictionsForEachAccess), 20.0 / 66.0);
        assert_eq!(of(Measure::Times(Part::PositionMap1, Part::PositionMap2)), 3.0);
    }

    #[test]
    fn means_are_of_what_there_is() {
        let (slow, fast) = (outcome(400, [1, 3, 0, 0, 0], 0), outcome(100, [1, 0, 1, 0, 0], 0));
        let speed = over(Measure::SpeedOver);
        let pairs = [(&fast, &slow), (&slow, &slow)];
        assert_eq!(speed.of(&pairs, Mean::Arithmetic), Some(2.5));
        assert_eq!(speed.of(&pairs, Mean::Geometric), Some(2.0));
        assert_eq!(Mean::ALL.map(|mean| speed.of(&[], mean)), [None; 2]);
        // Of the means: (3/4 + 0) / (0 + 1/2), though one alone has none.
        let times = Measure::Times(Part::PositionMap1, Part::PositionMap2);
        let of = |pairs| times.of(pairs, Mean::Arithmetic);
        assert_eq!([&pairs[..1], &pairs[1..], &pairs].map(of), [Some(0.0), None, Some(1.5)]);
    }

    #[test]
    fn cycles_and_paths_are_those_of_the_same_records() {
        let baseline = outcome(1000, [50, 40, 0, 0, 0], 0);
        let half = Outcome { records: 50, ..outcome(400, [20, 10, 0, 0, 0], 100) };
        let of = |measure: Measure| measure.of(&[(&half, &baseline)], Mean::Arithmetic).unwrap();
        assert_eq!(of(over(Measure::SpeedOver)), 1.25);
        assert_eq!(of(over(Measure::TimeWithoutEvictionsOver)), 0.6);
        assert_eq!(of(over(Measure::EvictionTimeOver)), 0.2);
        assert_eq!(of(over(Measure::PositionMapOver)), 0.5);
    }

    #[test]
    fn cycles_are_those_of_paths_for_each_request_and_each_access() {
        let of = |data, [forwarded, served_on_client]: [u64; 2]| {
            let mut outcome = outcome(9999, [data, 24, 8, 5, 3], 100);
            let tally = outcome.memory.controller.as_mut().unwrap();
            (tally.busy, tally.forwarded, tally.served_on_client) =
                (1760, forwarded, served_on_client);
            outcome
        };
        let run = of(56, [6, 2]);
        assert_eq!(
            Measure::CyclesForEachRequest.of(&[(&run, &run)], Mean::Arithmetic),
            Some(1760.0 / 64.0)
        );
        assert_eq!(Measure::CyclesForEachAccess.of(&[(&run, &run)], Mean::Arithmetic), Some(20.0));
        let mut run = run;
        (run.processor.stalls.rob, run.processor.read_misses) = (1200, 40);
        assert_eq!(Measure::WaitForEachRead.of(&[(&run, &run)], Mean::Arithmetic), Some(30.0));
        let idle = of(0, [0, 0]);
        assert_eq!(Measure::WaitForEachRead.of(&[(&idle, &idle)], Mean::Arithmetic), None);
        assert_eq!(Measure::CyclesForEachRequest.of(&[(&idle, &idle)], Mean::Arithmetic), None);
    }

    #[test]
    fn a_machine_without_oram_has_a_speed_and_no_paths() {
        let plain = Outcome { cycles: 10, records: 100, ..Outcome::default() };
        let oram = outcome(80, [1, 0, 0, 0, 0], 0);
        assert_eq!(over(Measure::SpeedOver).of(&[(&plain, &oram)], Mean::Arithmetic), Some(8.0));
        assert_eq!(Measure::Share(Part::Data).of(&[(&plain, &plain)], Mean::Arithmetic), None);
        assert_eq!(Measure::CyclesForEachRequest.of(&[(&plain, &plain)], Mean::Arithmetic), None);
        assert_eq!(Measure::CyclesForEachAccess.of(&[(&plain, &plain)], Mean::Arithmetic), None);
        assert_eq!(over(Measure::PositionMapOver).of(&[(&plain, &oram)], Mean::Arithmetic), None);
        // A workload that fits the LLC asks for nothing.
        assert_eq!(over(Measure::PositionMapOver).of(&[(&oram, &oram)], Mean::Arithmetic), None);
    }
}
