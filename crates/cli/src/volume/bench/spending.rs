//! Measures where the thread that all requests pass spends its time.

use std::io;
use std::mem;
use std::ops::Sub;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use oblivio_core::view::{Event, EventSink, Operation};
use oblivio_volume::state_dir::{StateDir, StateFile, StateSource};

use crate::clock::{self, Stopwatch};

/// What the thread does at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Computing: maps, stash, cipher, integrity.
    Client,
    /// Passing bytes to or from storage, or waiting for storage.
    Read,
    Write,
    Flush,
    /// Writing the log and snapshots of the client's directory, or waiting for them.
    Log,
}

/// Time by purpose.
#[derive(Clone, Copy, Default)]
pub(super) struct Spending {
    pub(super) read: Duration,
    pub(super) write: Duration,
    pub(super) flush: Duration,
    pub(super) log: Duration,
    /// Processor time outside of all the others.
    pub(super) client: Duration,
}

impl Sub for Spending {
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

impl Spending {
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
    spent: Spending,
    /// What the thread is doing since `wall` and `processor` were read.
    doing: Doing,
    wall: Stopwatch,
    /// The measured thread, and its processor time.
    processor: (ThreadId, Duration),
}

impl Meter {
    pub(super) fn start() -> Self {
        Self(Arc::new(Mutex::new(Counting {
            spent: Spending::default(),
            doing: Doing::Client,
            wall: Stopwatch::start(),
            processor: processor_time(),
        })))
    }

    /// Time by purpose, up to the last change of purpose.
    pub(super) fn spent(&self) -> Spending {
        self.counting().spent
    }

    /// Measures the storage of a volume, and forwards events to `seen`. Time spent in sinks counts
    /// as client time.
    pub(super) fn on_store<K: EventSink>(&self, seen: K) -> impl EventSink + use<K> {
        Metered { it: seen, meter: self.clone() }
    }

    /// Measures the client's directory of a volume.
    pub(super) fn on_dir(&self, dir: impl StateDir + 'static) -> Box<dyn StateDir> {
        Box::new(Metered { it: dir, meter: self.clone() })
    }

    fn counting(&self) -> MutexGuard<'_, Counting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins `doing`, and returns what was done before.
    fn turn_to(&self, doing: Doing) -> Doing {
        let counting = &mut *self.counting();
        let elapsed = mem::replace(&mut counting.wall, Stopwatch::start()).elapsed();
        let (thread, used) = mem::replace(&mut counting.processor, processor_time());
        // A volume is created and used by different threads.
        let (now, used_now) = counting.processor;
        let computed = if thread == now { used_now - used } else { Duration::ZERO };
        let before = mem::replace(&mut counting.doing, doing);
        let spent = &mut counting.spent;
        match before {
            Doing::Client => spent.client += computed,
            Doing::Read => spent.read += elapsed,
            Doing::Write => spent.write += elapsed,
            Doing::Flush => spent.flush += elapsed,
            Doing::Log => spent.log += elapsed,
        }
        before
    }

    fn during<T>(&self, doing: Doing, work: impl FnOnce() -> T) -> T {
        let before = self.turn_to(doing);
        let done = work();
        self.turn_to(before);
        done
    }
}

fn processor_time() -> (ThreadId, Duration) {
    (thread::current().id(), clock::processor_time_of_thread())
}

/// A wrapper that measures the time spent in `it`.
struct Metered<T> {
    it: T,
    meter: Meter,
}

impl<K: EventSink> EventSink for Metered<K> {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.it.record(event, contents);
    }

    fn turn_to(&mut self, operation: Option<Operation>) {
        self.meter.turn_to(match operation {
            None => Doing::Client,
            Some(Operation::Prefetch | Operation::Read) => Doing::Read,
            Some(Operation::Write) => Doing::Write,
            Some(Operation::Flush) => Doing::Flush,
        });
    }
}

impl<D: StateDir> StateDir for Metered<D> {
    fn names(&self) -> io::Result<Vec<String>> {
        self.meter.during(Doing::Log, || self.it.names())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        self.meter.during(Doing::Log, || self.it.open(name))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.sync(name))
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        let it = self.meter.during(Doing::Log, || self.it.create(name))?;
        Ok(Box::new(Metered { it, meter: self.meter.clone() }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.rename(from, to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.remove(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.sync_names())
    }
}

impl StateFile for Metered<Box<dyn StateFile>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.append(bytes))
    }

    fn expect_more(&mut self) {
        self.it.expect_more();
    }

    fn sync(&mut self) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.sync())
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.begin_sync())
    }

    fn is_sync_over(&mut self) -> bool {
        self.it.is_sync_over()
    }

    fn finish_sync(&mut self) -> io::Result<()> {
        self.meter.during(Doing::Log, || self.it.finish_sync())
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
        meter.during(Doing::Read, || thread::sleep(SOME));
        meter.during(Doing::Write, || {
            thread::sleep(SOME);
            meter.during(Doing::Client, compute);
            meter.during(Doing::Log, || thread::sleep(SOME));
        });
        meter.during(Doing::Flush, || thread::sleep(SOME));
        let spent = meter.spent();
        for part in [spent.read, spent.write, spent.flush, spent.log, spent.client] {
            assert!(part >= SOME, "{part:?}");
        }
        let elapsed = clock.elapsed();
        let rest = spent.rest_of(elapsed);
        let Spending { read, write, flush, log, client } = spent;
        assert_eq!(read + write + flush + log + client + rest, elapsed);
        assert_eq!((spent - spent).rest_of(elapsed), elapsed);
    }

    #[test]
    fn a_client_that_waits_spends_nothing() {
        let meter = Meter::start();
        thread::sleep(10 * SOME);
        meter.during(Doing::Read, || ());
        assert!(meter.spent().client < 5 * SOME);
        thread::scope(|scope| {
            scope.spawn(|| meter.during(Doing::Client, compute));
        });
        assert!(meter.spent().client >= SOME);
    }
}
