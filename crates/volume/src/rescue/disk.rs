//! What was rescued, as a disk that can be read.

use std::ops::Range;

use oblivio_core::wiped::WipedBytes;

use super::scratch::Scratch;
use crate::device::ops::{REQUEST_BYTES_MAX, check};
use crate::device::span::parts;
use crate::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request};

/// A disk of what was rescued. Nothing of it can be changed, and whoever reads what is lost is told so. It asks
/// storage for nothing: storage does not see what is read.
pub struct RescuedDisk {
    scratch: Scratch,
    blocks: u64,
    /// In order.
    lost: Vec<Range<u64>>,
}

impl RescuedDisk {
    /// A disk of `blocks` blocks, which are those in `scratch`; those of `lost` are lost.
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
                    "what was rescued can be read, not changed",
                ))
            }
        }
    }

    fn read(&self, offset: u64, bytes: usize) -> Result<WipedBytes, DiskError> {
        let mut answer = WipedBytes::with_capacity(bytes);
        for part in parts(offset, bytes, self.scratch.block_bytes()) {
            if self.is_lost(part.block) {
                return Err(DiskError::new(
                    DiskErrorKind::Lost,
                    "a block that is asked for is lost",
                ));
            }
            let block = self.scratch.get(part.block).map_err(|error| {
                let message = format!("what was rescued cannot be read: {error}");
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
