//! The blocks of a volume, behind a write-back cache.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use oblivio_core::durable::RangePolicy;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};

use super::cache::Cache;
use crate::device::span::whole_blocks;
use crate::error::VolumeError;
use crate::volume::{Extent, Volume};

/// What workers have in common: a volume, and what is at hand of it.
pub(super) struct Blocks {
    pub(super) volume: Volume,
    /// Of its ranges.
    pub(super) classes: Vec<u8>,
    pub(super) policy: RangePolicy,
    pub(super) cache: Cache,
    /// Windows of blocks on their way into the cache.
    begun: VecDeque<Vec<Coming>>,
    pub(super) block_bytes: usize,
    /// Of the disk.
    pub(super) bytes: u64,
}

/// Ranges of one class that are accessed for some blocks. For a read, in one window: so nobody is answered before all of them are
/// read, and storage does not see from what is asked next of which one an answer was.
pub(super) struct Cover {
    pub(super) extents: Vec<Extent>,
    /// These come into the cache, or are written. What else there is of the ranges is read, and does not stay.
    pub(super) blocks: Range<u64>,
}

impl Cover {
    /// A range, for all of its blocks.
    pub(super) fn whole(extent: Extent) -> Self {
        Self { blocks: extent.blocks(), extents: vec![extent] }
    }

    pub(super) fn class(&self) -> u8 {
        self.extents.first().map_or(0, |extent| extent.class)
    }

    /// How many blocks are read.
    pub(super) fn count(&self) -> usize {
        self.extents.iter().map(|extent| extent.count()).sum()
    }
}

/// A block on its way into the cache.
struct Coming {
    block: u64,
    /// What comes is dropped if it was not asked for.
    is_kept: bool,
    /// What comes is what it held before it was forgotten.
    is_forgotten: bool,
}

/// No more blocks are read in one window where several are begun.
const BEGUN_WINDOW_MAX: usize = WINDOW_ACCESSES_MAX / 4;

/// What is to be read is begun in so many windows, if it is enough. After each of them, storage is told of what has become
/// durable, and what was asked meanwhile is begun. With 16 requests in flight, 4 and 8 are as fast on a file, and with 4 a server over TLS answers 8 to 15 % more reads:
/// a window costs messages, syncs of the log and threads that are woken.
const BEGUN_WINDOWS: usize = 4;

impl Blocks {
    pub(super) fn new(volume: Volume) -> Self {
        let block_bytes = volume.block_bytes();
        let bytes = volume.blocks() * block_bytes as u64;
        let (classes, policy) = (volume.range_classes().to_vec(), volume.range_policy());
        let (cache, begun) = (Cache::new(), VecDeque::new());
        Self { volume, classes, policy, cache, begun, block_bytes, bytes }
    }

    /// Begins to read as much of this as can be begun now, the first of it first, in windows. Of each, a block is
    /// neither at hand nor [on its way](Self::is_coming). Answers whether any was.
    pub(super) fn begin(&mut self, wanted: &mut VecDeque<Cover>) -> Result<bool, VolumeError> {
        let Some(first) = wanted.front() else { return Ok(false) };
        let room = self.volume.reads_to_begin_max()?;
        if first.class() > 0 {
            let fitting = wanted.pop_front_if(|first| first.count() <= room);
            let Some(Cover { extents, blocks }) = fitting else { return Ok(false) };
            self.begin_windows(&[extents], |block| blocks.contains(&block))?;
            return Ok(true);
        }
        let blocks = wanted.iter().take_while(|cover| cover.class() == 0).count();
        let on_their_way: usize = self.begun.iter().map(Vec::len).sum();
        let window = (on_their_way + blocks).div_ceil(BEGUN_WINDOWS).min(BEGUN_WINDOW_MAX);
        // Who takes any room there is takes ever less at a time, and each window has a record of its own.
        let count = if room < blocks { room - room % window } else { blocks };
        let blocks: Vec<_> = wanted.drain(..count).flat_map(|cover| cover.extents).collect();
        let windows: Vec<_> = blocks.chunks(window).map(<[_]>::to_vec).collect();
        if windows.is_empty() {
            return Ok(false);
        }
        self.begin_windows(&windows, |_| true)?;
        Ok(true)
    }

    fn begin_windows(
        &mut self,
        windows: &[Vec<Extent>],
        is_kept: impl Fn(u64) -> bool,
    ) -> Result<(), VolumeError> {
        self.volume.begin_extents(windows)?;
        let coming = |block| Coming { block, is_kept: is_kept(block), is_forgotten: false };
        let blocks = |window: &Vec<Extent>| {
            window.iter().flat_map(|extent| extent.blocks()).map(coming).collect()
        };
        self.begun.extend(windows.iter().map(blocks));
        Ok(())
    }

    /// How many blocks the longest range has.
    pub(super) fn longest_range(&self) -> usize {
        self.classes.last().map_or(1, |class| 1 << class)
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
        let kept = coming.zip(data).filter(|(coming, _)| coming.is_kept);
        for (Coming { block, is_forgotten, .. }, data) in kept {
            let data = if is_forgotten { self.zeros() } else { data };
            self.take_in(block, data);
        }
        Ok(())
    }

    /// Takes a block that was read into the cache, unless whoever wrote to it meanwhile has brought something newer.
    fn take_in(&mut self, block: u64, data: WipedBytes) {
        if !self.cache.contains(block) {
            self.cache.insert_clean(block, data);
        }
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

    /// Makes exactly so many accesses to ranges of a class: reads some into the cache, and writes what is dirty of these and of
    /// others.
    pub(super) fn exchange_ranges_exactly(
        &mut self,
        read: &[Extent],
        write_back: &[Extent],
        class: u8,
        accesses: usize,
    ) -> Result<(), VolumeError> {
        self.finish_all_windows()?;
        let Self { volume, cache, .. } = self;
        let all = [read, write_back].concat();
        let is_dirty = |block| cache.dirty(block).map(Op::Write);
        let rest = volume.access_ranges_exactly(&all, class, accesses, is_dirty)?;
        for (block, data) in read.iter().zip(rest).flat_map(|(it, rest)| it.blocks().zip(rest)) {
            self.take_in(block, data);
        }
        for extent in all {
            self.cache.mark_clean(&extent.blocks().collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Reads ranges into the cache.
    pub(super) fn read_ranges(&mut self, cover: &Cover) -> Result<(), VolumeError> {
        self.finish_all_windows()?;
        for extent in &cover.extents {
            let mut data = room_for(*extent, self.block_bytes);
            let mut ops: Vec<_> = data.iter_mut().map(|data| Op::Read(data)).collect();
            self.volume.access_range(*extent, &mut ops)?;
            let kept = extent.blocks().zip(data).filter(|(block, _)| cover.blocks.contains(block));
            kept.for_each(|(block, data)| self.take_in(block, data));
        }
        Ok(())
    }

    /// Writes dirty blocks to storage, those first that were not used for longest: ranges, if that is what the policy has for
    /// the first of them; or up to `blocks_max` blocks.
    pub(super) fn write_back(&mut self, blocks_max: usize) -> Result<(), VolumeError> {
        let oldest = self.cache.oldest_dirty(blocks_max);
        let mut covers = oldest.iter().map(|(block, _)| self.dirty_around(*block));
        match covers.next() {
            Some(ranges) if ranges.class() > 0 => self.write_ranges(&ranges),
            first => {
                let blocks = first.into_iter().chain(covers).take_while(|it| it.class() == 0);
                let count = blocks.count();
                self.exchange(&[], count)
            }
        }
    }

    /// What is written to write back a dirty block: the longest range around it of which all is dirty; or those that a request for
    /// what is dirty around it takes; or the one that any access is to.
    fn dirty_around(&self, block: u64) -> Cover {
        match self.policy {
            RangePolicy::Classes => Cover::whole(self.dirty_range_around(block)),
            RangePolicy::Exact => {
                let blocks = self.dirty_stretch_around(block);
                let extents = Extent::exactly(&self.classes, blocks.clone(), self.volume.blocks());
                Cover { extents, blocks }
            }
            RangePolicy::Fixed(class) => Cover::whole(Extent::around(block, class)),
        }
    }

    /// The dirty blocks before and behind one that follow each other, up to as many as the longest range has.
    fn dirty_stretch_around(&self, block: u64) -> Range<u64> {
        let most = self.longest_range() as u64;
        let is_dirty = |block: &u64| self.cache.is_dirty(*block);
        let before = (0..block).rev().take(most as usize - 1).take_while(is_dirty).count() as u64;
        let start = block - before;
        let behind = (block + 1..start + most).take_while(is_dirty).count() as u64;
        start..block + 1 + behind
    }

    fn dirty_range_around(&self, block: u64) -> Extent {
        let longer = self.classes.iter().rev().filter(|class| **class > 0);
        let mut around = longer.map(|class| Extent::around(block, *class));
        let is_dirty = |extent: &Extent| {
            extent.blocks().end <= self.volume.blocks()
                && extent.blocks().all(|block| self.cache.is_dirty(block))
        };
        around.find(is_dirty).unwrap_or(Extent::of_block(block))
    }

    /// Writes what of these blocks is dirty. The rest is read, and forgotten: what the cache holds was asked for.
    fn write_ranges(&mut self, cover: &Cover) -> Result<(), VolumeError> {
        self.finish_all_windows()?;
        let Self { volume, cache, .. } = self;
        volume.access_ranges(&cover.extents, |block| {
            cache.dirty(block).filter(|_| cover.blocks.contains(&block)).map(Op::Write)
        })?;
        self.cache.mark_clean(&cover.blocks.clone().collect::<Vec<_>>());
        Ok(())
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
        self.begun.iter().flatten().any(|coming| coming.is_kept && coming.block == block)
    }

    /// Whether all of these blocks are at hand.
    pub(super) fn are_at_hand(&self, mut blocks: Range<u64>) -> bool {
        blocks.all(|block| self.cache.contains(block))
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
        let coming = self.begun.iter_mut().flatten().filter(|coming| coming.is_kept);
        for coming in coming.filter(|it| blocks.contains(&it.block)) {
            coming.is_forgotten = true;
            // Nobody has to wait for it.
            self.cache.insert_clean(coming.block, WipedBytes::zeros(self.block_bytes));
        }
        self.volume.forget(blocks)
    }
}

/// Room for the blocks of a range.
fn room_for(extent: Extent, block_bytes: usize) -> Vec<WipedBytes> {
    extent.blocks().map(|_| WipedBytes::zeros(block_bytes)).collect()
}
