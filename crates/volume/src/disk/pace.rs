//! The source of ticks: a clock, or the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::requests::{Message, Queue};
use crate::device::Request;

/// Triggers the ticks of a disk that has no clock.
pub struct Ticks(pub(super) SyncSender<Message>);

impl Ticks {
    /// Makes the disk serve earlier requests and then make one tick. Returns when the tick is over.
    /// A closed disk makes no tick.
    pub fn tick(&self) {
        let (done, over) = mpsc::sync_channel(1);
        if self.0.send(Message::Tick(done)).is_ok() {
            // The disk drops the sender after the tick, or when it fails.
            let _ = over.recv();
        }
    }
}

/// The punctuality of ticks: how many were made and skipped, and the longest delay. Public: storage
/// sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    /// Number of ticks made.
    pub ticks: u64,
    /// Number of ticks skipped because the previous batch was not finished.
    pub left_out: u64,
    /// The longest delay of a tick.
    pub latest: Duration,
}

/// The counters behind a [`Punctuality`].
#[derive(Default)]
pub(super) struct PunctualityCounters {
    ticks: AtomicU64,
    left_out: AtomicU64,
    latest_nanos: AtomicU64,
}

impl PunctualityCounters {
    pub(super) fn read(&self) -> Punctuality {
        Punctuality {
            ticks: self.ticks.load(Relaxed),
            left_out: self.left_out.load(Relaxed),
            latest: Duration::from_nanos(self.latest_nanos.load(Relaxed)),
        }
    }
}

/// The source of ticks.
pub(super) enum Pace {
    Clock(Clock),
    Manual,
}

/// The next event for a worker.
pub(super) enum Event {
    Serve(Request),
    /// A tick. The sender is dropped when the tick is over.
    Tick(Option<SyncSender<()>>),
    Close,
}

impl Pace {
    /// Whether a tick is due. Always `false` without a clock: the caller's ticks are in the queue.
    pub(super) fn is_due(&self) -> bool {
        match self {
            Self::Clock(clock) => clock.left().is_zero(),
            Self::Manual => false,
        }
    }

    /// Records that a tick is over.
    pub(super) fn ticked(&mut self) {
        if let Self::Clock(clock) = self {
            clock.set_next();
        }
    }

    /// Waits for the next event: a tick or a message. A queue without senders closes the disk.
    pub(super) fn next(&self, queue: &Queue) -> Event {
        let message = match self {
            Self::Clock(clock) => match clock.left() {
                Duration::ZERO => return clock.tick(),
                left => match queue.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => return clock.tick(),
                    received => received.ok(),
                },
            },
            Self::Manual => queue.recv().ok(),
        };
        match message {
            Some(Message::Serve(request)) => Event::Serve(request),
            Some(Message::Tick(done)) => Event::Tick(Some(done)),
            Some(Message::Close) | None => Event::Close,
        }
    }

    /// Waits for the next tick, and for nothing else. Without a clock, does not wait.
    pub(super) fn next_tick(&self) -> Event {
        match self {
            Self::Clock(clock) => {
                thread::sleep(clock.left());
                clock.tick()
            }
            Self::Manual => Event::Tick(None),
        }
    }

    /// Whether the worker bounds the number of requests in flight, and leaves further ones in the
    /// queue. Without a clock, the caller bounds it.
    pub(super) fn bounds_requests(&self) -> bool {
        matches!(self, Self::Clock(_))
    }
}

/// A clock that ticks at the multiples of a period.
pub(super) struct Clock {
    start: Instant,
    period: Duration,
    /// The time of the next tick, measured from the start.
    next: Duration,
    counters: Arc<PunctualityCounters>,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a fixed rate needs a clock")]
    pub(super) fn start(period: Duration, counters: Arc<PunctualityCounters>) -> Self {
        Self { start: Instant::now(), period, next: period, counters }
    }

    /// Counts the tick that is due, and records its delay.
    fn tick(&self) -> Event {
        let late = self.elapsed().saturating_sub(self.next);
        self.counters.ticks.fetch_add(1, Relaxed);
        self.counters
            .latest_nanos
            .fetch_max(late.as_nanos().try_into().unwrap_or(u64::MAX), Relaxed);
        Event::Tick(None)
    }

    /// Sets the time of the next tick, and counts the skipped ticks.
    fn set_next(&mut self) {
        let next = next_multiple(self.elapsed(), self.period);
        let periods = next.saturating_sub(self.next).as_nanos() / self.period.as_nanos();
        self.counters.left_out.fetch_add((periods as u64).saturating_sub(1), Relaxed);
        self.next = next;
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn left(&self) -> Duration {
        self.next.saturating_sub(self.elapsed())
    }
}

/// The first multiple of `period` after `now`.
fn next_multiple(now: Duration, period: Duration) -> Duration {
    let nanos = (now.as_nanos() / period.as_nanos() + 1) * period.as_nanos();
    Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_was_missed_is_left_out() {
        for (now, tick) in [(0, 5), (4, 5), (5, 10), (6, 10), (24, 25), (25, 30)] {
            let [now, tick, period] = [now, tick, 5].map(Duration::from_millis);
            assert_eq!(next_multiple(now, period), tick);
        }
    }
}
