//! Pauses between attempts to reach a server.

use std::time::Duration;

use oblivio_wire::link::Moment;

/// Before the second attempt, and twice as long before each one after it.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(50);

/// See [`PAUSE_MIN`].
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Attempts until a time.
pub(super) struct Backoff {
    until: Moment,
    pause: Duration,
}

impl Backoff {
    /// For this long from now.
    pub(super) fn new(time: Duration) -> Self {
        Self { until: Moment::now().after(time), pause: PAUSE_MIN }
    }

    /// Begins with the shortest pause again.
    pub(super) fn restart(self) -> Self {
        Self { pause: PAUSE_MIN, ..self }
    }

    /// The time that is left; none if it is over.
    pub(super) fn left(&self) -> Option<Duration> {
        self.until.left()
    }

    /// How long to wait before the next attempt; none if there is to be no other.
    pub(super) fn next_pause(&mut self) -> Option<Duration> {
        let pause = self.pause.min(self.left()?);
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        Some(pause)
    }
}
