//! Workloads: the address sequences of experiments and synthetic traces.

use std::fmt;

use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

/// The addresses that a workload accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// All addresses in turn, repeatedly: the worst case for the stash (Path ORAM, CCS'13, section
    /// 7). Between two accesses to a block, every other block is mapped to a new leaf. So the
    /// number of blocks that wait for a slot near their new leaf is at its maximum.
    Scan,
    /// Uniformly random addresses.
    Uniform,
    /// Zipf's law: the probability of an address is inversely proportional to its rank.
    Zipf,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scan => "round-robin scan",
            Self::Uniform => "uniformly random",
            Self::Zipf => "Zipf",
        })
    }
}

/// The endless address sequence of a workload.
pub struct Addresses {
    capacity: u64,
    source: Source,
}

enum Source {
    Scan { next: u64 },
    Uniform(StdRng),
    Zipf(StdRng),
}

impl Addresses {
    /// Creates the address sequence of `workload`, with addresses from 0 to `capacity` - 1. A scan
    /// does not use `coins`.
    pub fn new(workload: Workload, capacity: u64, coins: StdRng) -> Self {
        let source = match workload {
            Workload::Scan => Source::Scan { next: 0 },
            Workload::Uniform => Source::Uniform(coins),
            Workload::Zipf => Source::Zipf(coins),
        };
        Self { capacity, source }
    }

    /// Creates the sequence of all addresses in turn.
    pub fn scan(capacity: u64) -> Self {
        Self { capacity, source: Source::Scan { next: 0 } }
    }

    /// Returns the next address of the sequence.
    #[inline]
    pub fn next_address(&mut self) -> u64 {
        match &mut self.source {
            Source::Scan { next } => {
                let address = *next;
                *next = if address + 1 == self.capacity { 0 } else { address + 1 };
                address
            }
            Source::Uniform(coins) => coins.random_range(0..self.capacity),
            Source::Zipf(coins) => {
                // The logarithm of the rank is uniform. Rounding may exceed the last rank by one.
                let rank = ((self.capacity + 1) as f64).powf(coins.random());
                (rank as u64 - 1).min(self.capacity - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const CAPACITY: u64 = 64;

    fn counts(workload: Workload) -> [u64; CAPACITY as usize] {
        let mut addresses = Addresses::new(workload, CAPACITY, StdRng::seed_from_u64(1));
        let mut counts = [0; CAPACITY as usize];
        (0..CAPACITY * 1000).for_each(|_| counts[addresses.next_address() as usize] += 1);
        counts
    }

    #[test]
    fn a_scan_asks_for_all_alike_and_chance_nearly_so() {
        assert_eq!(counts(Workload::Scan), [1000; CAPACITY as usize]);
        assert!(counts(Workload::Uniform).iter().all(|count| (850..1150).contains(count)));
    }

    #[test]
    fn zipf_asks_for_the_first_most_and_for_all_sometimes() {
        let counts = counts(Workload::Zipf);
        // Expected shares: log 2 / log 65 for the first address, and log (65/64) / log 65 for the
        // last.
        assert!((10_000..11_300).contains(&counts[0]), "{}", counts[0]);
        assert!((170..310).contains(&counts[63]), "{}", counts[63]);
    }
}
