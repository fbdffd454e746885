//! Sorting in place.

use crate::work::{array, words};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Size of the array in KiB; an entry has a key and a value of 8 bytes each
    #[arg(long, default_value_t = 32 << 10)]
    kib: usize,
    /// Times that the array is filled and sorted
    #[arg(long, default_value_t = 10)]
    rounds: u64,
}

/// Fills the array and sorts it with an MSD radix sort, one bit per pass. A pass reads every line
/// and writes most lines. Parts that fit the caches are not sorted further, since that would cause
/// no memory traffic.
pub(crate) fn run(args: &Args) -> u64 {
    let mut words = array(words(args.kib));
    let (entries, _) = words.as_chunks_mut();
    let mut last = 1u64;
    for _ in 0..args.rounds {
        for entry in &mut *entries {
            last = last.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            *entry = [last, 0];
        }
        sort(entries, 63);
    }
    entries[entries.len() / 2][0]
}

/// A key and a value.
type Entry = [u64; 2];

/// Entries that fit a last-level cache of 2 MiB.
const CACHED_ENTRIES: usize = 1 << 17;

fn sort(entries: &mut [Entry], bit: u32) {
    let middle = partition(entries, 1 << bit);
    let (zeros, ones) = entries.split_at_mut(middle);
    for half in [zeros, ones] {
        if half.len() > CACHED_ENTRIES && bit > 0 {
            sort(half, bit - 1);
        }
    }
}

/// Moves the entries whose keys lack `bit` to the front, and returns their number.
fn partition(entries: &mut [Entry], bit: u64) -> usize {
    let mut zeros = 0;
    let mut rest = entries.iter_mut();
    while let Some(low) = rest.next() {
        if low[0] & bit != 0 {
            let Some(high) = rest.rfind(|high| high[0] & bit == 0) else { break };
            std::mem::swap(low, high);
        }
        zeros += 1;
    }
    zeros
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::mix;

    #[test]
    fn keys_without_the_bit_come_first() {
        for count in 0..50 {
            let mut entries: Vec<_> = (0..count).map(|number| [mix(number), number]).collect();
            let mut expected = entries.clone();
            let middle = partition(&mut entries, 8);
            assert!(entries[..middle].iter().all(|[key, _]| key & 8 == 0));
            assert!(entries[middle..].iter().all(|[key, _]| key & 8 != 0));
            entries.sort_unstable();
            expected.sort_unstable();
            assert_eq!(entries, expected);
        }
    }
}
