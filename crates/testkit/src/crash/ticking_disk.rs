//! A fixed-rate disk that ticks only while a request waits. Because there is no clock, equal
//! requests give equal runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oblivio_volume::device::{BlockDevice, Request};
use oblivio_volume::disk::Ticks;
use oblivio_volume::{Disk, Volume, VolumeError};

/// Maximum number of ticks to wait for an answer.
const TICKS_MAX: usize = 100_000;

/// A [`Disk`] that, after each request, ticks at least once and until the request is answered.
pub struct TickingDisk {
    disk: Disk,
    ticks: Ticks,
}

impl TickingDisk {
    /// Starts a disk on `volume` that makes `accesses` accesses at a tick.
    ///
    /// # Errors
    /// See [`Disk::start_without_clock`].
    pub fn start(
        volume: Volume,
        cache_bytes_max: u64,
        accesses: usize,
    ) -> Result<Self, VolumeError> {
        let (disk, ticks) = Disk::start_without_clock(volume, cache_bytes_max, accesses, true)?;
        Ok(Self { disk, ticks })
    }
}

impl BlockDevice for TickingDisk {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }

    fn request_bytes_max(&self) -> u32 {
        self.disk.request_bytes_max()
    }

    /// Submits a request, and ticks until the disk has answered.
    ///
    /// # Panics
    /// If the disk does not answer within 100,000 ticks.
    fn submit(&self, Request { op, done }: Request) {
        let is_answered = Arc::new(AtomicBool::new(false));
        let answered = is_answered.clone();
        let done = Box::new(move |answer| {
            done(answer);
            answered.store(true, Ordering::Release);
        });
        self.disk.submit(Request { op, done });
        // Tick until the request is answered.
        for _ in 0..TICKS_MAX {
            self.ticks.tick();
            if is_answered.load(Ordering::Acquire) {
                return;
            }
        }
        panic!("a request was not answered within {TICKS_MAX} ticks");
    }
}
