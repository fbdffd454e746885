//! The time limit and pauses for missing servers and failed links.

use std::thread;
use std::time::Duration;

use oblivio_wire::link::MonotonicTime;

/// The time between two attempts to reconnect to a missing server.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(3);

/// The time between two attempts to reconnect to a missing server while a caller waits for that
/// server.
pub(super) const RETRY_SOON: Duration = Duration::from_millis(250);

/// The pause before the client checks again whether a missing server has returned.
const MISSING_PAUSE: Duration = Duration::from_millis(50);

/// The pause after the first failed link in a row. It doubles after each further failure.
const LINKS_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The maximum pause after a failed link. It is short, because a server that restarts again and
/// again may be up only for a short time.
const LINKS_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The time limit for the retries of one operation.
pub(super) struct RetryPolicy {
    retry_for: Duration,
    since: MonotonicTime,
}

impl RetryPolicy {
    /// Starts the time limit of the first operation now.
    pub(super) fn new(retry_for: Duration) -> Self {
        Self { retry_for, since: MonotonicTime::now() }
    }

    /// Restarts the time limit, for the next operation.
    pub(super) fn begin(&mut self) {
        self.since = MonotonicTime::now();
    }

    fn left(&self) -> Option<Duration> {
        self.since.after(self.retry_for).left()
    }

    /// Whether the time limit has been reached.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_none()
    }

    /// Pauses before the next check whether a missing server has returned.
    pub(super) fn pause(&self) {
        thread::sleep(MISSING_PAUSE);
    }

    /// Backs off after the `failed`-th failure in a row. Returns whether to retry.
    pub(super) fn back_off(&self, failed: u32) -> bool {
        let pause = LINKS_PAUSE_MIN.saturating_mul(2_u32.saturating_pow(failed - 1));
        self.left().map(|left| thread::sleep(pause.min(LINKS_PAUSE_MAX).min(left))).is_some()
    }
}
