//! A thread that reads what was announced, while the store goes on.
//!
//! To copy a path out of the page cache takes as long as everything else that is done with it. What was
//! announced is read on another processor. The store never waits for what that has not begun: it reads it
//! itself, and so both read when there is much to read, and nobody is slower for it when there is little.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::buffer::{Buffer, whole_sectors};
use crate::fetching::{Fetch, Fetching};
use crate::medium::Medium;
use crate::pending::Pending;
use crate::places::Extent;

/// So many trips can wait to be read ahead. What is announced beyond them is left out.
const WAITING_MAX: usize = 128;

/// So many trips are read ahead at once. They should stay in the cache of a processor until they are used.
const BUFFERS_MAX: usize = 16;

/// The trips that are read ahead.
pub(crate) struct LookAhead {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// What the store and the thread hand each other.
#[derive(Default)]
struct Desk {
    trips: Mutex<Trips>,
    /// There is something to read, or it is over.
    has_work: Condvar,
    /// What was being read is read.
    is_read: Condvar,
}

#[derive(Default)]
struct Trips {
    /// In the order in which they were announced.
    waiting: VecDeque<Arc<[Fetch]>>,
    /// What the thread is reading, unless it was forgotten.
    under_way: Option<Arc<[Fetch]>>,
    read: VecDeque<Trip>,
    /// Buffers that nobody uses, and how many there are in all.
    spare: Vec<Buffer>,
    buffers: usize,
    /// The thread waits.
    is_idle: bool,
    /// The file is being changed.
    is_paused: bool,
    is_over: bool,
}

impl Trips {
    /// What the thread reads next, if there is something to read and room for it.
    fn begin(&mut self) -> Option<Trip> {
        self.waiting.front().filter(|_| !self.is_paused)?;
        let buffer = self.spare.pop().or_else(|| {
            let first = (self.buffers < BUFFERS_MAX).then(|| Buffer::new(1).ok()).flatten()?;
            self.buffers += 1;
            Some(first)
        })?;
        let fetches = self.waiting.pop_front()?;
        self.under_way = Some(fetches.clone());
        Some(Trip { fetches, buffer })
    }
}

/// Extents of the file, and their bytes once they were read.
pub(crate) struct Trip {
    fetches: Arc<[Fetch]>,
    pub(crate) buffer: Buffer,
}

fn has(fetches: &[Fetch], extent: Extent) -> bool {
    fetches.iter().any(|fetch| fetch.extent == extent)
}

impl Trip {
    /// Where in its buffer `extent` is, if it was read.
    pub(crate) fn position(&self, extent: Extent) -> Option<usize> {
        self.fetches.iter().find(|fetch| fetch.extent == extent).map(|fetch| fetch.at)
    }

    fn read(&mut self, fetching: &mut Fetching, medium: &Medium) -> io::Result<()> {
        let bytes = self.fetches.last().map_or(0, |last| last.at + last.extent.bytes);
        self.buffer.grow(bytes, 0)?;
        fetching.fetch_all(medium, &self.fetches, &mut self.buffer)
    }

    /// Lays over it what is pending, of which the bytes are in `buffer`.
    pub(crate) fn bring_up_to_date(&mut self, pending: &Pending, buffer: &[u8]) {
        for Fetch { extent, at } in &*self.fetches {
            for (newer, offset) in pending.newer(*extent) {
                self.buffer[at + offset..][..newer.len()].copy_from_slice(&buffer[newer]);
            }
        }
    }
}

impl Desk {
    fn trips(&self) -> MutexGuard<'_, Trips> {
        // Whoever holds the lock leaves the lists whole at every step.
        self.trips.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads trips until it is over.
    fn serve(&self, medium: &Medium) {
        let mut fetching = Fetching::default();
        let mut trips = self.trips();
        while !trips.is_over {
            let Some(mut trip) = trips.begin() else {
                trips.is_idle = true;
                trips = self.has_work.wait(trips).unwrap_or_else(PoisonError::into_inner);
                trips.is_idle = false;
                continue;
            };
            drop(trips);
            let outcome = trip.read(&mut fetching, medium);
            trips = self.trips();
            // What was forgotten meanwhile, or cannot be read, is read when it is asked for.
            if trips.under_way.take().is_some() && outcome.is_ok() {
                trips.read.push_back(trip);
            } else {
                trips.spare.push(trip.buffer);
            }
            self.is_read.notify_one();
        }
    }
}

impl LookAhead {
    /// Starts the thread.
    pub(crate) fn start(medium: Arc<Medium>) -> io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let its = desk.clone();
        let thread =
            thread::Builder::new().name("look-ahead".into()).spawn(move || its.serve(&medium))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Begins to read extents. A hint: what cannot be read ahead is read when it is asked for.
    pub(crate) fn announce(&mut self, extents: impl Iterator<Item = Extent>) {
        let mut end = 0;
        let fetches = extents.filter(|extent| extent.bytes > 0).map(|extent| {
            let at = end;
            end += whole_sectors(extent.bytes);
            Fetch { extent, at }
        });
        let fetches: Arc<[_]> = fetches.collect();
        if fetches.is_empty() {
            return;
        }
        let mut guard = self.desk.trips();
        let trips = &mut *guard;
        if trips.waiting.is_empty() && trips.read.len() == BUFFERS_MAX {
            // Nobody has asked for the oldest so long that it has become useless.
            trips.spare.extend(trips.read.pop_front().map(|oldest| oldest.buffer));
        }
        if trips.waiting.len() < WAITING_MAX {
            trips.waiting.push_back(fetches);
        }
        if trips.is_idle {
            self.desk.has_work.notify_one();
        }
    }

    /// The trip that was announced with `extent`, as the file was since then, if it was read or is being
    /// read. The store gives it back.
    pub(crate) fn take(&mut self, extent: Extent) -> Option<Trip> {
        let mut trips = self.desk.trips();
        if let Some(i) = trips.waiting.iter().position(|fetches| has(fetches, extent)) {
            trips.waiting.remove(i);
            return None;
        }
        while trips.under_way.as_ref().is_some_and(|fetches| has(fetches, extent)) {
            trips = self.desk.is_read.wait(trips).unwrap_or_else(PoisonError::into_inner);
        }
        let i = trips.read.iter().position(|trip| has(&trip.fetches, extent))?;
        trips.read.remove(i)
    }

    /// Nobody needs the bytes of a trip any more.
    pub(crate) fn give_back(&mut self, trip: Trip) {
        let mut trips = self.desk.trips();
        trips.spare.push(trip.buffer);
        // To be woken for each of them would cost more than to read it.
        if trips.is_idle && !trips.waiting.is_empty() && 2 * trips.spare.len() >= BUFFERS_MAX {
            self.desk.has_work.notify_one();
        }
    }

    /// The file is about to be changed: what was read of it may be of the past, and nothing more is read until
    /// [`Self::resume`].
    pub(crate) fn pause(&mut self) {
        let mut trips = self.desk.trips();
        let Trips { under_way, read, spare, is_paused, .. } = &mut *trips;
        *is_paused = true;
        *under_way = None;
        spare.extend(read.drain(..).map(|trip| trip.buffer));
    }

    /// The file has been changed.
    pub(crate) fn resume(&mut self) {
        let mut trips = self.desk.trips();
        trips.is_paused = false;
        if trips.is_idle && !trips.waiting.is_empty() {
            self.desk.has_work.notify_one();
        }
    }
}

impl Drop for LookAhead {
    fn drop(&mut self) {
        self.desk.trips().is_over = true;
        self.desk.has_work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked reads nothing any more, and nobody asks it.
            let _ = thread.join();
        }
    }
}
