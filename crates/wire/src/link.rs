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

    /// Ends both halves at once, also while somebody is stuck in the other, because what is sent is not taken.
    fn close(&mut self);
}

/// Of what is sent.
pub trait LinkWriter: Write + Send {
    /// Ends both halves. Whoever reads meanwhile is told so. It waits for nobody.
    fn close(&mut self);
}

/// A moment, of a clock that no one sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// This one.
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32))
    }

    /// How long it is since the clock began. For bounds that are shared as numbers.
    pub fn since_the_beginning(self) -> Duration {
        self.0
    }

    /// That which comes so much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// How long it is until then; none if it is over.
    pub fn left(self) -> Option<Duration> {
        self.0.checked_sub(Self::now().0).filter(|left| !left.is_zero())
    }
}
