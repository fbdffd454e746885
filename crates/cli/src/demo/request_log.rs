//! A record of the owner's requests to the disk. Secret.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_volume::device::{BlockDevice, DiskOp, WatchedDisk};

/// Records the blocks that are read or written, in the order of the requests.
#[derive(Clone, Default)]
pub(super) struct RequestLog(Arc<Mutex<Vec<u64>>>);

/// A phase of the session.
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// The requested blocks, in order.
    pub(super) blocks: Vec<u64>,
}

impl RequestLog {
    /// Wraps `disk`, and records the blocks that are read or written through the wrapper.
    pub(super) fn of<D: BlockDevice>(&self, disk: Arc<D>) -> Arc<dyn BlockDevice> {
        let (block_bytes, notes) = (u64::from(disk.block_bytes()), self.0.clone());
        let note = move |op: &DiskOp| {
            let touched = match op {
                DiskOp::Read { offset, bytes } => Some((*offset, u64::from(*bytes))),
                DiskOp::Write { offset, data, .. } => Some((*offset, data.len() as u64)),
                DiskOp::Zero { .. } | DiskOp::Trim { .. } | DiskOp::Flush => None,
            };
            if let Some((offset, bytes)) = touched {
                let blocks = offset / block_bytes..(offset + bytes).div_ceil(block_bytes);
                notes.lock().unwrap_or_else(PoisonError::into_inner).extend(blocks);
            }
        };
        Arc::new(WatchedDisk::new(disk, note))
    }

    /// Ends the phase `name`. Returns the blocks that were requested since the end of the previous
    /// phase.
    pub(super) fn end_phase(&self, name: &'static str) -> Phase {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Phase { name, blocks: std::mem::take(&mut blocks) }
    }
}
