//! The loads of the benchmark.

use std::time::Duration;

use oblivio_volume::device::DiskOp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Bytes of a sequential request. File systems merge requests for neighbouring blocks to this
/// length.
const LONG_BYTES: u64 = 1 << 20;

/// Bytes of a random request.
const SHORT_BYTES: u64 = 4096;

/// A sequence of requests of one kind.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) action: Action,
    order: AccessOrder,
    pub(super) request_bytes: u64,
    disk_bytes: u64,
    /// Time after which the load ends, if its time is limited.
    pub(super) time_max: Option<Duration>,
    /// Number of requests after which the load ends, if their number is limited.
    pub(super) requests_max: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    /// Writes. The disk answers a write only after its data is durable.
    DurableWrite,
    Trim,
}

#[derive(Clone, Copy)]
enum AccessOrder {
    Sequential,
    Random,
}

impl Load {
    /// All loads in the order in which they run. The first fills the disk; the last trims it, as
    /// far as the time allows.
    pub(super) fn all(disk_bytes: u64, time: Duration) -> Vec<Self> {
        use AccessOrder::{Random, Sequential};
        use Action::{DurableWrite, Read, Trim, Write};
        let load = |name, action, order| {
            let request_bytes = match order {
                Sequential => LONG_BYTES,
                Random => SHORT_BYTES.min(disk_bytes),
            };
            let time_max = Some(time);
            Self { name, action, order, request_bytes, disk_bytes, time_max, requests_max: None }
        };
        let once = Some(disk_bytes.div_ceil(LONG_BYTES));
        vec![
            Self {
                time_max: None,
                requests_max: once,
                ..load("sequential write", Write, Sequential)
            },
            load("sequential read", Read, Sequential),
            load("random read", Read, Random),
            load("random write", Write, Random),
            load("random write, flushed", DurableWrite, Random),
            // Trimming a block twice would cost less.
            Self { requests_max: once, ..load("trim", Trim, Sequential) },
        ]
    }

    /// The requests of the load. The sequence is the same in every run.
    pub(super) fn requests(self) -> impl Iterator<Item = DiskOp> {
        let mut rng = StdRng::seed_from_u64(0);
        let places = self.disk_bytes.div_ceil(self.request_bytes);
        (0..self.requests_max.unwrap_or(u64::MAX)).map(move |index| {
            let place = match self.order {
                AccessOrder::Sequential => index % places,
                AccessOrder::Random => rng.random_range(0..places),
            };
            let offset = place * self.request_bytes;
            self.request(offset, self.request_bytes.min(self.disk_bytes - offset), index)
        })
    }

    fn request(&self, offset: u64, bytes: u64, index: u64) -> DiskOp {
        // Written blocks differ from zeros and from the previous contents.
        let data = || vec![index as u8 | 1; bytes as usize].into();
        match self.action {
            Action::Read => DiskOp::Read { offset, bytes: bytes as u32 },
            Action::Write => DiskOp::Write { offset, data: data(), durable: false },
            Action::DurableWrite => DiskOp::Write { offset, data: data(), durable: true },
            Action::Trim => DiskOp::Trim { offset, bytes, durable: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_load_writes_every_byte_once_and_no_load_leaves_the_disk() {
        for disk_bytes in [4096, LONG_BYTES, 5 * LONG_BYTES + 3 * 4096] {
            let loads = Load::all(disk_bytes, Duration::from_secs(1));
            let mut end = 0;
            for request in loads[0].requests() {
                let DiskOp::Write { offset, data, .. } = request else { panic!("no write") };
                assert_eq!(offset, end);
                end += data.len() as u64;
            }
            assert_eq!(end, disk_bytes);
            for request in loads.iter().flat_map(|load| load.requests().take(1000)) {
                let (offset, bytes) = match request {
                    DiskOp::Read { offset, bytes } => (offset, u64::from(bytes)),
                    DiskOp::Write { offset, data, .. } => (offset, data.len() as u64),
                    DiskOp::Trim { offset, bytes, .. } => (offset, bytes),
                    _ => panic!("no load has other requests"),
                };
                assert!(bytes > 0 && offset + bytes <= disk_bytes);
            }
        }
    }
}
