//! The measured settings, and the results.

use std::fmt;
use std::num::NonZeroUsize;

use oblivio_shares::tree::Preset;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::model::Model;
use crate::experiment::named_json;
use crate::{Experiment, Host, LabError, markdown, workers};

/// The order of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessOrder {
    /// Blocks in a fixed order. All blocks accessed between two evictions differ.
    InTurn,
    /// Uniformly random blocks.
    Uniform,
}

/// A tree, and the order of accesses to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareOverflowSetting {
    /// The number of accesses per eviction, the paper's *A*.
    pub accesses: u16,
    /// The height of the tree, the paper's *H*.
    pub height: u32,
    /// The number of blocks, in units of *A* · 2^(*H* − 1).
    pub fill: u32,
    /// The order of accesses.
    pub order: AccessOrder,
}

impl ShareOverflowSetting {
    fn blocks(&self) -> usize {
        (usize::from(self.accesses) << (self.height - 1)) * self.fill as usize
    }
}

impl fmt::Display for ShareOverflowSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.order == AccessOrder::InTurn { "in turn" } else { "uniform" };
        write!(
            f,
            "A {}, H {}, {} · A · 2^(H-1) blocks, {order}",
            self.accesses, self.height, self.fill
        )
    }
}

/// The parameters of the study, which determine the results exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareOverflowPlan {
    /// The trees to simulate, with the order of accesses.
    pub settings: Vec<ShareOverflowSetting>,
    /// Number of evictions of each tree that count, after its warm-up.
    pub evictions: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

impl ShareOverflowPlan {
    /// A plan for both readings of the lemma: with small values of *A*, for which overflows can be
    /// observed, and with the *A* of a preset.
    pub fn full() -> Self {
        let each = [4, 8, 16, 37].into_iter().flat_map(|accesses| {
            [
                (1, AccessOrder::InTurn),
                (1, AccessOrder::Uniform),
                (2, AccessOrder::InTurn),
                (2, AccessOrder::Uniform),
            ]
            .map(|(fill, order)| ShareOverflowSetting {
                accesses,
                height: 6,
                fill,
                order,
            })
        });
        Self { settings: each.collect(), evictions: 1_000_000, seed: 1 }
    }

    /// The total number of evictions, including those before counting begins.
    fn total_evictions(&self) -> u64 {
        self.settings.iter().map(|setting| self.evictions + warm_up(setting)).sum()
    }
}

/// The number of evictions before counting begins. They evict each path several times.
fn warm_up(setting: &ShareOverflowSetting) -> u64 {
    u64::from(setting.fill) << (setting.height + 2)
}

/// The result for one tree. For each kind of bucket, `histogram[n]` counts the evictions whose
/// fullest bucket held `n` blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverflowResult {
    /// The tree, with the order of accesses.
    pub setting: ShareOverflowSetting,
    /// Histogram of the fullest destination between root and leaves, during an eviction.
    pub destination: Vec<u64>,
    /// Histogram of the fullest sibling between root and leaves. Siblings stay unchanged after the
    /// eviction.
    pub sibling: Vec<u64>,
    /// Histogram of the fuller one of the two leaves.
    pub leaf: Vec<u64>,
}

impl OverflowResult {
    /// The larger of two fractions of all evictions: those that overflow a destination of `slots`
    /// slots, and those that overflow a leaf of `slots` slots.
    pub fn overflow(&self, slots: usize) -> f64 {
        survival(&self.destination, slots).max(survival(&self.leaf, slots))
    }
}

/// The fraction of evictions whose fullest bucket held more than `slots` blocks.
fn survival(histogram: &[u64], slots: usize) -> f64 {
    let all: u64 = histogram.iter().sum();
    histogram.iter().skip(slots + 1).sum::<u64>() as f64 / all as f64
}

/// The minimum number of slots per bucket with which at most a fraction `2^log2` of the evictions
/// overflow a bucket.
fn slots_for(histogram: &[u64], log2: f64) -> usize {
    (0..).find(|slots| survival(histogram, *slots) <= log2.exp2()).unwrap_or(0)
}

/// The result of the study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverflowStudy {
    /// The parameters of the study.
    pub plan: ShareOverflowPlan,
    /// The result for each tree of the plan.
    pub results: Vec<OverflowResult>,
}

impl Experiment for ShareOverflowPlan {
    const NAME: &'static str = "share-overflow";
    const RESULTS: &'static str = "share-overflow.json";
    const STEPS: &'static str = "evictions";
    type Record = ();
    type Results = OverflowStudy;

    fn run(
        self,
        _: &[()],
        threads: NonZeroUsize,
        host: &impl Host<()>,
    ) -> Result<OverflowStudy, LabError> {
        if self.evictions < 10_000 {
            let message = "a study needs at least 10,000 evictions: use more --evictions";
            return Err(LabError::Plan(message.to_owned()));
        }
        host.planned(self.total_evictions());
        let mut seeds = StdRng::seed_from_u64(self.seed);
        let tasks: Vec<_> =
            self.settings.iter().map(|setting| (setting, seeds.next_u64())).collect();
        let results = workers::run_all(&tasks, threads, |(setting, seed)| {
            Ok::<_, LabError>(measure(setting, self.evictions, *seed, &|done| host.made(done)))
        })?;
        Ok(OverflowStudy { plan: self, results })
    }

    fn to_json(study: &OverflowStudy) -> Result<String, LabError> {
        named_json::<Self>(study)
    }

    fn text(study: &OverflowStudy) -> String {
        study.table()
    }
}

fn measure(
    setting: &ShareOverflowSetting,
    evictions: u64,
    seed: u64,
    progress: &dyn Fn(u64),
) -> OverflowResult {
    const TOLD: u64 = 1 << 12;
    let mut coins = StdRng::seed_from_u64(seed);
    let blocks = setting.blocks();
    let mut model = Model::new(setting.height, blocks, StdRng::from_rng(&mut coins));
    let mut result = OverflowResult {
        setting: setting.clone(),
        destination: vec![],
        sibling: vec![],
        leaf: vec![],
    };
    let warm_up = warm_up(setting);
    let mut in_turn = (0..blocks).cycle();
    for eviction in 0..warm_up + evictions {
        for _ in 0..setting.accesses {
            let uniform = coins.random_range(0..blocks);
            let next = in_turn.next().unwrap_or_default();
            // Access all blocks in a fixed order, several times, before random accesses.
            let is_first_pass = eviction < warm_up / 2;
            model.access(if is_first_pass || setting.order == AccessOrder::InTurn {
                next
            } else {
                uniform
            });
        }
        let loads = model.evict();
        if eviction >= warm_up {
            count(&mut result.destination, loads.destination);
            count(&mut result.sibling, loads.sibling);
            count(&mut result.leaf, loads.leaf);
        }
        if (eviction + 1) % TOLD == 0 {
            progress(TOLD);
        }
    }
    progress((warm_up + evictions) % TOLD);
    result
}

fn count(histogram: &mut Vec<u64>, load: usize) {
    histogram.resize(histogram.len().max(load + 1), 0);
    histogram[load] += 1;
}

/// The minimum number of slots, at least `accesses`, for which `bound` is at most `log2`. `bound`
/// returns the base-2 logarithm of a bound on a probability.
fn slots_by(bound: fn(Preset) -> f64, accesses: u16, log2: f64) -> u16 {
    let is_enough = |slots: &u16| bound(Preset { slots: *slots, accesses }) <= log2;
    (accesses..=u16::MAX).find(is_enough).unwrap_or(u16::MAX)
}

/// The base-2 logarithm of a probability that is small, but large enough to be measured with the
/// number of evictions of a study.
const RARE_LOG2: f64 = -14.0;

const HEAD: &str = "\
| tree | evictions that overflow at Z = A: measured, Lemma 4.1 \
| most blocks: destination, sibling, leaf | Z for 2^-14: destination, sibling, leaf | Lemma 4.1 \
| with a mean of A |
|------|------------------------------------------------------\
|----------------------------------------|-----------------------------------------|----------:\
|-----------------:|
";

impl OverflowStudy {
    /// A Markdown table with a row per tree.
    pub fn table(&self) -> String {
        markdown::table(HEAD, self.results.iter().map(row))
    }
}

fn row(result: &OverflowResult) -> String {
    let OverflowResult { setting, destination, sibling, leaf } = result;
    let accesses = setting.accesses;
    let lemma = Preset { slots: accesses, accesses }.lemma_log2().exp2();
    let [most, rare]: [fn(&[u64]) -> usize; 2] =
        [|it| it.len().saturating_sub(1), |it| slots_for(it, RARE_LOG2)];
    let each =
        |of: fn(&[u64]) -> usize| format!("{}, {}, {}", of(destination), of(sibling), of(leaf));
    format!(
        "| {setting} | {:.4}, {lemma:.4} | {} | {} | {} | {} |",
        result.overflow(accesses.into()),
        each(most),
        each(rare),
        slots_by(Preset::lemma_log2, accesses, RARE_LOG2),
        slots_by(Preset::overflow_log2, accesses, RARE_LOG2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{assert_survive_their_file, results_of};

    fn small() -> ShareOverflowPlan {
        let settings = [1, 2].map(|fill| ShareOverflowSetting {
            accesses: 8,
            height: 4,
            fill,
            order: AccessOrder::InTurn,
        });
        ShareOverflowPlan { settings: settings.to_vec(), evictions: 10_000, seed: 3 }
    }

    #[test]
    fn fuller_trees_have_fuller_leaves_and_results_are_reproducible() {
        let study = results_of(small(), 2).unwrap();
        assert_eq!(study, results_of(small(), 1).unwrap());
        assert_survive_their_file::<ShareOverflowPlan>(&study);
        let [once, twice] = &study.results[..] else { panic!("two trees") };
        assert!(once.leaf.len() < twice.leaf.len());
        assert!(once.sibling.len() < once.destination.len());
        assert_eq!(once.destination.iter().sum::<u64>(), 10_000);
        assert_eq!((once.overflow(0), once.overflow(1000)), (1.0, 0.0));
        assert_eq!(study.table().lines().count(), 4);
        let few = ShareOverflowPlan { evictions: 10, ..small() };
        assert!(results_of(few, 1).is_err());
    }

    /// Lemma 4.1 holds for buckets at rest. During an eviction, a destination holds the blocks of
    /// two buckets.
    #[test]
    fn the_lemma_holds_for_siblings_and_leaves_but_not_destinations() {
        let accesses = 8;
        let setting =
            ShareOverflowSetting { accesses, height: 6, fill: 1, order: AccessOrder::InTurn };
        let plan = ShareOverflowPlan { settings: vec![setting], evictions: 100_000, seed: 4 };
        let study = results_of(plan, 1).unwrap();
        let OverflowResult { destination, sibling, leaf, .. } = &study.results[0];
        for slots in 8..20u16 {
            let preset = Preset { slots, accesses };
            let (lemma, bound) = (preset.lemma_log2().exp2(), preset.overflow_log2().exp2());
            // The counts are maxima over five buckets; the lemma is about one.
            let [rest, leaf, middle] =
                [sibling, leaf, destination].map(|it| survival(it, slots.into()));
            assert!(rest <= 5.0 * lemma && leaf <= 2.0 * lemma, "{slots}: {rest} {leaf} {lemma}");
            assert!(middle <= 5.0 * bound, "{slots}: {middle} {bound}");
            assert!(slots > 16 || middle > 3.0 * lemma, "{slots}: {middle} {lemma}");
        }
    }
}
