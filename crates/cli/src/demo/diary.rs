//! What the owner asks of the disk, written down. Secret.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_volume::device::{BlockDevice, DiskOp, Request};

/// A disk that notes which blocks are asked for, in order.
pub(super) struct WatchedDisk<D> {
    disk: Arc<D>,
    blocks: Mutex<Vec<u64>>,
}

/// A part of the story.
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// The blocks that were asked for.
    pub(super) blocks: Vec<u64>,
}

impl<D: BlockDevice> WatchedDisk<D> {
    pub(super) fn new(disk: Arc<D>) -> Self {
        Self { disk, blocks: Mutex::default() }
    }

    /// Everything since the last time.
    pub(super) fn end_phase(&self, name: &'static str) -> Phase {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        Phase { name, blocks: std::mem::take(&mut blocks) }
    }
}

impl<D: BlockDevice> BlockDevice for WatchedDisk<D> {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }

    fn request_bytes_max(&self) -> u32 {
        self.disk.request_bytes_max()
    }

    fn submit(&self, request: Request) {
        let touched = match &request.op {
            DiskOp::Read { offset, bytes } => Some((*offset, u64::from(*bytes))),
            DiskOp::Write { offset, data, .. } => Some((*offset, data.len() as u64)),
            DiskOp::Zero { .. } | DiskOp::Trim { .. } | DiskOp::Flush => None,
        };
        if let Some((offset, bytes)) = touched {
            let block_bytes = u64::from(self.block_bytes());
            let blocks = offset / block_bytes..(offset + bytes).div_ceil(block_bytes);
            self.blocks.lock().unwrap_or_else(PoisonError::into_inner).extend(blocks);
        }
        self.disk.submit(request);
    }
}
