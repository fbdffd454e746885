//! The clocks that measure how long work of the command line takes.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Measures the time since it was started.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch at zero.
    #[expect(clippy::disallowed_methods, reason = "the command line reports how long work took")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since [`start`](Self::start).
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Processor time of the calling thread.
pub fn processor_time_of_thread() -> Duration {
    clock_time(ClockId::ThreadCPUTime)
}

/// Processor time of all threads of this process.
pub fn processor_time_of_process() -> Duration {
    clock_time(ClockId::ProcessCPUTime)
}

fn clock_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
