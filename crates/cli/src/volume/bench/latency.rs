//! A histogram of latencies, of bounded size and exact to 3 %.

use std::time::Duration;

/// Binary logarithm of the number of buckets per power of two of nanoseconds.
const FINENESS: u32 = 5;

/// Number of buckets, enough for every `u64`.
const BUCKETS: usize = (64 - FINENESS as usize + 1) << FINENESS;

/// A histogram of the latencies of any number of requests.
pub(super) struct Latencies {
    /// Number of latencies in each bucket.
    counts: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Latencies {
    pub(super) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, max: Duration::ZERO }
    }

    pub(super) fn add(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(latency);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn max(&self) -> Duration {
        self.max
    }

    /// The latency that `percent` per cent of the answers did not exceed, rounded up to the end of
    /// a bucket.
    pub(super) fn percentile(&self, percent: f64) -> Duration {
        let wanted = (self.count as f64 * percent / 100.0).ceil() as u64;
        let mut so_far = 0;
        let found = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= wanted.max(1)
        });
        found.map_or(self.max, |bucket| Duration::from_nanos(last_of(bucket)).min(self.max))
    }
}

/// The bucket of a latency. Small numbers have a bucket each; larger ones share a bucket with all
/// numbers of the same leading bits.
fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(FINENESS + 1);
    ((shift as usize) << FINENESS) + (nanos >> shift) as usize
}

/// The largest latency in a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = ((bucket >> FINENESS) as u32).saturating_sub(1);
    let leading = (bucket - ((shift as usize) << FINENESS)) as u64;
    // In this order, the end of the last bucket does not overflow.
    (leading << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        for bucket_number in 0..BUCKETS {
            let last = last_of(bucket_number);
            assert_eq!(bucket(last), bucket_number);
            if let Some(next) = last.checked_add(1) {
                assert_eq!(bucket(next), bucket_number + 1);
            }
        }
        for nanos in [0, 1, 63, 64, 1000, 123_456_789, u64::MAX] {
            let error = last_of(bucket(nanos)) - nanos;
            assert!(error as f64 <= 0.032 * nanos as f64, "{nanos}: {error}");
        }
    }

    #[test]
    fn percentiles_are_as_in_a_sorted_list() {
        let mut latencies = Latencies::new();
        (1..=1000).rev().for_each(|micros| latencies.add(Duration::from_micros(micros)));
        for (percent, micros) in [(50.0, 500.0), (95.0, 950.0), (99.0, 990.0), (100.0, 1000.0)] {
            let found = latencies.percentile(percent).as_nanos() as f64 / 1000.0;
            assert!((micros..=micros * 1.032).contains(&found), "p{percent} is {found}");
        }
        assert_eq!((latencies.count(), latencies.max()), (1000, Duration::from_millis(1)));
        assert_eq!(Latencies::new().percentile(50.0), Duration::ZERO);
    }
}
