//! The monotonic clock.

use std::time::Duration;

use oblivio_wire::link::MonotonicTime;

/// The current time.
pub(super) fn now() -> Duration {
    MonotonicTime::now().since_the_beginning()
}
