//! Time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// By a clock that nobody sets.
pub(super) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
