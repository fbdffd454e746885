//! Counts the owner's requests to the disk, and lists the first ones of each frame. Secret.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_volume::device::{BlockDevice, DiskOp, WatchedDisk};
use oblivio_volume::insight::{Insight, VolumeCounts};

use super::WatchLimits;
use super::frame::{Inner, OwnerFrame, RequestKind, Requested, Stash};

/// Counts the requests to a disk, lists the first ones of each frame, and reads counters of the
/// volume. Secret.
#[derive(Clone)]
pub struct OwnerSide {
    sums: Arc<Mutex<Sums>>,
    insight: Insight,
}

struct Sums {
    requests_max: usize,
    /// Numbers of requests so far, by [`RequestKind`].
    requests: [u64; RequestKind::COUNT],
    bytes: [u64; RequestKind::COUNT],
    /// The requests since the last frame: the first ones, up to a limit.
    latest: Vec<Requested>,
    left_out: u64,
}

impl OwnerSide {
    /// Creates an owner's side with all counters at zero.
    pub fn new(insight: Insight, limits: &WatchLimits) -> Self {
        let sums = Sums {
            requests_max: limits.requests_max,
            requests: [0; RequestKind::COUNT],
            bytes: [0; RequestKind::COUNT],
            latest: Vec::with_capacity(limits.requests_max),
            left_out: 0,
        };
        Self { sums: Arc::new(Mutex::new(sums)), insight }
    }

    /// Wraps the disk to be served, so that requests to the disk are counted.
    pub fn watched(&self, disk: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
        let side = self.clone();
        Arc::new(WatchedDisk::new(disk, move |op: &DiskOp| side.sums().note(op)))
    }

    /// Returns the owner's part of the current frame. Starts the next frame.
    pub(super) fn take_frame(&self) -> OwnerFrame {
        let VolumeCounts { to_blocks, to_positions, dummies, stash } = self.insight.counts();
        let stash = stash.map(|fill| Stash { blocks: fill.blocks, blocks_max: fill.blocks_max });
        let mut sums = self.sums();
        let empty = Vec::with_capacity(sums.requests_max);
        OwnerFrame {
            requests: sums.requests,
            bytes: sums.bytes,
            latest: std::mem::replace(&mut sums.latest, empty),
            left_out: std::mem::take(&mut sums.left_out),
            inner: Inner { to_blocks, to_positions, to_nothing: dummies, stash },
        }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    fn note(&mut self, op: &DiskOp) {
        let (kind, offset, bytes) = match op {
            DiskOp::Read { offset, bytes } => (RequestKind::Read, *offset, u64::from(*bytes)),
            DiskOp::Write { offset, data, .. } => (RequestKind::Write, *offset, data.len() as u64),
            DiskOp::Zero { offset, bytes, .. } => (RequestKind::Zero, *offset, *bytes),
            DiskOp::Trim { offset, bytes, .. } => (RequestKind::Trim, *offset, *bytes),
            DiskOp::Flush => (RequestKind::Flush, 0, 0),
        };
        self.requests[kind as usize] += 1;
        // A request that the disk refuses may have any length.
        self.bytes[kind as usize] = self.bytes[kind as usize].saturating_add(bytes);
        if kind == RequestKind::Flush {
            return;
        }
        if self.latest.len() < self.requests_max {
            self.latest.push(Requested { kind, offset, bytes });
        } else {
            self.left_out += 1;
        }
    }
}
