//! Sorting in place.

use crate::work::{array, mix, words, work};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// KiB of the array.
    #[arg(long, default_value_t = 32 << 10)]
    kib: usize,
    /// Times that it is filled and sorted.
    #[arg(long, default_value_t = 10)]
    rounds: u64,
    /// Work for each word that is filled in.
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Fills the array and sorts it by one bit of its keys after the other, the highest first. A pass reads
/// and writes every line. What fits the caches is left as it is: it would ask memory for nothing.
pub(crate) fn run(args: &Args) -> u64 {
    let mut keys = array(words(args.kib));
    for round in 0..args.rounds {
        for (number, key) in (0..).zip(keys.iter_mut()) {
            *key = work(args.work, mix(number ^ round << 40));
        }
        sort(&mut keys, 63);
    }
    keys[keys.len() / 2]
}

/// Words that fit a last-level cache of 2 MiB.
const CACHED_WORDS: usize = 1 << 18;

fn sort(keys: &mut [u64], bit: u32) {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        if keys[low] >> bit & 1 == 0 {
            low += 1;
        } else {
            high -= 1;
            keys.swap(low, high);
        }
    }
    let (zeros, ones) = keys.split_at_mut(low);
    for part in [zeros, ones] {
        if part.len() > CACHED_WORDS && bit > 0 {
            sort(part, bit - 1);
        }
    }
}
