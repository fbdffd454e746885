//! A field from another.

use std::hint::black_box;

use crate::work::{array, words, work};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// KiB of the field that is read, again and again.
    #[arg(long, default_value_t = 512)]
    input_kib: usize,
    /// KiB of the field that is written.
    #[arg(long, default_value_t = 64 << 10)]
    output_kib: usize,
    /// Times that it is written.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Work for each word.
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Each word of the large field comes from three neighbours in the small one.
pub(crate) fn run(args: &Args) -> u64 {
    let input = array(words(args.input_kib));
    let mut output = array(words(args.output_kib));
    for _ in 0..args.rounds {
        for tile in output.chunks_mut(input.len() - 2) {
            for (neighbours, word) in black_box(&input).windows(3).zip(tile) {
                let sum = neighbours.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
                *word = work(args.work, sum);
            }
        }
    }
    output[output.len() / 2]
}
