//! A thread that reads announced trips while the store continues.
//!
//! Copying a path out of the page cache takes as long as all other work on the path, so another
//! processor does it. The store never waits for a trip that the thread has not begun; it reads that
//! trip itself. So both read under high load, and the thread never makes the store slower.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::buffer::{Buffer, whole_sectors};
use crate::fetching::{Fetch, Fetching};
use crate::file_layout::Extent;
use crate::medium::Medium;
use crate::pending::Pending;

/// The maximum number of announced trips that wait for the thread. Further announcements are
/// ignored.
const WAITING_MAX: usize = 128;

/// The maximum number of trips that are read ahead at a time.
const BUFFERS_MAX: usize = 16;
/// The maximum total bytes of trips that are read ahead at a time. The bytes should stay in a
/// processor's cache until the store uses them.
pub(crate) const READ_AHEAD_BYTES_MAX: usize = 4 << 20;

/// A thread that reads announced trips ahead.
pub(crate) struct LookAhead {
    queue: Arc<ReadAheadQueue>,
    thread: Option<JoinHandle<()>>,
}

/// The state shared by the store and the thread that reads ahead.
#[derive(Default)]
struct ReadAheadQueue {
    trips: Mutex<Trips>,
    /// Signals that a trip waits to be read, or that the thread must end.
    has_work: Condvar,
    /// Signals that a trip was read.
    is_read: Condvar,
    /// Whether most of the thread's latest trip was not in the page cache.
    is_cold: AtomicBool,
}

#[derive(Default)]
struct Trips {
    /// Trips to read, in the order of their announcement.
    waiting: VecDeque<Arc<[Fetch]>>,
    /// The trip that the thread is reading; `None` if the thread reads no trip, or the store has
    /// discarded the trip since.
    under_way: Option<Arc<[Fetch]>>,
    read: VecDeque<Trip>,
    /// The unused buffers.
    spare: Vec<Buffer>,
    /// The number of all buffers, used or not.
    buffers: usize,
    /// Whether the thread waits for work and has not been woken yet.
    is_idle: bool,
    /// Whether the store is changing the file, so that the thread must not begin a trip.
    is_paused: bool,
    is_over: bool,
}

impl Trips {
    /// Takes the next trip for the thread, if one waits, the store is not changing the file, and a
    /// buffer is free or another one is allowed.
    fn begin(&mut self) -> Option<Trip> {
        let next = self.waiting.front().filter(|_| !self.is_paused)?;
        let may_grow = self.may_have_another_buffer(bytes(next));
        let buffer = self.spare.pop().or_else(|| {
            let new = may_grow.then(|| Buffer::new(1).ok()).flatten()?;
            self.buffers += 1;
            Some(new)
        })?;
        let fetches = self.waiting.pop_front()?;
        self.under_way = Some(fetches.clone());
        Some(Trip { fetches, buffer })
    }

    /// Whether another buffer is allowed, for a trip of `bytes` bytes.
    fn may_have_another_buffer(&self, bytes: usize) -> bool {
        self.buffers < (READ_AHEAD_BYTES_MAX / bytes.max(1)).min(BUFFERS_MAX)
    }

    /// Records that the thread has read a trip, or has failed to. If the trip was discarded or has
    /// failed, the store reads it again when it needs the trip.
    fn end(&mut self, trip: Trip, outcome: io::Result<()>) {
        if self.under_way.take().is_some() && outcome.is_ok() {
            self.read.push_back(trip);
        } else {
            self.spare.push(trip.buffer);
        }
    }

    /// Discards all trips read so far, because they may be stale after a change, and stops reading
    /// ahead.
    fn pause(&mut self) {
        self.is_paused = true;
        self.under_way = None;
        self.spare.extend(self.read.drain(..).map(|trip| trip.buffer));
    }
}

/// Extents of the file, with their bytes after the thread has read them.
pub(crate) struct Trip {
    fetches: Arc<[Fetch]>,
    pub(crate) buffer: Buffer,
}

/// The size of the buffer that `fetches` need.
fn bytes(fetches: &[Fetch]) -> usize {
    fetches.last().map_or(0, |last| last.at + last.extent.bytes)
}

fn has(fetches: &[Fetch], extent: Extent) -> bool {
    fetches.iter().any(|fetch| fetch.extent == extent)
}

impl Trip {
    /// The offset of the bytes of `extent` in the trip's buffer; `None` if the trip does not
    /// contain `extent`.
    pub(crate) fn position(&self, extent: Extent) -> Option<usize> {
        self.fetches.iter().find(|fetch| fetch.extent == extent).map(|fetch| fetch.at)
    }

    fn read(&mut self, fetching: &mut Fetching, medium: &Medium) -> io::Result<()> {
        self.buffer.grow(bytes(&self.fetches), 0)?;
        fetching.fetch_all(medium, &self.fetches, &mut self.buffer)
    }

    /// Overwrites bytes of the trip that are older than pending ones. The pending bytes are in
    /// `buffer`.
    pub(crate) fn bring_up_to_date(&mut self, pending: &Pending, buffer: &[u8]) {
        for Fetch { extent, at } in &*self.fetches {
            for (newer, offset) in pending.newer(*extent) {
                self.buffer[at + offset..][..newer.len()].copy_from_slice(&buffer[newer]);
            }
        }
    }
}

impl ReadAheadQueue {
    fn trips(&self) -> MutexGuard<'_, Trips> {
        // The lists are consistent whenever the lock is released, even by a panic.
        self.trips.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread if it is waiting.
    fn wake(&self, trips: &mut Trips) {
        if std::mem::take(&mut trips.is_idle) {
            self.has_work.notify_one();
        }
    }

    /// Reads trips until the thread must end.
    fn serve(&self, medium: &Medium) {
        let mut fetching = Fetching::default();
        let _wakes_waiters = OnPanic(self);
        let mut trips = self.trips();
        while !trips.is_over {
            let Some(mut trip) = trips.begin() else {
                trips.is_idle = true;
                trips = self.has_work.wait(trips).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(trips);
            let outcome = trip.read(&mut fetching, medium);
            trips = self.trips();
            trips.end(trip, outcome);
            self.is_cold.store(fetching.is_cold(), Ordering::Relaxed);
            self.is_read.notify_one();
        }
    }
}

/// When the thread ends, wakes a store that waits for it. So the store continues even if the thread
/// panics.
struct OnPanic<'a>(&'a ReadAheadQueue);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        self.0.trips().under_way = None;
        self.0.is_read.notify_one();
    }
}

impl LookAhead {
    /// Starts the thread that reads ahead.
    pub(crate) fn start(medium: Arc<Medium>) -> io::Result<Self> {
        let queue = Arc::new(ReadAheadQueue::default());
        let queue_of_thread = queue.clone();
        let serve = move || queue_of_thread.serve(&medium);
        let thread = thread::Builder::new().name("look-ahead".into()).spawn(serve)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Whether most of the thread's latest trip was not in the page cache.
    pub(crate) fn is_cold(&self) -> bool {
        self.queue.is_cold.load(Ordering::Relaxed)
    }

    /// Announces extents to be read ahead, unless they are too long. This is a hint: extents that
    /// are not read ahead are read on demand.
    pub(crate) fn announce(&mut self, extents: impl Iterator<Item = Extent>) {
        let mut end = 0;
        let fetches = extents.filter(|extent| extent.bytes > 0).map(|extent| {
            let at = end;
            end += whole_sectors(extent.bytes);
            Fetch { extent, at }
        });
        let fetches: Arc<[_]> = fetches.collect();
        if fetches.is_empty() || end > READ_AHEAD_BYTES_MAX {
            return;
        }
        let mut guard = self.queue.trips();
        let trips = &mut *guard;
        let has_room = !trips.spare.is_empty() || trips.may_have_another_buffer(end);
        if trips.waiting.is_empty() && !has_room {
            // Free the oldest trip. If it is still needed, it is read again.
            trips.spare.extend(trips.read.pop_front().map(|oldest| oldest.buffer));
        }
        if trips.waiting.len() < WAITING_MAX {
            trips.waiting.push_back(fetches);
        }
        self.queue.wake(trips);
    }

    /// Takes the trip that was announced with `extent`, if the thread has read it or is reading it
    /// and the file has not changed since. If the thread is still reading the trip, waits until it
    /// has been read. If the trip still waits for the thread, cancels it and returns `None`. Takes
    /// back the buffer of the trip `used`.
    pub(crate) fn take(&mut self, extent: Option<Extent>, used: Option<Trip>) -> Option<Trip> {
        let mut trips = self.queue.trips();
        if let Some(used) = used {
            trips.spare.push(used.buffer);
            // Waking the thread for every buffer would cost more than the reads.
            if !trips.waiting.is_empty() && 2 * trips.spare.len() >= BUFFERS_MAX {
                self.queue.wake(&mut trips);
            }
        }
        let extent = extent?;
        if let Some(i) = trips.waiting.iter().position(|fetches| has(fetches, extent)) {
            trips.waiting.remove(i);
            return None;
        }
        while trips.under_way.as_ref().is_some_and(|fetches| has(fetches, extent)) {
            trips = self.queue.is_read.wait(trips).unwrap_or_else(PoisonError::into_inner);
        }
        let i = trips.read.iter().position(|trip| has(&trip.fetches, extent))?;
        trips.read.remove(i)
    }

    /// Discards trips that may become stale, and stops reading ahead until [`Self::resume`]. The
    /// caller must call this before it changes the file.
    pub(crate) fn pause(&mut self) {
        self.queue.trips().pause();
    }

    /// Resumes reading ahead. The caller must call this after it has changed the file.
    pub(crate) fn resume(&mut self) {
        let mut trips = self.queue.trips();
        trips.is_paused = false;
        if !trips.waiting.is_empty() {
            self.queue.wake(&mut trips);
        }
    }
}

impl Drop for LookAhead {
    fn drop(&mut self) {
        self.queue.trips().is_over = true;
        self.queue.has_work.notify_one();
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread; it is not needed any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn extent(number: u64, bytes: usize) -> Extent {
        Extent { start: number * bytes as u64, bytes }
    }

    /// Creates `count` waiting trips of one extent each.
    fn waiting(count: u64, bytes: usize) -> Trips {
        let fetches = |number| Arc::from([Fetch { extent: extent(number, bytes), at: 0 }]);
        Trips { waiting: (0..count).map(fetches).collect(), ..Trips::default() }
    }

    #[test]
    fn trips_read_while_the_file_changes_are_discarded() {
        let mut trips = waiting(2, 10);
        let trip = trips.begin().unwrap();
        trips.pause();
        assert!(trips.begin().is_none(), "a read began while the file is changed");
        trips.is_paused = false;
        trips.end(trip, Ok(()));
        assert_eq!((trips.read.len(), trips.spare.len()), (0, 1));
        let trip = trips.begin().unwrap();
        trips.end(trip, Ok(()));
        assert_eq!((trips.read.len(), trips.spare.len()), (1, 0));
        trips.pause();
        assert_eq!((trips.read.len(), trips.spare.len()), (0, 1));
    }

    #[test]
    fn trips_that_cannot_be_read_are_discarded() {
        let mut trips = waiting(1, 10);
        let trip = trips.begin().unwrap();
        trips.end(trip, Err(io::ErrorKind::Other.into()));
        assert_eq!((trips.read.len(), trips.spare.len()), (0, 1));
    }

    #[test]
    fn reading_ahead_is_limited_by_buffers_and_bytes() {
        for (bytes, expected) in
            [(10, BUFFERS_MAX), (READ_AHEAD_BYTES_MAX / 3, 3), (READ_AHEAD_BYTES_MAX, 1)]
        {
            let mut trips = waiting(40, bytes);
            let begun: Vec<_> = std::iter::from_fn(|| trips.begin()).collect();
            assert_eq!(begun.len(), expected, "{bytes}");
            trips.spare.extend(begun.into_iter().map(|trip| trip.buffer));
            assert!(trips.begin().is_some());
        }
    }

    #[test]
    fn the_thread_reads_announced_trips_and_reuses_returned_buffers() {
        let folder = tempfile::tempdir().unwrap();
        let medium = Medium::create(&folder.path().join("file")).unwrap();
        const BYTES: usize = 1000;
        const TRIPS: u64 = 100;
        for number in 0..TRIPS {
            medium.write(&[number as u8; BYTES], number * BYTES as u64).unwrap();
        }
        let mut look_ahead = LookAhead::start(Arc::new(medium)).unwrap();
        let wait_until_it_rests = |look_ahead: &LookAhead| {
            for _ in 0..5000 {
                if look_ahead.queue.trips().is_idle {
                    return;
                }
                thread::sleep(Duration::from_millis(1));
            }
            panic!("the thread does not become idle");
        };
        (0..TRIPS).for_each(|number| look_ahead.announce([extent(number, BYTES)].into_iter()));
        let mut read_ahead = 0;
        let mut used = None;
        for number in 0..TRIPS {
            wait_until_it_rests(&look_ahead);
            used = look_ahead.take(Some(extent(number, BYTES)), used);
            if let Some(trip) = &used {
                let at = trip.position(extent(number, BYTES)).unwrap();
                assert!(trip.buffer[at..at + BYTES].iter().all(|byte| *byte == number as u8));
                read_ahead += 1;
            }
        }
        assert!(read_ahead > TRIPS / 2, "{read_ahead} of {TRIPS}");
        assert!(look_ahead.take(Some(extent(TRIPS, BYTES)), used).is_none());
        // Extents that are outside the file or too long are not read ahead, and do not block
        // others.
        look_ahead.announce([extent(TRIPS + 5, BYTES)].into_iter());
        look_ahead.announce([extent(0, READ_AHEAD_BYTES_MAX + 1)].into_iter());
        look_ahead.announce([extent(1, BYTES)].into_iter());
        wait_until_it_rests(&look_ahead);
        assert!(look_ahead.take(Some(extent(TRIPS + 5, BYTES)), None).is_none());
        assert!(look_ahead.take(Some(extent(0, READ_AHEAD_BYTES_MAX + 1)), None).is_none());
        assert!(look_ahead.take(Some(extent(1, BYTES)), None).is_some());
    }
}
