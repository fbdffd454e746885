//! Named workloads: sequences of requests that differ in every property that an oblivious RAM must
//! hide.

use std::fmt;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// One request to a block. Secret in a real system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The address of the block.
    pub address: u64,
    /// Whether to write the block instead of reading it.
    pub is_write: bool,
}

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Reads block 0 repeatedly. The block is never written, so it is nowhere in the tree.
    NeverWritten,
    /// Writes block 0 once, and then reads it repeatedly.
    SameAddress,
    /// Writes all blocks in order, then reads all in order, and so on.
    Scan,
    /// Reads or writes a uniformly random block, with equal probability.
    Uniform,
    /// Requests block `x` with a probability of about `1/(x+1)`, relative to that of block 0. One
    /// in four requests is a write.
    Zipf,
    /// Requests blocks 0 and 1 in turn. Every third request is a write.
    TwoAlternating,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 6] = [
        Self::NeverWritten,
        Self::SameAddress,
        Self::Scan,
        Self::Uniform,
        Self::Zipf,
        Self::TwoAlternating,
    ];

    /// Returns an endless sequence of requests to blocks below `capacity`. Equal seeds give equal
    /// requests.
    pub fn requests(self, capacity: u64, seed: u64) -> impl Iterator<Item = Request> {
        let mut coins = StdRng::seed_from_u64(seed);
        (0u64..).map(move |i| {
            let (address, is_write) = match self {
                Self::NeverWritten => (0, false),
                Self::SameAddress => (0, i == 0),
                Self::Scan => (i % capacity, (i / capacity).is_multiple_of(2)),
                Self::Uniform => (coins.random_range(0..capacity), coins.random()),
                Self::Zipf => (log_uniform(&mut coins, capacity), coins.random_range(0..4) == 0),
                Self::TwoAlternating => (i % 2 % capacity, i % 3 == 0),
            };
            Request { address, is_write }
        })
    }
}

/// Draws `x` with probability `log((x+2)/(x+1)) / log(capacity+1)`, which is close to Zipf's law.
fn log_uniform(coins: &mut StdRng, capacity: u64) -> u64 {
    let exponent: f64 = coins.random();
    let rank = ((capacity + 1) as f64).powf(exponent) as u64;
    rank.clamp(1, capacity) - 1
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeverWritten => "never written",
            Self::SameAddress => "same address",
            Self::Scan => "scan",
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::TwoAlternating => "two alternating",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_below_the_capacity_and_repeat_with_the_seed() {
        for workload in Workload::ALL {
            for capacity in [1, 2, 100] {
                let requests: Vec<_> = workload.requests(capacity, 7).take(1000).collect();
                assert!(requests.iter().all(|request| request.address < capacity));
                assert_eq!(requests, workload.requests(capacity, 7).take(1000).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn zipf_favours_low_addresses_and_reaches_all() {
        let mut counts = [0u32; 64];
        for request in Workload::Zipf.requests(64, 1).take(50_000) {
            counts[request.address as usize] += 1;
        }
        assert!(counts[0] > 5 * counts[9] && counts[9] > 3 * counts[63] && counts[63] > 50);
    }
}
