//! The table of a study, for a terminal and for Markdown.

use super::{SetupResult, Study, TailFit};
use crate::markdown;

const HEAD: &str = "\
| scheme   |  L | blocks/leaf | slots used | seen max | bits/block (95 %)     \
| C for 2^-80 (95 %) | further out | paper C | holds |
|----------|---:|------------:|-----------:|---------:|-----------------------\
|--------------------|------------:|--------:|-------|
";

impl Study {
    /// A table with a row per setup.
    pub fn table(&self) -> String {
        markdown::table(HEAD, self.results.iter().map(row))
    }
}

fn row(result: &SetupResult) -> String {
    let setup = &result.setup;
    let (slope, bound) = match (result.fit(), result.ran_away()) {
        (_, true) => ("ran away".to_owned(), "none".to_owned()),
        (None, false) => ("too little of a tail".to_owned(), "?".to_owned()),
        (Some(fit), false) => {
            let TailFit { bits_per_block: slope, stash_blocks_max: bound, .. } = fit;
            (
                format!("{:.3} ({:.3} – {:.3})", slope.value, slope.low, slope.high),
                format!("{:.1} ({:.1} – {:.1})", bound.value, bound.low, bound.high),
            )
        }
    };
    let further_out = result
        .fit_further_out()
        .map_or("?".to_owned(), |fit| format!("{:.1}", fit.stash_blocks_max.value));
    format!(
        "| {:8} | {:2} | {:11.2} | {:8.1} % | {:8} | {slope:21} | {bound:18} | {further_out:>11} | \
         {:7} | {:5} |",
        setup.scheme,
        setup.leaf_level,
        setup.blocks_per_leaf(),
        100.0 * setup.slots_used(),
        result.survival().peak(),
        setup.scheme.stated_stash_blocks_max(),
        match result.holds_stated_bound() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        },
    )
}
