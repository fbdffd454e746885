//! One direction of a link, shared by all connections.

use std::sync::Mutex;
use std::time::Duration;

use super::lock;

/// The maximum time by which the relay reads from senders ahead of the rate. A thread that wakes up
/// late, but within this time, leaves no gap on the link. A new connection waits behind existing
/// ones for at most this time, plus the time of a chunk from each.
const AHEAD: Duration = Duration::from_millis(20);

/// The time that sending a chunk takes, unless the bounds below limit the chunk's size. After a
/// chunk, another connection may send.
const TURN: Duration = Duration::from_millis(1);
const CHUNK_BYTES_MIN: usize = 1460;
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Queue space in addition to the bytes in flight.
const SPARE_BYTES: usize = 64 << 10;

/// Limits the rate of a direction, like a token bucket without bursts. Instead of tokens, it stores
/// the time when the last accepted byte leaves.
pub(super) struct Lane {
    bytes_per_second: f64,
    delay: Duration,
    is_free_from: Mutex<Duration>,
}

/// The schedule of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The time from which the relay may read from the sender again.
    pub(super) next_from: Duration,
    /// The time when the last byte of the chunk arrives at the receiver.
    pub(super) arrives: Duration,
}

impl Lane {
    pub(super) fn new(bytes_per_second: f64, delay: Duration) -> Self {
        Self { bytes_per_second, delay, is_free_from: Mutex::new(Duration::ZERO) }
    }

    /// The maximum number of bytes to read at once.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.bytes_within(TURN).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
    }

    /// The number of bytes in flight or waiting for the receiver at which a connection stops
    /// reading.
    pub(super) fn queue_bytes_max(&self) -> usize {
        self.bytes_within(self.delay + AHEAD) + SPARE_BYTES
    }

    /// Schedules `bytes` bytes that are available at `now`, after all earlier bytes. Zero bytes
    /// take no sending time, only the delay.
    pub(super) fn take(&self, now: Duration, bytes: usize) -> Passage {
        let mut is_free_from = lock(&self.is_free_from);
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        let left = now.max(*is_free_from) + takes;
        *is_free_from = left;
        Passage { next_from: left.saturating_sub(AHEAD), arrives: left + self.delay }
    }

    fn bytes_within(&self, time: Duration) -> usize {
        (self.bytes_per_second * time.as_secs_f64()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bytes_leave_at_the_rate_and_arrive_after_the_delay() {
        let lane = Lane::new(1e6, millis(50));
        let first = lane.take(millis(1000), 100_000);
        assert_eq!(first, Passage { next_from: millis(1080), arrives: millis(1150) });
        // Later bytes wait for earlier ones.
        assert_eq!(lane.take(millis(1001), 10_000).arrives, millis(1160));
        assert_eq!(lane.take(millis(1001), 0).arrives, millis(1160));
        // Unused rate is not saved up.
        assert_eq!(lane.take(millis(9000), 10_000).arrives, millis(9060));
    }

    #[test]
    fn chunks_and_queues_follow_from_the_rate_within_bounds() {
        let of = |megabits: f64| Lane::new(megabits * 125e3, millis(10));
        assert_eq!(of(1.0).chunk_bytes(), CHUNK_BYTES_MIN);
        assert_eq!(of(100.0).chunk_bytes(), 12_500);
        assert_eq!(of(1e4).chunk_bytes(), CHUNK_BYTES_MAX);
        assert_eq!(of(8.0).queue_bytes_max(), 30_000 + SPARE_BYTES);
    }
}
