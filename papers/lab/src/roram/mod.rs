//! Figs. 6 and 7 of rORAM on models of its media, and its seeks.
//!
//! The paper's database of 2^22 blocks of 4 KiB takes 1.9 TiB as its ranges need them. So nothing is stored here: which
//! buckets an access reads and writes follows from coins and counts, and a model of a medium says how long that takes. Requests are
//! made one after the other, as in the paper. What programs ask for in Fig. 7 was recorded below an ext4.

mod figures;
mod forms;
mod mix_figures;
mod parallel;
mod recordings;
mod results;
mod seek_figures;

pub use forms::Form;
pub use recordings::{Asked, Mix};
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

/// The level of the leaves of a tree with one leaf a block, in the paper: 2^22 blocks.
pub const PAPER_LEVEL: u8 = 22;

/// The exponent of the longest ranges of the paper (`ell`).
pub const PAPER_ELL: u8 = 14;

/// From this level on, seeks are counted.
const SEEKS_FROM_LEVEL: u8 = 8;

/// In so many parts storage is for figures of parallel seeks.
const PARTS: [u8; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 24];

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// There are two to this number of blocks.
    pub level: u8,
    /// The longest ranges have two to this number of blocks.
    pub ell: u8,
    /// As many of the first requests of each mix of programs are replayed.
    pub mix_requests_max: usize,
    /// Where all coins come from.
    pub seed: u64,
}

/// Runs all forms on all media: with ranges of 2^0 to 2^`ell` blocks, and with the mixes of
/// programs.
impl Experiment for Plan {
    const NAME: &'static str = "roram";
    const STEPS: &'static str = "ORAMs";
    type Record = ();
    type Results = Results;

    fn run(self, _: &[()], _: NonZeroUsize, host: &impl Host<()>) -> Result<Results, LabError> {
        let Self { level, ell, seed, .. } = self;
        if !(2..=30).contains(&level) || ell > level {
            return Err(LabError::Plan(format!(
                "ranges of 2^{ell} blocks are longer than 2^{level} blocks: choose a smaller --ell"
            )));
        }
        host.planned(Form::ALL.len() as u64);
        let mut results = Results::new(level, ell, seed);
        for form in Form::ALL {
            for exponent in 0..=ell {
                let mut coins = StdRng::seed_from_u64(seed);
                let mut layout = form.layout(level, ell);
                let mut tallies = Medium::ALL.map(Tally::new);
                // One long range says as much as many short ones.
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

/// What a file system asked for, on every medium. A disk that is smaller than that which was recorded is asked for what lies behind
/// its end from its beginning on.
fn replay(form: Form, mix: Mix, plan: &Plan) -> [MixCell; Medium::ALL.len()] {
    let Plan { level, ell, mix_requests_max, seed } = *plan;
    let mut coins = StdRng::seed_from_u64(seed);
    let mut layout = form.layout(level, ell);
    let mut tallies = Medium::ALL.map(Tally::new);
    let (mut requests, mut blocks) = (0, 0);
    for asked in mix.asked().take(mix_requests_max) {
        layout.query(asked.first % (1 << level), asked.blocks, &mut coins, &mut |request| {
            tallies.iter_mut().for_each(|tally| tally.add(&request));
        });
        requests += 1;
        blocks += asked.blocks;
    }
    tallies.map(|tally| {
        let Tally { medium, seconds, .. } = tally;
        MixCell { form, medium, mix, requests, blocks, seconds }
    })
}

/// Seeks of an access of rORAM to blocks, as published.
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
        results_of(Plan { level, ell, mix_requests_max: 4, seed }, 1).unwrap()
    }

    #[test]
    fn a_range_costs_as_many_requests_as_its_tree_has_stretches() {
        // 15 trees of 23 levels, each read and written by an eviction, and one twice more for two ranges. A run is one stretch
        // of a level or two, so a request more here and there.
        let results = run(PAPER_LEVEL, PAPER_ELL, 1);
        let of = |form, exponent| results.cell(form, Medium::Disk, exponent).unwrap();
        for exponent in [0, 5, 10] {
            let cell = of(Form::Roram, exponent);
            let requests = cell.requests_per_block * f64::from(1u32 << exponent);
            assert!((782.0..=1000.0).contains(&requests), "2^{exponent}: {requests}");
        }
        // 46 buckets of the data, and 242 of eleven levels of the position map.
        assert_eq!(of(Form::PathRecursive, 0).requests_per_block, 288.0);
        assert_eq!(of(Form::PathFlat, 3).requests_per_block, 46.0);
    }

    #[test]
    fn results_survive_their_file_and_are_the_same_again() {
        let results = run(8, 3, 2);
        assert_survive_their_file::<Plan>(&results);
        assert_eq!(run(8, 3, 2), results);
        // Nothing is said of ranges that were not there.
        let texts = Plan::text(&run(4, 2, 1));
        assert!(!texts.contains("inf") && texts.contains("not measured"), "{texts}");
    }

    /// Of 15 trees, each is read and written by an eviction, and that of the range twice more: 34 runs of 23 levels, each a stretch or
    /// two.
    #[test]
    fn seeks_are_those_of_the_paper_and_fall_with_the_parts() {
        let seeks = |parts| seeks(PAPER_LEVEL, PAPER_ELL, parts, 1).seeks;
        assert!((782.0..=860.0).contains(&seeks(1)), "{}", seeks(1));
        let halves = seeks(2) / seeks(1);
        assert!((0.5..0.56).contains(&halves), "{halves}");
        // With a part for each level, every run takes a seek, or two where it wraps.
        assert!((34.0..=68.0).contains(&seeks(23)), "{}", seeks(23));
        assert_eq!(seeks(23), seeks(24));
    }

    #[test]
    fn long_requests_of_file_systems_win_and_short_ones_lose() {
        let plan = Plan { level: 16, ell: 8, mix_requests_max: 30, seed: 1 };
        let results = results_of(plan, 1).unwrap();
        let factor =
            |mix, fast| results.mix_factor(Medium::Disk, mix, Form::PathRecursive, fast).unwrap();
        let [streams, files] = [Mix::SeqRead, Mix::FileServer];
        assert!(factor(streams, Form::Roram) > 1.5 * factor(files, Form::Roram));
        assert!(factor(streams, Form::Classes) > factor(streams, Form::Blocks));
        // A block of 1 MiB is read for any of its blocks.
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
