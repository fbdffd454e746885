//! The measured settings, and the results.

use std::num::NonZeroUsize;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::model::Model;
use super::setting::RangeStashSetting;
use crate::experiment::named_json;
use crate::stash_study::{Survival, TailFit};
use crate::{Experiment, Host, LabError, markdown, workers};

/// The parameters of the study, which determine the results exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeStashPlan {
    /// The settings of the ORAMs to measure.
    pub settings: Vec<RangeStashSetting>,
    /// Blocks accessed in each setting, over all of its runs.
    pub blocks: u64,
    /// The number of independent runs of each setting. Differences between them give the confidence
    /// interval.
    pub runs: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Passes over all blocks before counting starts.
const WARM_UP_PASSES: u64 = 4;

/// A run ends if the stash of any tree exceeds this number of blocks. The stash has then *run
/// away*: it would keep growing, since the trees are too full.
const LEFT_BLOCKS_MAX: usize = 1000;

impl RangeStashPlan {
    /// The plan of the study in the documentation: the published form with one block per leaf and
    /// with more; volumes with 2.5 blocks per leaf and with more.
    pub fn full() -> Self {
        let published = [(1, 4), (2, 4), (4, 4), (4, 3), (8, 5), (8, 4)];
        let published = published.map(|(load, slots)| RangeStashSetting::published(load, slots));
        let few = [10, 14].map(|quarters| RangeStashSetting::volume(10, quarters, &[0, 4], 2));
        let few =
            few.into_iter().chain([10, 14].map(|it| RangeStashSetting::volume(10, it, &[0, 4], 4)));
        let more = [10, 14].map(|quarters| RangeStashSetting::volume(10, quarters, &[0, 2, 4], 4));
        let long = [10, 14].map(|quarters| RangeStashSetting::volume(11, quarters, &[0, 8], 6));
        let settings = published.into_iter().chain(few).chain(more).chain(long).collect();
        Self { settings, blocks: 10_000_000, runs: 8, seed: 1 }
    }

    /// Approximate number of accessed blocks in all runs.
    fn total_blocks(&self) -> u64 {
        let of = |setting: &RangeStashSetting| {
            self.blocks + WARM_UP_PASSES * u64::from(setting.blocks) * u64::from(self.runs)
        };
        self.settings.iter().map(of).sum()
    }
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeStashRun {
    /// The seed of all random choices of the run.
    pub seed: u64,
    /// `histogram[n]`: how often the evictions due after an access left `n` blocks of a tree on the
    /// client. All trees count.
    pub histogram: Vec<u64>,
    /// Whether the run stopped because more than 1000 blocks of a tree were left.
    pub ran_away: bool,
}

/// The result for one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeStashResult {
    /// The setting of the ORAM.
    pub setting: RangeStashSetting,
    /// Independent runs with this setting.
    pub runs: Vec<RangeStashRun>,
}

impl RangeStashResult {
    /// Whether the stash of any run ran away.
    pub fn ran_away(&self) -> bool {
        self.runs.iter().any(|run| run.ran_away)
    }

    /// The distribution of the number of blocks left, over all runs.
    pub fn survival(&self) -> Survival {
        Survival::from_histograms(self.runs.iter().map(|run| run.histogram.as_slice()))
    }

    /// The fitted tail. `None` if the stash ran away or the observed tail is too short.
    pub fn fit(&self) -> Option<TailFit> {
        let histograms: Vec<_> = self.runs.iter().map(|run| run.histogram.as_slice()).collect();
        if self.ran_away() { None } else { TailFit::of_bulk(&histograms) }
    }
}

/// The result of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeStashStudy {
    /// The parameters of the study.
    pub plan: RangeStashPlan,
    /// The result of each setting of the plan.
    pub results: Vec<RangeStashResult>,
}

impl Experiment for RangeStashPlan {
    const NAME: &'static str = "range-stash";
    const RESULTS: &'static str = "range-stash.json";
    const STEPS: &'static str = "blocks";
    type Record = ();
    type Results = RangeStashStudy;

    fn run(
        self,
        _: &[()],
        threads: NonZeroUsize,
        host: &impl Host<()>,
    ) -> Result<RangeStashStudy, LabError> {
        if self.runs < 2 || self.blocks / u64::from(self.runs) < 10_000 {
            let message = "a tail needs at least 2 runs with 10,000 blocks each: use more --blocks \
                           or --seeds";
            return Err(LabError::Plan(message.to_owned()));
        }
        host.planned(self.total_blocks());
        let mut seeds = StdRng::seed_from_u64(self.seed);
        let each = self.settings.iter().flat_map(|setting| (0..self.runs).map(move |_| setting));
        let tasks: Vec<_> = each.map(|setting| (setting, seeds.next_u64())).collect();
        let blocks = self.blocks / u64::from(self.runs);
        let measured = workers::run_all(&tasks, threads, |(setting, seed)| {
            Ok::<_, LabError>(measure(setting, blocks, *seed, &|done| host.made(done)))
        });
        let mut measured = measured?.into_iter();
        let results = self.settings.iter().map(|setting| RangeStashResult {
            setting: setting.clone(),
            runs: measured.by_ref().take(self.runs as usize).collect(),
        });
        let results = results.collect();
        Ok(RangeStashStudy { plan: self, results })
    }

    fn to_json(study: &RangeStashStudy) -> Result<String, LabError> {
        named_json::<Self>(study)
    }

    fn text(study: &RangeStashStudy) -> String {
        study.table()
    }
}

/// Makes one run, with ranges of all classes at random addresses.
fn measure(
    setting: &RangeStashSetting,
    blocks: u64,
    seed: u64,
    progress: &dyn Fn(u64),
) -> RangeStashRun {
    let mut coins = StdRng::seed_from_u64(seed);
    let mut model = Model::new(setting, StdRng::from_rng(&mut coins));
    let warm_up = WARM_UP_PASSES * u64::from(setting.blocks);
    let (mut histogram, mut ran_away) = (Vec::new(), false);
    let (mut made, mut reported) = (0, 0);
    // All blocks exist after the first pass.
    let mut fill = (0..setting.blocks).step_by(setting.longest() as usize);
    while made < warm_up + blocks && !ran_away {
        let (at, address) = match fill.next() {
            Some(address) => (setting.classes.len() - 1, address),
            None => {
                let class = coins.random_range(0..setting.classes.len());
                (class, coins.random_range(0..setting.blocks))
            }
        };
        let is_counted = made >= warm_up;
        made += u64::from(model.access(at, address, &mut |left| {
            ran_away |= left > LEFT_BLOCKS_MAX;
            if is_counted {
                histogram.resize(histogram.len().max(left + 1), 0);
                histogram[left] += 1;
            }
        }));
        if made - reported > 1 << 14 {
            progress(made - reported);
            reported = made;
        }
    }
    progress(made - reported);
    RangeStashRun { seed, histogram, ran_away }
}

const HEAD: &str = "\
| setting | blocks/leaf | batches | most left | left at 2^-10 | left at 2^-80 (95 %) | bound |
|---------|------------:|--------:|----------:|--------------:|----------------------|------:|
";

impl RangeStashStudy {
    /// A Markdown table with a row per setting.
    pub fn table(&self) -> String {
        markdown::table(HEAD, self.results.iter().map(row))
    }
}

fn row(result: &RangeStashResult) -> String {
    let survival = result.survival();
    let rare = survival.log2().find(|(_, log2)| *log2 <= -10.0).map_or(survival.peak(), |(n, _)| n);
    let bound = match (result.fit(), result.ran_away()) {
        (_, true) => "ran away".to_owned(),
        (None, false) => "too little of a tail".to_owned(),
        (Some(TailFit { stash_blocks_max: bound, .. }), false) => {
            format!("{:.1} ({:.1} – {:.1})", bound.value, bound.low, bound.high)
        }
    };
    format!(
        "| {} | {:.2} | {} | {} | {rare} | {bound} | {} |",
        result.setting,
        result.setting.blocks_per_leaf(),
        survival.samples(),
        survival.peak(),
        result.setting.bound().map_or("-".to_owned(), |bound| bound.to_string())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{assert_survive_their_file, results_of};

    fn small() -> RangeStashPlan {
        let settings = vec![
            RangeStashSetting::published(1, 4),
            RangeStashSetting::published(8, 2),
            RangeStashSetting::volume(8, 10, &[0, 4], 4),
            RangeStashSetting::volume(8, 20, &[0, 4], 4),
        ];
        RangeStashPlan { settings, blocks: 200_000, runs: 2, seed: 5 }
    }

    #[test]
    fn heavy_loads_run_away_and_lighter_ones_do_not() {
        let study = results_of(small(), 2).unwrap();
        assert_eq!(study, results_of(small(), 1).unwrap());
        assert_survive_their_file::<RangeStashPlan>(&study);
        let peaks: Vec<_> = study.results.iter().map(|result| result.survival().peak()).collect();
        assert_eq!((peaks[0], study.results[0].ran_away()), (0, false));
        assert!(study.results[1].ran_away());
        assert!(peaks[2] < peaks[3], "{peaks:?}");
        assert_eq!(study.table().lines().count(), 6);
        assert!(results_of(RangeStashPlan { runs: 1, ..small() }, 2).is_err());
    }
}
