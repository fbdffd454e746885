//! Pauses between attempts.

use std::time::Duration;

use oblivio_wire::link::MonotonicTime;
use rand::TryRng;
use rand::rngs::SysRng;

/// The longest pause before the second attempt. It doubles before each further attempt.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// The pauses between attempts at one request. The time limit starts with the first failure.
pub(super) struct Backoff {
    limit: Duration,
    until: Option<MonotonicTime>,
    pause: Duration,
}

impl Backoff {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, until: None, pause: PAUSE_MIN }
    }

    /// The pause before the next attempt: half of the current maximum, and a random part of the
    /// other half, so that clients that failed together do not return together. `None` after the
    /// time limit.
    pub(super) fn next_pause(&mut self) -> Option<Duration> {
        let limit = self.limit;
        let until = *self.until.get_or_insert_with(|| MonotonicTime::now().after(limit));
        let left = until.left()?;
        // Without random numbers the pause is only less well spread.
        let random = SysRng.try_next_u32().unwrap_or_default();
        let pause = self.pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0);
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        Some(pause.min(left))
    }
}
