//! Fig. 6 of rORAM on models of its media: what a block of a range takes, by the length of the range.
//!
//! The paper's database of 2^22 blocks of 4 KiB takes 1.9 TiB as its ranges need them. So nothing is stored here: which
//! buckets an access reads and writes follows from coins and counts, and a model of a medium says how long that takes. Requests are
//! made one after the other, as in the paper.

mod figures;
mod forms;
mod media;
mod results;
mod volume;

pub use figures::figures;
pub use forms::Form;
pub use media::{Medium, Request, Tally};
pub use results::{Cell, Results};
pub use volume::VolumeModel;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How the command line calls this experiment.
pub const NAME: &str = "roram";

/// The level of the leaves of a tree with one leaf a block, in the paper: 2^22 blocks.
pub const PAPER_LEVEL: u8 = 22;

/// The exponent of the longest ranges of the paper (`ell`).
pub const PAPER_ELL: u8 = 14;

/// Runs all forms on all media, with ranges of 2^0 to 2^`ell` of 2^`level` blocks. `seed` is where all coins come from.
///
/// # Panics
/// When `level` is not 2 to 30 or `ell` is above it.
pub fn run(level: u8, ell: u8, seed: u64) -> Results {
    assert!((2..=30).contains(&level) && ell <= level, "ranges of a tree that can be");
    let mut cells = Vec::new();
    for form in Form::ALL {
        for exponent in 0..=ell {
            let mut coins = StdRng::seed_from_u64(seed);
            let mut layout = form.layout(level, ell);
            let mut tallies = Medium::ALL.map(Tally::new);
            // Of long ranges one says as much as many of short ones.
            let queries = (512u64 >> exponent).max(2);
            for _ in 0..queries {
                let first = coins.random_range(0..1u64 << level);
                layout.query(first, 1 << exponent, &mut coins, &mut |request| {
                    tallies.iter_mut().for_each(|tally| tally.add(&request));
                });
            }
            let blocks = (queries << exponent) as f64;
            cells.extend(tallies.iter().map(|tally| Cell::new(form, exponent, tally, blocks)));
        }
    }
    Results::new(level, ell, seed, cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::section;

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
        let file = results.to_json().unwrap();
        assert_eq!(crate::experiment_of(&file).unwrap(), NAME);
        let texts = |results| figures(results).iter().map(section).collect::<Vec<_>>();
        assert_eq!(texts(&Results::from_json(&file).unwrap()), texts(&results));
        assert_eq!(run(8, 3, 2), results);
        assert!(Results::from_json("{}").is_err());
    }

    #[test]
    fn ranges_win_on_a_disk() {
        let results = run(18, 10, 1);
        let seconds = |form| results.cell(form, Medium::Disk, 10).unwrap().seconds_per_block;
        assert!(seconds(Form::Roram) < seconds(Form::PathRecursive) / 5.0);
        assert!(seconds(Form::Classes) < seconds(Form::Blocks) / 2.0);
    }
}
