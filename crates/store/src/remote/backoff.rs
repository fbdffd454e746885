//! Pauses between attempts to reach a server.

use std::time::Duration;

use oblivio_wire::link::MonotonicTime;

/// The pause before the second attempt. The pause doubles before each further attempt.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The maximum pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The pauses between repeated attempts, and the deadline of the attempts.
pub(crate) struct Backoff {
    until: MonotonicTime,
    pause: Duration,
}

impl Backoff {
    /// Starts with a deadline after `time`.
    pub(crate) fn new(time: Duration) -> Self {
        Self { until: MonotonicTime::now().after(time), pause: PAUSE_MIN }
    }

    /// Sets the next pause to the minimum again. The deadline stays the same.
    pub(crate) fn restart(self) -> Self {
        Self { pause: PAUSE_MIN, ..self }
    }

    /// The time until the deadline; `None` after the deadline.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.until.left()
    }

    /// The pause before the next attempt; `None` after the deadline.
    pub(crate) fn next_pause(&mut self) -> Option<Duration> {
        let pause = self.pause.min(self.left()?);
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        Some(pause)
    }
}
