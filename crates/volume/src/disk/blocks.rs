//! The blocks of a volume, behind a write-back cache.

use std::collections::HashSet;
use std::ops::Range;

use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};

use super::cache::Cache;
use crate::device::span::whole_blocks;
use crate::error::VolumeError;
use crate::volume::Volume;

/// What workers have in common: a volume, and what is at hand of it.
pub(super) struct Blocks {
    pub(super) volume: Volume,
    pub(super) cache: Cache,
    pub(super) block_bytes: usize,
    /// Of the disk.
    pub(super) bytes: u64,
}

impl Blocks {
    pub(super) fn new(volume: Volume) -> Self {
        let block_bytes = volume.block_bytes();
        let bytes = volume.blocks() * block_bytes as u64;
        Self { volume, cache: Cache::new(), block_bytes, bytes }
    }

    /// Makes accesses, in this order: reads blocks into the cache, and writes those to storage that are
    /// the next to be written back.
    pub(super) fn exchange(&mut self, read: &[u64], write_back: usize) -> Result<(), VolumeError> {
        self.exchange_by(read, write_back, |volume, batch| {
            volume.access(batch)?;
            Ok(vec![true; batch.len()])
        })
    }

    /// Makes exactly so many accesses. They do as much as they can of an [exchange](Self::exchange),
    /// and fetch `positions`.
    pub(super) fn exchange_exactly(
        &mut self,
        read: &[u64],
        write_back: usize,
        positions: &[u64],
        accesses: usize,
    ) -> Result<(), VolumeError> {
        self.exchange_by(read, write_back, |volume, batch| {
            volume.access_exactly(batch, positions, accesses)
        })
    }

    /// `access` answers which of the accesses it has made.
    fn exchange_by(
        &mut self,
        read: &[u64],
        write_back: usize,
        access: impl FnOnce(&mut Volume, &mut [Access<'_>]) -> Result<Vec<bool>, VolumeError>,
    ) -> Result<(), VolumeError> {
        let mut data: Vec<_> = read.iter().map(|_| WipedBytes::zeros(self.block_bytes)).collect();
        let reads = read.iter().zip(&mut data);
        let reads = reads.map(|(block, data)| Access { address: *block, op: Op::Read(data) });
        let dirty = self.cache.oldest_dirty(write_back);
        let written: Vec<_> = dirty.iter().map(|(block, _)| *block).collect();
        let writes = dirty.into_iter();
        let writes = writes.map(|(block, data)| Access { address: block, op: Op::Write(data) });
        let made = access(&mut self.volume, &mut reads.chain(writes).collect::<Vec<_>>())?;
        let (have_read, have_written) = made.split_at(read.len());
        let have_read = read.iter().zip(data).zip(have_read).filter(|(_, made)| **made);
        for ((block, data), _) in have_read {
            self.cache.insert_clean(*block, data);
        }
        let have_written = written.into_iter().zip(have_written).filter(|(_, made)| **made);
        self.cache.mark_clean(&have_written.map(|(block, _)| block).collect::<Vec<_>>());
        Ok(())
    }

    /// The first of the blocks that are not at hand, each once, in the order in which they are needed.
    pub(super) fn missing(&self, needed: impl Iterator<Item = u64>, blocks_max: usize) -> Vec<u64> {
        let mut seen = HashSet::new();
        let missing = needed.filter(|block| !self.cache.contains(*block) && seen.insert(*block));
        missing.take(blocks_max).collect()
    }

    /// Forgets the blocks that lie wholly in a range of bytes.
    pub(super) fn forget(&mut self, range: Range<u64>) -> Result<(), VolumeError> {
        let (whole, _) = whole_blocks(range, self.block_bytes as u64);
        if whole.is_empty() { Ok(()) } else { self.forget_blocks(whole) }
    }

    pub(super) fn forget_blocks(&mut self, blocks: Range<u64>) -> Result<(), VolumeError> {
        self.cache.remove_range(blocks.clone());
        self.volume.forget(blocks)
    }
}
