//! A disk that passes requests to a volume without a cache: each request makes its accesses before
//! its answer.

use std::sync::{Mutex, PoisonError};

use oblivio_core::{Access, Op};
use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request, WipedBytes};
use oblivio_volume::{Volume, VolumeError, VolumeErrorKind};

/// A disk without the cache and the thread of [`Disk`](oblivio_volume::Disk).
pub struct RawDisk {
    /// The volume. `None` after closing.
    volume: Mutex<Option<Volume>>,
    bytes: u64,
    block_bytes: u32,
}

impl RawDisk {
    /// Creates a disk on `volume`. Dropping the disk closes the volume.
    pub fn new(volume: Volume) -> Self {
        let block_bytes = volume.block_bytes() as u32;
        let bytes = volume.blocks() * u64::from(block_bytes);
        Self { volume: Mutex::new(Some(volume)), bytes, block_bytes }
    }

    fn serve(&self, volume: &mut Volume, op: DiskOp) -> Result<Vec<u8>, VolumeError> {
        let durable = match op {
            DiskOp::Read { offset, bytes } => {
                let blocks = Blocks::around(offset, u64::from(bytes), self.block_bytes);
                let held = blocks.read(volume)?;
                return Ok(held[blocks.offset_in_blocks(offset)..][..bytes as usize].to_vec());
            }
            DiskOp::Write { offset, data, durable } => {
                self.write(volume, offset, &data)?;
                durable
            }
            DiskOp::Zero { offset, bytes, durable } => {
                let whole = self.forget(volume, offset, bytes)?;
                let end = offset + bytes;
                for (start, end) in [(offset, whole.0), (whole.1, end)] {
                    self.write(volume, start, &vec![0; (end - start) as usize])?;
                }
                durable
            }
            DiskOp::Trim { offset, bytes, durable } => {
                self.forget(volume, offset, bytes)?;
                durable
            }
            DiskOp::Flush => true,
        };
        if durable {
            volume.flush()?;
        }
        Ok(Vec::new())
    }

    fn write(&self, volume: &mut Volume, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        if data.is_empty() {
            return Ok(());
        }
        let blocks = Blocks::around(offset, data.len() as u64, self.block_bytes);
        let mut held = match blocks.bytes() == data.len() {
            true => vec![0; data.len()],
            false => blocks.read(volume)?,
        };
        held[blocks.offset_in_blocks(offset)..][..data.len()].copy_from_slice(data);
        blocks.write(volume, &held)
    }

    /// Forgets the whole blocks within the range of `bytes` bytes from `offset` on. Returns the
    /// start and end of these blocks in bytes. If the range contains no whole block, returns the
    /// end of the range twice.
    fn forget(
        &self,
        volume: &mut Volume,
        offset: u64,
        bytes: u64,
    ) -> Result<(u64, u64), VolumeError> {
        let block_bytes = u64::from(self.block_bytes);
        let (first, end) = (offset.div_ceil(block_bytes), (offset + bytes) / block_bytes);
        if first >= end {
            return Ok((offset + bytes, offset + bytes));
        }
        volume.forget(first..end)?;
        Ok((first * block_bytes, end * block_bytes))
    }
}

/// The blocks that a range of bytes touches.
struct Blocks {
    first: u64,
    count: usize,
    block_bytes: usize,
}

impl Blocks {
    fn around(offset: u64, bytes: u64, block_bytes: u32) -> Self {
        let first = offset / u64::from(block_bytes);
        let count = ((offset + bytes).div_ceil(u64::from(block_bytes)) - first) as usize;
        Self { first, count, block_bytes: block_bytes as usize }
    }

    fn bytes(&self) -> usize {
        self.count * self.block_bytes
    }

    /// The position of byte `offset` of the disk within these blocks.
    fn offset_in_blocks(&self, offset: u64) -> usize {
        (offset - self.first * self.block_bytes as u64) as usize
    }

    fn read(&self, volume: &mut Volume) -> Result<Vec<u8>, VolumeError> {
        let mut held = vec![0; self.bytes()];
        let ops = held.chunks_exact_mut(self.block_bytes).map(Op::Read);
        volume.access(&mut self.accesses(ops))?;
        Ok(held)
    }

    fn write(&self, volume: &mut Volume, data: &[u8]) -> Result<(), VolumeError> {
        volume.access(&mut self.accesses(data.chunks_exact(self.block_bytes).map(Op::Write)))
    }

    fn accesses<'a>(&self, ops: impl Iterator<Item = Op<'a>>) -> Vec<Access<'a>> {
        (self.first..).zip(ops).map(|(address, op)| Access { address, op }).collect()
    }
}

impl Drop for RawDisk {
    fn drop(&mut self) {
        let volume = self.volume.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A drop cannot report an error.
        let _ = volume.map(Volume::close);
    }
}

impl BlockDevice for RawDisk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn request_bytes_max(&self) -> u32 {
        u32::MAX
    }

    fn submit(&self, Request { op, done }: Request) {
        let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = volume.as_mut().map(|volume| self.serve(volume, op));
        let closed = || DiskError::new(DiskErrorKind::Closed, "the disk was closed");
        let answer =
            answer.ok_or_else(closed).and_then(|it| it.map_err(|error| disk_error(&error)));
        done(answer.map(WipedBytes::from));
    }
}

/// Converts an error of a volume to a disk error.
pub(super) fn disk_error(error: &VolumeError) -> DiskError {
    let kind = match error.kind() {
        VolumeErrorKind::NoSpace => DiskErrorKind::NoSpace,
        _ => DiskErrorKind::Failed,
    };
    DiskError::new(kind, format!("{:?}: {error}", error.kind()))
}
