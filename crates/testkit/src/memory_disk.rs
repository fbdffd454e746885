//! A disk in memory, for tests of programs that serve disks.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request, WipedBytes};

/// Bytes per block of the disk.
pub const BLOCK_BYTES: u32 = 4096;
/// Bytes of a mebibyte.
pub const MIB: u64 = 1 << 20;

/// The timeout of tests: long enough for a busy machine, short enough for a test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `holds` repeatedly until it returns true.
///
/// # Panics
/// After [`PATIENCE`].
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    const LOOK: Duration = Duration::from_millis(10);
    let mut looks = 0;
    while !holds() {
        thread::sleep(LOOK);
        looks += 1;
        assert!(looks < PATIENCE.as_millis() / LOOK.as_millis(), "waited too long");
    }
}

/// A disk in memory that answers from its own thread and counts requests.
pub struct MemoryDisk {
    bytes: u64,
    requests: Mutex<Sender<Request>>,
    shared: &'static Shared,
}

/// The state that the test and the disk share. It is never freed, because tests are short.
#[derive(Default)]
pub struct Shared {
    /// The current contents of the disk.
    pub data: Mutex<Vec<u8>>,
    /// Number of flushes so far.
    pub flushes: AtomicU64,
    /// Number of writes so far that had to be durable.
    pub durable_writes: AtomicU64,
    /// Number of bytes in successful trim requests so far, including parts of blocks, which keep
    /// their contents.
    pub trimmed_bytes: AtomicU64,
    /// Number of bytes zeroed so far.
    pub zeroed_bytes: AtomicU64,
    /// Whether every write, zero and trim request fails from now on.
    pub is_full: AtomicBool,
    /// Whether every read fails from now on.
    pub is_broken: AtomicBool,
    in_flight: AtomicU32,
    /// Maximum number of requests that were in flight at once.
    pub in_flight_max: AtomicU32,
    /// The next answer waits until this number of requests is in flight, or until [`PATIENCE`] is
    /// over. Then the number is reset to 0.
    pub gather: AtomicU32,
    gathered: Condvar,
    gathering: Mutex<()>,
}

impl MemoryDisk {
    /// Creates a disk of `bytes` zeros.
    pub fn new(bytes: u64) -> Self {
        Self::holding(vec![0; bytes as usize])
    }

    /// Creates a disk that holds `data`.
    pub fn holding(data: Vec<u8>) -> Self {
        let (sender, requests) = mpsc::channel::<Request>();
        let bytes = data.len() as u64;
        let shared: &'static Shared =
            Box::leak(Box::new(Shared { data: Mutex::new(data), ..Shared::default() }));
        #[expect(clippy::disallowed_methods, reason = "a device answers from its own thread")]
        thread::spawn(move || {
            for request in requests {
                shared.gather();
                let answer = shared.answer(request.op);
                shared.in_flight.fetch_sub(1, Ordering::SeqCst);
                (request.done)(answer.map(WipedBytes::from));
            }
        });
        Self { bytes, requests: Mutex::new(sender), shared }
    }

    /// The state that the test and the disk share.
    pub fn shared(&self) -> &'static Shared {
        self.shared
    }
}

impl Shared {
    /// Returns a copy of the contents.
    pub fn image(&self) -> Vec<u8> {
        self.data.lock().unwrap().clone()
    }

    fn gather(&self) {
        let wanted = self.gather.load(Ordering::SeqCst);
        let guard = self.gathering.lock().unwrap();
        let too_few = |_: &mut ()| self.in_flight.load(Ordering::SeqCst) < wanted;
        drop(self.gathered.wait_timeout_while(guard, PATIENCE, too_few).unwrap());
        // Gather once: the requests in flight are then answered one by one.
        self.gather.store(0, Ordering::SeqCst);
    }

    fn answer(&self, op: DiskOp) -> Result<Vec<u8>, DiskError> {
        let mut data = self.data.lock().unwrap();
        let block = u64::from(BLOCK_BYTES);
        let fails = match &op {
            DiskOp::Read { .. } => self.is_broken.load(Ordering::SeqCst),
            DiskOp::Flush => false,
            _ => self.is_full.load(Ordering::SeqCst),
        };
        if fails {
            let kind = match op {
                DiskOp::Read { .. } => DiskErrorKind::Failed,
                _ => DiskErrorKind::NoSpace,
            };
            return Err(DiskError::new(kind, "a fault set by the test"));
        }
        match op {
            DiskOp::Read { offset, bytes } => {
                return Ok(data[offset as usize..][..bytes as usize].to_vec());
            }
            DiskOp::Write { offset, data: new, durable } => {
                data[offset as usize..][..new.len()].copy_from_slice(&new);
                self.durable_writes.fetch_add(durable.into(), Ordering::SeqCst);
            }
            DiskOp::Zero { offset, bytes, .. } => {
                data[offset as usize..][..bytes as usize].fill(0);
                self.zeroed_bytes.fetch_add(bytes, Ordering::SeqCst);
            }
            DiskOp::Trim { offset, bytes, .. } => {
                let (start, end) =
                    (offset.next_multiple_of(block), (offset + bytes) / block * block);
                if start < end {
                    data[start as usize..end as usize].fill(0);
                }
                self.trimmed_bytes.fetch_add(bytes, Ordering::SeqCst);
            }
            DiskOp::Flush => {
                self.flushes.fetch_add(1, Ordering::SeqCst);
            }
        }
        Ok(vec![])
    }
}

impl BlockDevice for MemoryDisk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn block_bytes(&self) -> u32 {
        BLOCK_BYTES
    }

    fn request_bytes_max(&self) -> u32 {
        256 << 10
    }

    fn submit(&self, request: Request) {
        let before = self.shared.in_flight.fetch_add(1, Ordering::SeqCst);
        self.shared.in_flight_max.fetch_max(before + 1, Ordering::SeqCst);
        self.shared.gathered.notify_all();
        self.requests.lock().unwrap().send(request).unwrap();
    }
}
