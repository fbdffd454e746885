//! The monotonic clock.

use std::time::Duration;

use oblivio_wire::link::Moment;

/// The current time.
pub(super) fn now() -> Duration {
    Moment::now().since_the_beginning()
}
