//! Sequential stores.

use std::hint::black_box;

use crate::work::{WORDS_PER_LINE, array, words, work};

/// Words stored to one array before storing continues in the next array: four lines.
const PIECE_WORDS: usize = 4 * WORDS_PER_LINE;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Arrays written in turn, one piece at a time
    #[arg(long, default_value_t = 1)]
    arrays: usize,
    /// Size of each array in KiB
    #[arg(long, default_value_t = 64 << 10)]
    kib: usize,
    /// Times that the arrays are written
    #[arg(long, default_value_t = 10)]
    rounds: u64,
    /// Computation steps per piece
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Stores to the first piece of each array, then to the second of each, and so on.
pub(crate) fn run(args: &Args) -> u64 {
    let mut arrays: Vec<_> = (0..args.arrays).map(|_| array(words(args.kib))).collect();
    let mut value = 0;
    for round in 0..args.rounds {
        let mut pieces: Vec<_> =
            arrays.iter_mut().map(|array| array.chunks_exact_mut(PIECE_WORDS)).collect();
        for _ in 0..words(args.kib) / PIECE_WORDS {
            for piece in pieces.iter_mut().filter_map(Iterator::next) {
                value = work(args.work, value ^ round);
                piece.fill(value);
            }
        }
        black_box(&mut arrays);
    }
    value
}
