//! Pointer chasing.

use crate::work::{WORDS_PER_LINE, array, mix, work};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Lines of memory in the cycle
    #[arg(long, default_value_t = 1 << 19)]
    lines: usize,
    /// Number of pointers to follow
    #[arg(long, default_value_t = 10_000_000)]
    steps: u64,
    /// Computation steps per pointer
    #[arg(long, default_value_t = 0)]
    work: u32,
}

/// Follows a linked list through all lines in pseudorandom order. The order is a single cycle
/// (Sattolo's shuffle).
pub(crate) fn run(args: &Args) -> u64 {
    let mut order: Vec<usize> = (0..args.lines).collect();
    for last in (1..args.lines).rev() {
        order.swap(last, mix(last as u64) as usize % last);
    }
    let mut next = array(args.lines * WORDS_PER_LINE);
    for (line, then) in order.iter().enumerate() {
        next[line * WORDS_PER_LINE] = (then * WORDS_PER_LINE) as u64;
    }
    drop(order);
    let (mut place, mut sum) = (0, 0u64);
    for _ in 0..args.steps {
        place = next[place] as usize;
        sum = work(args.work, sum.wrapping_add(place as u64));
    }
    sum
}
