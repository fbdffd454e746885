//! Random stores into a table.

use crate::work::{array, mix, words, work};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Size of the table in KiB
    #[arg(long, default_value_t = 64 << 10)]
    kib: usize,
    /// Number of entries to insert
    #[arg(long, default_value_t = 10_000_000)]
    steps: u64,
    /// Computation steps per entry
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Stores each key at a hashed index, and overwrites the old entry without reading it. A
/// transposition table that always replaces does the same.
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
