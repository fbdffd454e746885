//! Time.

use std::time::Duration;

use oblivio_wire::link::Moment;

/// By a clock that nobody sets.
pub(super) fn now() -> Duration {
    Moment::now().since_the_beginning()
}
