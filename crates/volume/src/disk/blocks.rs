//! The blocks of a volume, behind a write-back cache.

use std::collections::{HashSet, VecDeque};
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
    /// Windows of blocks on their way into the cache.
    begun: VecDeque<Vec<u64>>,
    pub(super) block_bytes: usize,
    /// Of the disk.
    pub(super) bytes: u64,
}

impl Blocks {
    pub(super) fn new(volume: Volume) -> Self {
        let block_bytes = volume.block_bytes();
        let bytes = volume.blocks() * block_bytes as u64;
        Self { volume, cache: Cache::new(), begun: VecDeque::new(), block_bytes, bytes }
    }

    /// Begins to read as many of these blocks as can be begun now, in one window more or two, and says how many. None of
    /// them is at hand or [on its way](Self::missing).
    pub(super) fn begin(&mut self, blocks: &[u64]) -> Result<usize, VolumeError> {
        let count = blocks.len().min(self.volume.reads_to_begin_max()?);
        if count == 0 {
            return Ok(0);
        }
        // While the second is read, others can be begun.
        let windows: Vec<_> = blocks[..count].chunks(count.div_ceil(2)).collect();
        self.volume.begin_reads(&windows)?;
        self.begun.extend(windows.into_iter().map(<[u64]>::to_vec));
        Ok(count)
    }

    /// Windows that were begun and not finished.
    pub(super) fn begun_windows(&self) -> usize {
        self.begun.len()
    }

    /// Reads the window that was begun first into the cache.
    pub(super) fn finish_window(&mut self) -> Result<(), VolumeError> {
        let Some(blocks) = self.begun.front() else { return Ok(()) };
        let mut data: Vec<_> = blocks.iter().map(|_| WipedBytes::zeros(self.block_bytes)).collect();
        self.volume.finish_reads(&mut data)?;
        for (block, data) in self.begun.pop_front().into_iter().flatten().zip(data) {
            // Whoever has written to it meanwhile brought something newer.
            if !self.cache.contains(block) {
                self.cache.insert_clean(block, data);
            }
        }
        Ok(())
    }

    /// Everything else comes after what was begun.
    fn finish_all_windows(&mut self) -> Result<(), VolumeError> {
        while self.begun_windows() > 0 {
            self.finish_window()?;
        }
        Ok(())
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
        self.finish_all_windows()?;
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

    /// The first of the blocks that are neither at hand nor on their way, each once, in the order in which they are needed.
    pub(super) fn missing(&self, needed: impl Iterator<Item = u64>, blocks_max: usize) -> Vec<u64> {
        let mut seen = HashSet::new();
        let is_coming = |block: &u64| self.begun.iter().any(|window| window.contains(block));
        let missing = needed.filter(|block| {
            !self.cache.contains(*block) && !is_coming(block) && seen.insert(*block)
        });
        missing.take(blocks_max).collect()
    }

    /// Forgets the blocks that lie wholly in a range of bytes.
    pub(super) fn forget(&mut self, range: Range<u64>) -> Result<(), VolumeError> {
        let (whole, _) = whole_blocks(range, self.block_bytes as u64);
        if whole.is_empty() { Ok(()) } else { self.forget_blocks(whole) }
    }

    pub(super) fn forget_blocks(&mut self, blocks: Range<u64>) -> Result<(), VolumeError> {
        self.finish_all_windows()?;
        self.cache.remove_range(blocks.clone());
        self.volume.forget(blocks)
    }
}
