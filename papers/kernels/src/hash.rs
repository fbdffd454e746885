//! A table at places that keys give.

use crate::work::{array, mix, words, work};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// KiB of the table.
    #[arg(long, default_value_t = 64 << 10)]
    kib: usize,
    /// Entries to put in.
    #[arg(long, default_value_t = 10_000_000)]
    steps: u64,
    /// Work for each of them.
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// A new entry replaces an old one unseen, as in a transposition table that always replaces.
pub(crate) fn run(args: &Args) -> u64 {
    let mut table = array(words(args.kib));
    let places = table.len() as u64;
    let mut sum = 0u64;
    for key in 0..args.steps {
        table[(mix(key) % places) as usize] = key;
        sum = work(args.work, sum.wrapping_add(key));
    }
    sum ^ table[0]
}
