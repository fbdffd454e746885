//! When ticks come: by the clock, or by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::requests::{Message, Queue};
use crate::device::Request;

/// Makes the ticks of a disk that has no clock.
pub struct Ticks(pub(super) SyncSender<Message>);

impl Ticks {
    /// Lets the disk serve what was asked before, and makes one tick. Returns when it is over. A disk
    /// that is closed makes none.
    pub fn tick(&self) {
        let (done, over) = mpsc::sync_channel(1);
        if self.0.send(Message::Tick(done)).is_ok() {
            // A disk that fails answers nobody.
            let _ = over.recv();
        }
    }
}

/// How well a schedule was kept. Public: storage sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    /// Ticks that were made.
    pub ticks: u64,
    /// Ticks that were left out, because the batch before was not ready.
    pub left_out: u64,
    /// How late the latest tick was begun.
    pub latest: Duration,
}

/// The same, while it goes on.
#[derive(Default)]
pub(super) struct Tally {
    ticks: AtomicU64,
    left_out: AtomicU64,
    latest_nanos: AtomicU64,
}

impl Tally {
    pub(super) fn read(&self) -> Punctuality {
        Punctuality {
            ticks: self.ticks.load(Relaxed),
            left_out: self.left_out.load(Relaxed),
            latest: Duration::from_nanos(self.latest_nanos.load(Relaxed)),
        }
    }
}

/// Where ticks come from.
pub(super) enum Pace {
    Clock(Clock),
    ByHand,
}

/// What a worker waits for.
pub(super) enum Event {
    Serve(Request),
    /// With whom to tell that it is over.
    Tick(Option<SyncSender<()>>),
    Close,
}

impl Pace {
    /// Whether it is time for a tick. By hand, a tick comes when nothing else does.
    pub(super) fn is_due(&self) -> bool {
        match self {
            Self::Clock(clock) => clock.left().is_zero(),
            Self::ByHand => false,
        }
    }

    /// A tick is over.
    pub(super) fn ticked(&mut self) {
        if let Self::Clock(clock) = self {
            clock.set_next();
        }
    }

    /// Waits for whatever comes first. Nobody left to ask is a close.
    pub(super) fn next(&self, queue: &Queue) -> Event {
        let message = match self {
            Self::Clock(clock) => match clock.left() {
                Duration::ZERO => return clock.tick(),
                left => match queue.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => return clock.tick(),
                    received => received.ok(),
                },
            },
            Self::ByHand => queue.recv().ok(),
        };
        match message {
            Some(Message::Serve(request)) => Event::Serve(request),
            Some(Message::Tick(done)) => Event::Tick(Some(done)),
            Some(Message::Close) | None => Event::Close,
        }
    }

    /// Waits for the next tick, and for nothing else. By hand, it is there.
    pub(super) fn next_tick(&self) -> Event {
        match self {
            Self::Clock(clock) => {
                thread::sleep(clock.left());
                clock.tick()
            }
            Self::ByHand => Event::Tick(None),
        }
    }

    /// Whether requests wait outside while there are enough of them inside. Whoever makes ticks by
    /// hand sees to that.
    pub(super) fn bounds_requests(&self) -> bool {
        matches!(self, Self::Clock(_))
    }
}

/// Ticks at the multiples of a period.
pub(super) struct Clock {
    start: Instant,
    period: Duration,
    /// When the next tick is, from the start.
    next: Duration,
    tally: Arc<Tally>,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a fixed rate is kept by a clock: this one")]
    pub(super) fn start(period: Duration, tally: Arc<Tally>) -> Self {
        Self { start: Instant::now(), period, next: period, tally }
    }

    /// The tick that is due.
    fn tick(&self) -> Event {
        let late = self.elapsed().saturating_sub(self.next);
        self.tally.ticks.fetch_add(1, Relaxed);
        self.tally.latest_nanos.fetch_max(late.as_nanos().try_into().unwrap_or(u64::MAX), Relaxed);
        Event::Tick(None)
    }

    /// The tick is over.
    fn set_next(&mut self) {
        let next = next_multiple(self.elapsed(), self.period);
        let periods = next.saturating_sub(self.next).as_nanos() / self.period.as_nanos();
        self.tally.left_out.fetch_add((periods as u64).saturating_sub(1), Relaxed);
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
