//! A disk of rescued blocks.

use std::ops::Range;

use oblivio_core::wiped::WipedBytes;

use super::scratch::Scratch;
use crate::device::ops::{REQUEST_BYTES_MAX, check};
use crate::device::span::parts;
use crate::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request};

/// A read-only disk of rescued blocks. Reading a lost block fails. The disk does not use storage,
/// so storage does not see what is read.
pub struct RescuedDisk {
    scratch: Scratch,
    blocks: u64,
    /// The lost blocks, in ascending order.
    lost: Vec<Range<u64>>,
}

impl RescuedDisk {
    /// A disk of `blocks` blocks, with the contents of `scratch`. The blocks in `lost` are lost.
    pub fn new(scratch: Scratch, blocks: u64, lost: Vec<Range<u64>>) -> Self {
        Self { scratch, blocks, lost }
    }

    fn serve(&self, op: &DiskOp) -> Result<WipedBytes, DiskError> {
        check(op, self.bytes())?;
        match op {
            DiskOp::Read { offset, bytes } => self.read(*offset, *bytes as usize),
            DiskOp::Flush => Ok(WipedBytes::default()),
            DiskOp::Write { .. } | DiskOp::Zero { .. } | DiskOp::Trim { .. } => {
                Err(DiskError::new(
                    DiskErrorKind::ReadOnly,
                    "the rescued disk is read-only: copy the data to a new volume to change it",
                ))
            }
        }
    }

    fn read(&self, offset: u64, bytes: usize) -> Result<WipedBytes, DiskError> {
        let mut answer = WipedBytes::with_capacity(bytes);
        for part in parts(offset, bytes, self.scratch.block_bytes()) {
            if self.is_lost(part.block) {
                return Err(DiskError::new(DiskErrorKind::Lost, "a requested block is lost"));
            }
            let block = self.scratch.get(part.block).map_err(|error| {
                let message = format!("cannot read the rescued data: {error}");
                DiskError::new(DiskErrorKind::Failed, message)
            })?;
            answer.extend_from_slice(&block[part.within]);
        }
        Ok(answer)
    }

    fn is_lost(&self, block: u64) -> bool {
        let after = self.lost.partition_point(|lost| lost.start <= block);
        after > 0 && self.lost[after - 1].contains(&block)
    }
}

impl BlockDevice for RescuedDisk {
    fn bytes(&self) -> u64 {
        self.blocks * self.scratch.block_bytes() as u64
    }

    fn block_bytes(&self) -> u32 {
        self.scratch.block_bytes() as u32
    }

    fn request_bytes_max(&self) -> u32 {
        REQUEST_BYTES_MAX as u32
    }

    fn submit(&self, Request { op, done }: Request) {
        done(self.serve(&op));
    }
}
