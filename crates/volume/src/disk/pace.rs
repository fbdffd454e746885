//! When ticks come: by the clock, or by hand.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::requests::Message;
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
            clock.next = next_multiple(clock.elapsed(), clock.period);
        }
    }

    /// Waits for whatever comes first. Nobody left to ask is a close.
    pub(super) fn next(&self, queue: &Receiver<Message>) -> Event {
        let message = match self {
            Self::Clock(clock) => match clock.left() {
                Duration::ZERO => return Event::Tick(None),
                left => match queue.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => return Event::Tick(None),
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
        if let Self::Clock(clock) = self {
            thread::sleep(clock.left());
        }
        Event::Tick(None)
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
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a fixed rate is kept by a clock: this one")]
    pub(super) fn start(period: Duration) -> Self {
        Self { start: Instant::now(), period, next: period }
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
