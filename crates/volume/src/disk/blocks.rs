//! The blocks of a volume, behind a write-back cache.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
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
    begun: VecDeque<Vec<Coming>>,
    pub(super) block_bytes: usize,
    /// Of the disk.
    pub(super) bytes: u64,
}

/// A block on its way into the cache.
struct Coming {
    block: u64,
    /// What comes is what it held before it was forgotten.
    is_forgotten: bool,
}

/// No more blocks are read in one window where several are begun.
const BEGUN_WINDOW_MAX: usize = WINDOW_ACCESSES_MAX / 4;

/// What is to be read is begun in so many windows, if it is enough. After each of them, storage is told of what has become
/// durable, and what was asked meanwhile is begun. With 16 requests in flight, 8 were some 6 % faster than 4, and as fast as 16.
const BEGUN_WINDOWS: usize = 8;

impl Blocks {
    pub(super) fn new(volume: Volume) -> Self {
        let block_bytes = volume.block_bytes();
        let bytes = volume.blocks() * block_bytes as u64;
        Self { volume, cache: Cache::new(), begun: VecDeque::new(), block_bytes, bytes }
    }

    /// Begins to read as many of these blocks as can be begun now, the first of them first, in windows. None of them is at
    /// hand or [on its way](Self::is_coming). Answers whether any was.
    pub(super) fn begin(&mut self, blocks: &mut VecDeque<u64>) -> Result<bool, VolumeError> {
        if blocks.is_empty() {
            return Ok(false);
        }
        let on_their_way: usize = self.begun.iter().map(Vec::len).sum();
        let window = (on_their_way + blocks.len()).div_ceil(BEGUN_WINDOWS).min(BEGUN_WINDOW_MAX);
        let room = self.volume.reads_to_begin_max()?;
        // Who takes any room there is takes ever less at a time, and each window has a record of its own.
        let count = if room < blocks.len() { room - room % window } else { blocks.len() };
        if count == 0 {
            return Ok(false);
        }
        let blocks: Vec<_> = blocks.drain(..count).collect();
        let windows: Vec<_> = blocks.chunks(window).collect();
        self.volume.begin_reads(&windows)?;
        let coming = |block: &u64| Coming { block: *block, is_forgotten: false };
        self.begun.extend(windows.iter().map(|window| window.iter().map(coming).collect()));
        Ok(true)
    }

    /// Windows that were begun and not finished.
    pub(super) fn begun_windows(&self) -> usize {
        self.begun.len()
    }

    /// Reads the window that was begun first into the cache.
    pub(super) fn finish_window(&mut self) -> Result<(), VolumeError> {
        let Some(blocks) = self.begun.front() else { return Ok(()) };
        let mut data: Vec<_> = blocks.iter().map(|_| self.zeros()).collect();
        self.volume.finish_reads(&mut data)?;
        let coming = self.begun.pop_front().into_iter().flatten();
        for (Coming { block, is_forgotten }, data) in coming.zip(data) {
            // Whoever has written to it meanwhile brought something newer.
            if !self.cache.contains(block) {
                let data = if is_forgotten { self.zeros() } else { data };
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
        let mut data: Vec<_> = read.iter().map(|_| self.zeros()).collect();
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

    /// Whether a window that was begun has a block.
    pub(super) fn is_coming(&self, block: u64) -> bool {
        self.begun.iter().flatten().any(|coming| coming.block == block)
    }

    fn zeros(&self) -> WipedBytes {
        WipedBytes::zeros(self.block_bytes)
    }

    /// Forgets the blocks that lie wholly in a range of bytes.
    pub(super) fn forget(&mut self, range: Range<u64>) -> Result<(), VolumeError> {
        let (whole, _) = whole_blocks(range, self.block_bytes as u64);
        if whole.is_empty() { Ok(()) } else { self.forget_blocks(whole) }
    }

    pub(super) fn forget_blocks(&mut self, blocks: Range<u64>) -> Result<(), VolumeError> {
        if !self.volume.has_room_to_forget() {
            self.finish_all_windows()?;
        }
        self.cache.remove_range(blocks.clone());
        for coming in self.begun.iter_mut().flatten().filter(|it| blocks.contains(&it.block)) {
            coming.is_forgotten = true;
            // Nobody has to wait for it.
            self.cache.insert_clean(coming.block, WipedBytes::zeros(self.block_bytes));
        }
        self.volume.forget(blocks)
    }
}
