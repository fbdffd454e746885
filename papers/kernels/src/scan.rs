//! Sequential reads with few writes.

use std::hint::black_box;

use crate::work::{array, words, work};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Size of the array in KiB
    #[arg(long, default_value_t = 64 << 10)]
    kib: usize,
    /// Words read per word written; 0 writes none
    #[arg(long, default_value_t = 0)]
    per_result: usize,
    /// Times that the array is read
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Computation steps per word
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Reads all words `rounds` times. After every `per_result` words, and after the last word of a
/// round, stores the sum so far. Stores nothing if `per_result` is 0.
pub(crate) fn run(args: &Args) -> u64 {
    let input = array(words(args.kib));
    let per_result = if args.per_result == 0 { input.len() } else { args.per_result };
    let mut results = array(if args.per_result == 0 { 0 } else { input.len() / per_result + 1 });
    let mut sum = 0u64;
    for _ in 0..args.rounds {
        for (number, group) in black_box(&input).chunks(per_result).enumerate() {
            for word in group {
                sum = work(args.work, sum.wrapping_add(*word));
            }
            if let Some(result) = results.get_mut(number) {
                *result = sum;
            }
        }
    }
    sum
}
