//! A stream in two halves, so that one thread can read what comes while another sends.

use std::io::{self, Read, Write};
use std::time::Duration;

/// What carries messages, both ways.
pub struct Link {
    /// What comes.
    pub reader: Box<dyn LinkReader>,
    /// What is sent.
    pub writer: Box<dyn LinkWriter>,
}

/// Of what comes.
pub trait LinkReader: Read + Send {
    /// From now on, all that is read together has to come within so long; or may take any time. Later reads fail with
    /// [`TimedOut`](io::ErrorKind::TimedOut) or [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    /// Those of the system.
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()>;
}

/// Of what is sent.
pub trait LinkWriter: Write + Send {
    /// Ends both halves. Whoever reads or writes meanwhile is told so.
    fn close(&mut self);
}

/// A moment, of a clock that no one sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32))
    }

    pub(crate) fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// None if it is over.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.checked_sub(Self::now().0).filter(|left| !left.is_zero())
    }
}
