//! Stencil computation from one field to another.

use std::hint::black_box;

use crate::work::{array, words, work};

/// Words per tile. A tile stays in the first-level cache while it is used.
const TILE_WORDS: usize = 2048;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Size of the written field in KiB
    #[arg(long, default_value_t = 64 << 10)]
    kib: usize,
    /// Tiles written per tile read
    #[arg(long, default_value_t = 10)]
    reuse: usize,
    /// Times that the field is written
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Computation steps per word
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Computes each word of the large field from three neighbours in a tile of the small field.
pub(crate) fn run(args: &Args) -> u64 {
    let mut output = array(words(args.kib));
    let region = TILE_WORDS * args.reuse.max(1);
    let input = array(output.len().div_ceil(region) * TILE_WORDS);
    for _ in 0..args.rounds {
        let small = black_box(&input).chunks_exact(TILE_WORDS);
        for (tile, region) in small.zip(output.chunks_mut(region)) {
            for written in region.chunks_mut(TILE_WORDS - 2) {
                for (neighbours, word) in tile.windows(3).zip(written) {
                    let sum = neighbours.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
                    *word = work(args.work, sum);
                }
            }
        }
    }
    output[output.len() / 2]
}
