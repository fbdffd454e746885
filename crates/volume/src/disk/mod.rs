//! A volume as a disk: bytes instead of blocks, and concurrent callers.
//!
//! ```text
//! many threads ── requests ──▶ one worker ── windows of accesses ──▶ Volume
//!                                 │
//!                              cache (write-back)
//! ```
//!
//! Requests are served in order. The blocks that they need are read in windows: while one window is
//! read, the next ones begin, also for requests that have arrived meanwhile. Writes stay in the
//! cache until too many blocks are dirty, a caller flushes, or the disk is idle. Storage does not
//! see requests that the cache answers: the number of accesses is the number of blocks missing from
//! the cache plus the number written back. Without a cache, each block of a request is an access:
//! see `uncached`.
//!
//! With a [`Schedule`], storage sees the same number of accesses at each tick instead, whatever the
//! requests: `schedule` divides a tick, and `scheduled` serves requests with its accesses.

mod blocks;
mod cache;
mod pace;
mod pending;
mod requests;
mod schedule;
mod scheduled;
mod streams;
mod uncached;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SendError, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use oblivio_core::durable::{AnyStore, RangePolicy};

use crate::device::ops::REQUEST_BYTES_MAX;
use crate::device::{BlockDevice, Completion, DiskError, DiskErrorKind, Division, Request};
use crate::error::{VolumeError, VolumeErrorKind};
use crate::volume::Volume;
use pace::{Clock, Pace, PunctualityCounters};
use requests::{Message, Queue};
use scheduled::ScheduledWorker;
use worker::Worker;

pub use pace::{Punctuality, Ticks};
pub use schedule::Schedule;

/// Maximum number of requests in the queue. If it is full, callers wait.
const QUEUE_REQUESTS_MAX: usize = 256;

/// Number of blocks that the cache of a disk without a schedule may hold beyond its bound while
/// requests are in flight: this number, or four of the longest ranges if that is more. Blocks that
/// were read for requests stay until the requests have used them.
pub const BLOCKS_UNDER_WAY_MAX: usize = 512;

/// Options of a disk.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DiskOptions {
    /// Maximum bytes of cached blocks. Half of them may be dirty. With a schedule, the cache holds
    /// at least two blocks for each access of a tick. Without a schedule, there is no cache if this
    /// is less than a block: a read or write accesses all its blocks before it is answered, and
    /// requests that are served together share accesses to the same block.
    pub cache_bytes_max: u64,
    /// The fixed times and number of accesses. Without a schedule, the disk makes accesses when
    /// requests need them, and storage sees the times.
    pub schedule: Option<Schedule>,
}

impl DiskOptions {
    /// The default options: a cache of 16 MiB and no schedule.
    pub const DEFAULT: Self = Self { cache_bytes_max: 16 << 20, schedule: None };
}

impl DiskOptions {
    /// Sets [`cache_bytes_max`](Self::cache_bytes_max).
    #[must_use]
    pub const fn with_cache_bytes_max(self, cache_bytes_max: u64) -> Self {
        Self { cache_bytes_max, ..self }
    }

    /// Sets [`schedule`](Self::schedule).
    #[must_use]
    pub const fn with_schedule(self, schedule: Option<Schedule>) -> Self {
        Self { schedule, ..self }
    }
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A disk over an open volume, which a worker thread uses.
pub struct Disk {
    queue: SyncSender<Message>,
    worker: Mutex<Option<JoinHandle<Result<AnyStore, VolumeError>>>>,
    /// Whether the disk is closed. Locked during each submission, so that no request can follow the
    /// close message and stay unanswered.
    is_closed: RwLock<bool>,
    bytes: u64,
    block_bytes: u32,
    division: Division,
    /// The punctuality of ticks so far, if there is a clock.
    counters: Option<Arc<PunctualityCounters>>,
    /// The message that all requests fail with, if the volume has failed.
    failure: Arc<OnceLock<String>>,
    /// Whether the disk is closing: the worker answers the queued requests and ends.
    is_closing: Arc<AtomicBool>,
    /// Whether the worker thread has panicked.
    has_panicked: Arc<AtomicBool>,
}

impl Disk {
    /// Starts a thread that serves `volume`.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] when the system cannot start a thread.
    /// [`VolumeErrorKind::InvalidConfig`] for a schedule that the disk cannot keep: the volume was
    /// closed, or the error of closing it is returned instead.
    pub fn start(volume: Volume, options: &DiskOptions) -> Result<Self, VolumeError> {
        let has_cache = options.cache_bytes_max >= volume.block_bytes() as u64;
        let shape = DiskShape::new(&volume, options.schedule.is_none() && has_cache);
        let Some(schedule) = options.schedule else {
            let worker = Worker::new(volume, options);
            return Self::start_worker(shape, move |queue| worker.run(queue));
        };
        let refused = schedule.check();
        let refused = refused.and_then(|()| schedule::check_ranges(&volume, schedule.accesses));
        if let Err(refused) = refused {
            // The volume has made no access: closing it leaves nothing to recover.
            volume.close()?;
            return Err(refused);
        }
        let worker = ScheduledWorker::new(
            volume,
            options.cache_bytes_max,
            schedule.accesses,
            schedule.early_write_backs,
        );
        let counters = Arc::new(PunctualityCounters::default());
        let of_clock = counters.clone();
        let mut disk = Self::start_worker(shape, move |queue| {
            worker.run(queue, Pace::Clock(Clock::start(schedule.period, of_clock)))
        })?;
        disk.counters = Some(counters);
        Ok(disk)
    }

    /// The punctuality of ticks so far. `None` without a clock.
    pub fn punctuality(&self) -> Option<Punctuality> {
        self.counters.as_ref().map(|counters| counters.read())
    }

    /// The message that all requests fail with, if the volume has failed. [`Self::close`] returns
    /// the same error.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Whether the worker thread has panicked, which is a defect. The program should then end.
    pub fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::Acquire)
    }

    /// Starts a thread that serves `volume` with `accesses` accesses at each tick, with or without
    /// [early write-backs](Schedule::early_write_backs). The caller triggers the ticks with the
    /// returned `Ticks`.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Io`] when the system cannot start a thread, and
    /// [`VolumeErrorKind::InvalidConfig`] for a number of accesses that a tick cannot make. The
    /// volume is dropped without being closed.
    pub fn start_without_clock(
        volume: Volume,
        cache_bytes_max: u64,
        accesses: usize,
        early_write_backs: bool,
    ) -> Result<(Self, Ticks), VolumeError> {
        schedule::check_accesses(accesses)?;
        schedule::check_ranges(&volume, accesses)?;
        let shape = DiskShape::new(&volume, false);
        let worker = ScheduledWorker::new(volume, cache_bytes_max, accesses, early_write_backs);
        let disk = Self::start_worker(shape, move |queue| worker.run(queue, Pace::Manual))?;
        let ticks = Ticks(disk.queue.clone());
        Ok((disk, ticks))
    }

    fn start_worker(
        DiskShape { bytes, block_bytes, division }: DiskShape,
        work: impl FnOnce(&Queue) -> Result<AnyStore, VolumeError> + Send + 'static,
    ) -> Result<Self, VolumeError> {
        let (queue, messages) = mpsc::sync_channel(QUEUE_REQUESTS_MAX);
        let failure = Arc::new(OnceLock::new());
        let is_closing = Arc::<AtomicBool>::default();
        let requests = Queue::new(messages, failure.clone(), is_closing.clone());
        let has_panicked = Arc::<AtomicBool>::default();
        let panicked = has_panicked.clone();
        let serve = move || {
            // Requests that a panic drops answer themselves: see `AnswerOnDrop`.
            catch_unwind(AssertUnwindSafe(|| work(&requests))).unwrap_or_else(|_| {
                panicked.store(true, Ordering::Release);
                Err(requests.refuse_all(panic_error()))
            })
        };
        let worker =
            thread::Builder::new().name("volume".into()).spawn(serve).map_err(|error| {
                let message = format!("cannot start the thread of the volume: {error}");
                VolumeError::caused_by(VolumeErrorKind::Io, message, error)
            })?;
        let worker = Mutex::new(Some(worker));
        let is_closed = RwLock::new(false);
        let counters = None;
        Ok(Self {
            queue,
            worker,
            is_closed,
            bytes,
            block_bytes,
            division,
            counters,
            failure,
            is_closing,
            has_panicked,
        })
    }

    /// Serves the requests so far and closes the volume, which then needs no recovery. Later
    /// requests fail.
    ///
    /// # Errors
    /// The error that the volume has failed with, now or earlier. [`VolumeErrorKind::MustReopen`]
    /// if the disk was closed before.
    pub fn close(&self) -> Result<(), VolumeError> {
        self.close_into_store().map(drop)
    }

    /// Like [`Self::close`], and returns the volume's store.
    ///
    /// # Errors
    /// As [`Self::close`]. The store is then dropped.
    pub fn close_into_store(&self) -> Result<AnyStore, VolumeError> {
        *self.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.is_closing.store(true, Ordering::Release);
        // Sending fails if the worker has ended, and it then needs no message.
        let _ = self.queue.send(Message::Close);
        let closed = || VolumeError::new(VolumeErrorKind::MustReopen, "the disk was closed before");
        let worker = self.worker.lock().ok().and_then(|mut worker| worker.take());
        let worker = worker.ok_or_else(closed)?;
        worker.join().map_err(|_| panic_error())?
    }
}

fn panic_error() -> VolumeError {
    let message = "the thread of the volume has panicked, which is a defect: please report it, \
                   and open the volume again";
    VolumeError::new(VolumeErrorKind::MustReopen, message)
}

/// Answers a request with an error if the request is dropped unanswered, because the worker thread
/// has panicked.
struct AnswerOnDrop(Option<Completion>);

impl AnswerOnDrop {
    fn wrap(done: Completion) -> Completion {
        let mut answered = Self(Some(done));
        Box::new(move |answer| {
            if let Some(done) = answered.0.take() {
                done(answer);
            }
        })
    }
}

impl Drop for AnswerOnDrop {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            // During a panic, a second one would end the process.
            let _ = catch_unwind(AssertUnwindSafe(|| done(Err(DiskError::from(&panic_error())))));
        }
    }
}

/// The sizes of a disk, and the points at which requests should be split.
struct DiskShape {
    bytes: u64,
    block_bytes: u32,
    division: Division,
}

impl DiskShape {
    /// The shape of a disk over `volume`. `chooses` states whether the disk accesses ranges if the
    /// policy is [`RangePolicy::Classes`].
    fn new(volume: &Volume, chooses: bool) -> Self {
        let block_bytes = volume.block_bytes() as u32;
        let bytes = volume.blocks() * u64::from(block_bytes);
        let class = match volume.range_policy() {
            RangePolicy::Classes if !chooses => 0,
            RangePolicy::Exact | RangePolicy::Classes => {
                volume.range_classes().last().copied().unwrap_or(0)
            }
            RangePolicy::Fixed(class) => class,
        };
        let from_request = volume.range_policy() == RangePolicy::Exact;
        let division = Division { bytes: block_bytes << class, from_request };
        Self { bytes, block_bytes, division }
    }
}

/// Closes the disk. To see errors, call [`Disk::close`] first.
impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

impl BlockDevice for Disk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn division(&self) -> Division {
        self.division
    }

    fn request_bytes_max(&self) -> u32 {
        REQUEST_BYTES_MAX as u32
    }

    fn requests_in_flight_max(&self) -> usize {
        QUEUE_REQUESTS_MAX
    }

    fn submit(&self, Request { op, done }: Request) {
        let request = Request { op, done: AnswerOnDrop::wrap(done) };
        let is_closed = self.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        let message = Message::Serve(request);
        let refused = if *is_closed { Err(SendError(message)) } else { self.queue.send(message) };
        drop(is_closed);
        if let Err(SendError(Message::Serve(request))) = refused {
            let message = "the disk was closed";
            (request.done)(Err(DiskError::new(DiskErrorKind::Closed, message)));
        }
    }
}
