//! Figs. 6 and 7 of rORAM on models of its media, and the seeks of rORAM.
//!
//! The paper's database of 2^22 blocks of 4 KiB takes 1.9 TiB with its ranges, so nothing is stored
//! here. Random choices and counts determine the buckets that an access reads and writes, and a
//! model of a medium gives the time. Requests are sequential, as in the paper. The requests of Fig.
//! 7 were recorded below an ext4 file system.

mod figures;
mod forms;
mod mix_figures;
mod parallel;
mod recordings;
mod results;
mod seek_figures;

pub use forms::Form;
pub use recordings::{FsRequest, Mix};
pub use results::{Cell, MixCell, Results, SeekCell};

use std::num::NonZeroUsize;

use figures::figures;
use oblivio_models::medium::{Medium, Tally};
use parallel::ParallelSeeks;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::experiment::named_json;
use crate::report::Figure;
use crate::{Experiment, Host, LabError};

/// The level of the leaves in the paper, for a tree with one leaf per block: 2^22 blocks.
pub const PAPER_LEVEL: u8 = 22;

/// The base-2 logarithm of the blocks in the paper's longest ranges (`ell`).
pub const PAPER_ELL: u8 = 14;

/// The leaf level of the smallest tree whose seeks are counted. Each further tree has two more
/// levels.
const SEEKS_FROM_LEVEL: u8 = 8;

/// The numbers of parts into which storage is divided, for the figure of parallel seeks.
const PARTS: [u8; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 24];

/// The parameters of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoramPlan {
    /// Base-2 logarithm of the number of blocks.
    pub level: u8,
    /// Base-2 logarithm of the blocks in the longest ranges.
    pub ell: u8,
    /// The maximum number of requests of each mix that are replayed.
    pub mix_requests_max: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Runs all ORAMs on all media: with ranges of 2^0 to 2^`ell` blocks, and with the mixes of
/// programs. Also counts the seeks of published rORAM.
impl Experiment for RoramPlan {
    const NAME: &'static str = "roram";
    const STEPS: &'static str = "ORAMs";
    type Record = ();
    type Results = Results;

    fn run(self, _: &[()], _: NonZeroUsize, host: &impl Host<()>) -> Result<Results, LabError> {
        let Self { level, ell, seed, .. } = self;
        if !(2..=30).contains(&level) || ell > level {
            return Err(LabError::Plan(format!(
                "ranges of 2^{ell} blocks exceed the array of 2^{level}: choose a smaller --ell"
            )));
        }
        host.planned(Form::ALL.len() as u64);
        let mut results = Results::new(level, ell, seed);
        for form in Form::ALL {
            for exponent in 0..=ell {
                let mut coins = StdRng::seed_from_u64(seed);
                let mut layout = form.layout(level, ell);
                let mut tallies = Medium::ALL.map(Tally::new);
                // A long range is as informative as many short ones.
                let queries = (512u64 >> exponent).max(2);
                for _ in 0..queries {
                    let first = coins.random_range(0..1u64 << level);
                    layout.query(first, 1 << exponent, &mut coins, &mut |request| {
                        tallies.iter_mut().for_each(|tally| tally.add(&request));
                    });
                }
                let blocks = (queries << exponent) as f64;
                let cells = tallies.iter().map(|tally| Cell::new(form, exponent, tally, blocks));
                results.cells.extend(cells);
            }
            for mix in Mix::ALL {
                results.mixes.extend(replay(form, mix, &self));
            }
            host.made(1);
        }
        for level in (SEEKS_FROM_LEVEL..=level).step_by(2) {
            results.seeks.extend([ell.min(level), level].map(|ell| seeks(level, ell, 1, seed)));
        }
        results.seeks.extend(PARTS[1..].iter().map(|parts| seeks(level, ell, *parts, seed)));
        Ok(results)
    }

    fn to_json(results: &Results) -> Result<String, LabError> {
        named_json::<Self>(results)
    }

    fn figures(results: &Results) -> Vec<Figure> {
        figures(results)
    }
}

/// Replays the requests of a file system on every medium. If the disk is smaller than the recorded
/// one, addresses wrap around.
fn replay(form: Form, mix: Mix, plan: &RoramPlan) -> [MixCell; Medium::ALL.len()] {
    let RoramPlan { level, ell, mix_requests_max, seed } = *plan;
    let mut coins = StdRng::seed_from_u64(seed);
    let mut layout = form.layout(level, ell);
    let mut tallies = Medium::ALL.map(Tally::new);
    let (mut requests, mut blocks) = (0, 0);
    for run in mix.requests().take(mix_requests_max) {
        layout.query(run.first % (1 << level), run.blocks, &mut coins, &mut |request| {
            tallies.iter_mut().for_each(|tally| tally.add(&request));
        });
        requests += 1;
        blocks += run.blocks;
    }
    tallies.map(|tally| {
        let Tally { medium, seconds, .. } = tally;
        MixCell { form, medium, mix, requests, blocks, seconds }
    })
}

/// Counts the mean sequential seeks of an access of published rORAM, with storage in `parts` parts.
fn seeks(level: u8, ell: u8, parts: u8, seed: u64) -> SeekCell {
    const ACCESSES: u32 = 50;
    let mut coins = StdRng::seed_from_u64(seed);
    let mut layout = Form::Roram.layout(level, ell);
    let mut seeks = ParallelSeeks::of_parts(parts.into());
    for _ in 0..ACCESSES {
        layout.query(0, 1, &mut coins, &mut |request| seeks.add(&request));
    }
    SeekCell { level, ell, parts, seeks: seeks.seeks() as f64 / f64::from(ACCESSES) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{assert_survive_their_file, results_of};

    fn run(level: u8, ell: u8, seed: u64) -> Results {
        results_of(RoramPlan { level, ell, mix_requests_max: 4, seed }, 1).unwrap()
    }

    #[test]
    fn a_range_costs_a_request_for_each_run_of_buckets() {
        // 15 trees of 23 levels, each read and written by an eviction, and one tree twice more for
        // two ranges. A run is one or two requests on a level, so there are a few more.
        let results = run(PAPER_LEVEL, PAPER_ELL, 1);
        let of = |form, exponent| results.cell(form, Medium::Disk, exponent).unwrap();
        for exponent in [0, 5, 10] {
            let cell = of(Form::Roram, exponent);
            let requests = cell.requests_per_block * f64::from(1u32 << exponent);
            assert!((782.0..=1000.0).contains(&requests), "2^{exponent}: {requests}");
        }
        // 46 buckets of the data, and 242 in eleven trees of the position map.
        assert_eq!(of(Form::PathRecursive, 0).requests_per_block, 288.0);
        assert_eq!(of(Form::PathFlat, 3).requests_per_block, 46.0);
    }

    #[test]
    fn results_survive_their_file_and_are_reproducible() {
        let results = run(8, 3, 2);
        assert_survive_their_file::<RoramPlan>(&results);
        assert_eq!(run(8, 3, 2), results);
        // Missing lengths of ranges are named as not measured.
        let texts = RoramPlan::text(&run(4, 2, 1));
        assert!(!texts.contains("inf") && texts.contains("not measured"), "{texts}");
    }

    /// Compares the seeks of an access with the paper. An eviction reads and writes a run of paths
    /// in each of 15 trees, and the access itself reads and writes two ranges in one tree: 34 runs
    /// of 23 levels, each with one or two seeks per level. Storage in several parts must need fewer
    /// sequential seeks.
    #[test]
    fn seeks_match_the_paper_and_fall_with_the_parts() {
        let seeks = |parts| seeks(PAPER_LEVEL, PAPER_ELL, parts, 1).seeks;
        assert!((782.0..=860.0).contains(&seeks(1)), "{}", seeks(1));
        let halves = seeks(2) / seeks(1);
        assert!((0.5..0.56).contains(&halves), "{halves}");
        // With a part for each level, every run takes one seek, or two if it wraps.
        assert!((34.0..=68.0).contains(&seeks(23)), "{}", seeks(23));
        assert_eq!(seeks(23), seeks(24));
    }

    #[test]
    fn long_requests_of_file_systems_win_and_short_ones_lose() {
        let plan = RoramPlan { level: 16, ell: 8, mix_requests_max: 30, seed: 1 };
        let results = results_of(plan, 1).unwrap();
        let factor =
            |mix, fast| results.mix_factor(Medium::Disk, mix, Form::PathRecursive, fast).unwrap();
        let [streams, files] = [Mix::SeqRead, Mix::FileServer];
        assert!(factor(streams, Form::Roram) > 1.5 * factor(files, Form::Roram));
        assert!(factor(streams, Form::Classes) > factor(streams, Form::Blocks));
        // A block of 1 MiB is read for any of its parts.
        assert!(factor(files, Form::Mebibytes) < factor(streams, Form::Mebibytes) / 4.0);
    }

    #[test]
    fn ranges_win_on_a_disk() {
        let results = run(18, 10, 1);
        let seconds = |form| results.cell(form, Medium::Disk, 10).unwrap().seconds_per_block;
        assert!(seconds(Form::Roram) < seconds(Form::PathRecursive) / 5.0);
        assert!(seconds(Form::Classes) < seconds(Form::Blocks) / 2.0);
    }
}
