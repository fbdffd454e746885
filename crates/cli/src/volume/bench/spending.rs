//! Measures the time, by purpose, of the thread that serves all requests.

use std::io;
use std::mem;
use std::ops::Sub;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use oblivio_core::view::{Event, EventSink, Operation};
use oblivio_volume::state_dir::{StateDir, StateFile, StateSource};

use crate::clock::{self, Stopwatch};

/// The purpose for which the thread currently spends time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Computing: maps, stash, cipher, integrity.
    Client,
    /// Passing bytes to or from storage, or waiting for storage.
    Read,
    Write,
    Flush,
    /// Writing the log and snapshots of the client's directory, or waiting for them.
    Log,
}

/// Time that a thread spends, by purpose.
#[derive(Clone, Copy, Default)]
pub(super) struct TimeByPurpose {
    pub(super) read: Duration,
    pub(super) write: Duration,
    pub(super) flush: Duration,
    pub(super) log: Duration,
    /// Processor time of the client's own work, such as maps, stash and cipher. Excludes the time
    /// in the other fields.
    pub(super) client: Duration,
}

impl Sub for TimeByPurpose {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            read: self.read - before.read,
            write: self.write - before.write,
            flush: self.flush - before.flush,
            log: self.log - before.log,
            client: self.client - before.client,
        }
    }
}

impl TimeByPurpose {
    /// The rest of `elapsed`: waiting for requests or for a processor.
    pub(super) fn rest_of(&self, elapsed: Duration) -> Duration {
        let Self { read, write, flush, log, client } = *self;
        elapsed.saturating_sub(read + write + flush + log + client)
    }
}

/// Measures the time of the one thread that uses a store and a client's directory. Changes neither.
#[derive(Clone)]
pub(super) struct Meter(Arc<Mutex<Counting>>);

struct Counting {
    spent: TimeByPurpose,
    /// The purpose for which the thread has spent time since `wall` and `processor` were read.
    purpose: Purpose,
    wall: Stopwatch,
    /// The measured thread, and its processor time.
    processor: (ThreadId, Duration),
}

impl Meter {
    pub(super) fn start() -> Self {
        Self(Arc::new(Mutex::new(Counting {
            spent: TimeByPurpose::default(),
            purpose: Purpose::Client,
            wall: Stopwatch::start(),
            processor: processor_time(),
        })))
    }

    /// Time by purpose, up to the last change of purpose.
    pub(super) fn spent(&self) -> TimeByPurpose {
        self.counting().spent
    }

    /// Wraps the event sink `seen`. The returned sink forwards all events, and measures the time
    /// that the volume spends in storage, from the changes of operation that the store reports.
    /// Time spent in `seen` counts as client time.
    pub(super) fn on_store<K: EventSink>(&self, seen: K) -> impl EventSink + use<K> {
        Timed { it: seen, meter: self.clone() }
    }

    /// Wraps the client's directory of a volume, and measures the time spent in it.
    pub(super) fn on_dir(&self, dir: impl StateDir + 'static) -> Box<dyn StateDir> {
        Box::new(Timed { it: dir, meter: self.clone() })
    }

    fn counting(&self) -> MutexGuard<'_, Counting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the time since the last change for the current purpose. Then changes to `purpose`,
    /// and returns the previous purpose.
    fn switch_to(&self, purpose: Purpose) -> Purpose {
        let counting = &mut *self.counting();
        let elapsed = mem::replace(&mut counting.wall, Stopwatch::start()).elapsed();
        let (thread, used) = mem::replace(&mut counting.processor, processor_time());
        // A volume is created and used by different threads.
        let (now, used_now) = counting.processor;
        let computed = if thread == now { used_now - used } else { Duration::ZERO };
        let before = mem::replace(&mut counting.purpose, purpose);
        let spent = &mut counting.spent;
        match before {
            Purpose::Client => spent.client += computed,
            Purpose::Read => spent.read += elapsed,
            Purpose::Write => spent.write += elapsed,
            Purpose::Flush => spent.flush += elapsed,
            Purpose::Log => spent.log += elapsed,
        }
        before
    }

    fn during<T>(&self, purpose: Purpose, work: impl FnOnce() -> T) -> T {
        let before = self.switch_to(purpose);
        let done = work();
        self.switch_to(before);
        done
    }
}

fn processor_time() -> (ThreadId, Duration) {
    (thread::current().id(), clock::processor_time_of_thread())
}

/// A wrapper that measures the time spent in `it`.
struct Timed<T> {
    it: T,
    meter: Meter,
}

impl<K: EventSink> EventSink for Timed<K> {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.it.record(event, contents);
    }

    fn switch_to(&mut self, operation: Option<Operation>) {
        self.meter.switch_to(match operation {
            None => Purpose::Client,
            Some(Operation::Prefetch | Operation::Read) => Purpose::Read,
            Some(Operation::Write) => Purpose::Write,
            Some(Operation::Flush) => Purpose::Flush,
        });
    }
}

impl<D: StateDir> StateDir for Timed<D> {
    fn names(&self) -> io::Result<Vec<String>> {
        self.meter.during(Purpose::Log, || self.it.names())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        self.meter.during(Purpose::Log, || self.it.open(name))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.sync(name))
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        let it = self.meter.during(Purpose::Log, || self.it.create(name))?;
        Ok(Box::new(Timed { it, meter: self.meter.clone() }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.rename(from, to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.remove(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.sync_names())
    }
}

impl StateFile for Timed<Box<dyn StateFile>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.append(bytes))
    }

    fn expect_more(&mut self) {
        self.it.expect_more();
    }

    fn sync(&mut self) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.sync())
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.begin_sync())
    }

    fn is_sync_over(&mut self) -> bool {
        self.it.is_sync_over()
    }

    fn finish_sync(&mut self) -> io::Result<()> {
        self.meter.during(Purpose::Log, || self.it.finish_sync())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Duration = Duration::from_millis(10);

    fn compute() {
        let before = clock::processor_time_of_thread();
        while clock::processor_time_of_thread() - before < SOME {}
    }

    #[test]
    fn each_moment_counts_once_and_where_it_belongs() {
        let clock = Stopwatch::start();
        let meter = Meter::start();
        meter.during(Purpose::Read, || thread::sleep(SOME));
        meter.during(Purpose::Write, || {
            thread::sleep(SOME);
            meter.during(Purpose::Client, compute);
            meter.during(Purpose::Log, || thread::sleep(SOME));
        });
        meter.during(Purpose::Flush, || thread::sleep(SOME));
        let spent = meter.spent();
        for part in [spent.read, spent.write, spent.flush, spent.log, spent.client] {
            assert!(part >= SOME, "{part:?}");
        }
        let elapsed = clock.elapsed();
        let rest = spent.rest_of(elapsed);
        let TimeByPurpose { read, write, flush, log, client } = spent;
        assert_eq!(read + write + flush + log + client + rest, elapsed);
        assert_eq!((spent - spent).rest_of(elapsed), elapsed);
    }

    #[test]
    fn a_client_that_waits_spends_nothing() {
        let meter = Meter::start();
        thread::sleep(10 * SOME);
        meter.during(Purpose::Read, || ());
        assert!(meter.spent().client < 5 * SOME);
        thread::scope(|scope| {
            scope.spawn(|| meter.during(Purpose::Client, compute));
        });
        assert!(meter.spent().client >= SOME);
    }
}
