//! A small disk that checks the requests of its server.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use oblivio_volume::device::{BlockDevice, DiskOp, Request};

pub const DISK_BYTES: usize = 1 << 14;
const REQUEST_BYTES_MAX: u32 = 1 << 12;

/// A disk that answers at once. Panics on requests beyond its end, and on reads and writes of more
/// than `REQUEST_BYTES_MAX` bytes.
pub struct SmallDisk {
    contents: Mutex<Vec<u8>>,
    requests: AtomicU64,
}

impl Default for SmallDisk {
    fn default() -> Self {
        Self { contents: Mutex::new(vec![0; DISK_BYTES]), requests: AtomicU64::new(0) }
    }
}

impl SmallDisk {
    /// The number of requests so far.
    #[allow(dead_code, reason = "not all targets count")]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl BlockDevice for SmallDisk {
    fn bytes(&self) -> u64 {
        DISK_BYTES as u64
    }

    fn block_bytes(&self) -> u32 {
        512
    }

    fn request_bytes_max(&self) -> u32 {
        REQUEST_BYTES_MAX
    }

    fn submit(&self, Request { op, done }: Request) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let contents = &mut *self.contents.lock().unwrap();
        let answer = match op {
            DiskOp::Read { offset, bytes } => {
                assert!(bytes <= REQUEST_BYTES_MAX);
                piece(contents, offset, bytes.into()).to_vec()
            }
            DiskOp::Write { offset, data, .. } => {
                assert!(data.len() <= REQUEST_BYTES_MAX as usize);
                piece(contents, offset, data.len() as u64).copy_from_slice(&data);
                Vec::new()
            }
            DiskOp::Zero { offset, bytes, .. } | DiskOp::Trim { offset, bytes, .. } => {
                piece(contents, offset, bytes).fill(0);
                Vec::new()
            }
            DiskOp::Flush => Vec::new(),
        };
        done(Ok(answer.into()));
    }
}

fn piece(contents: &mut [u8], offset: u64, bytes: u64) -> &mut [u8] {
    &mut contents[offset as usize..][..bytes as usize]
}
