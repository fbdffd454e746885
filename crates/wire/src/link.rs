//! A stream in two halves, so that one thread can read while another thread sends.

use std::io::{self, Read, Write};
use std::time::Duration;

/// A connection that carries messages both ways.
pub struct Link {
    /// The receiving half of the link.
    pub reader: Box<dyn LinkReader>,
    /// The sending half of the link.
    pub writer: Box<dyn LinkWriter>,
}

/// The receiving half of a [`Link`].
pub trait LinkReader: Read + Send {
    /// Sets one deadline for all later reads together, `within` from now, or removes the deadline
    /// if `within` is `None`. Reads after the deadline fail with
    /// [`TimedOut`](io::ErrorKind::TimedOut) or [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    /// I/O errors of the system.
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()>;

    /// Ends both halves at once, even while a thread is blocked in the other half because the peer
    /// does not read.
    fn close(&mut self);
}

/// The sending half of a [`Link`].
pub trait LinkWriter: Write + Send {
    /// Ends both halves, and informs the peer if that is possible without waiting.
    fn close(&mut self);
}

/// A point in time of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonotonicTime(Duration);

impl MonotonicTime {
    /// The current time of the monotonic clock.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32))
    }

    /// The time since the clock's epoch, for code that stores a deadline as an integer.
    pub fn since_the_beginning(self) -> Duration {
        self.0
    }

    /// The point in time that is `time` later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// The time left until this point; `None` if it has passed.
    pub fn left(self) -> Option<Duration> {
        self.0.checked_sub(Self::now().0).filter(|left| !left.is_zero())
    }
}
