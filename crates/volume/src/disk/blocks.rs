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

/// A volume and its cached blocks, as every worker needs them.
pub(super) struct Blocks {
    pub(super) volume: Volume,
    /// The volume's range classes.
    pub(super) classes: Vec<u8>,
    pub(super) policy: RangePolicy,
    pub(super) cache: Cache,
    /// Windows whose reads have begun, the oldest first.
    begun: VecDeque<Vec<InFlightBlock>>,
    pub(super) block_bytes: usize,
    /// Bytes of the disk.
    pub(super) bytes: u64,
}

/// Ranges of one class. Some of their blocks may not be needed. All of the ranges are read before
/// any request is answered. So storage cannot tell from the next request which of the ranges an
/// answer came from.
pub(super) struct RangeAccess {
    pub(super) extents: Vec<Extent>,
    /// The blocks to cache or write. Other blocks of the ranges are read and dropped.
    pub(super) blocks: Range<u64>,
}

impl RangeAccess {
    /// An access to one range, all of whose blocks are needed.
    pub(super) fn whole(extent: Extent) -> Self {
        Self { blocks: extent.blocks(), extents: vec![extent] }
    }

    pub(super) fn class(&self) -> u8 {
        self.extents.first().map_or(0, |extent| extent.class)
    }

    /// The number of blocks that are read.
    pub(super) fn count(&self) -> usize {
        self.extents.iter().map(|extent| extent.count()).sum()
    }
}

/// A block whose read has begun.
struct InFlightBlock {
    block: u64,
    /// Whether the block goes into the cache. If not, its data is dropped.
    is_kept: bool,
    /// Whether the block was forgotten after its read began. Its data is then obsolete.
    is_forgotten: bool,
}

/// Maximum number of blocks in a begun window of single blocks.
const BEGUN_WINDOW_MAX: usize = WINDOW_ACCESSES_MAX / 4;

/// The number of windows that reads are split into, if there are enough reads. After each window,
/// reads whose moves have become durable are announced to storage, and new requests begin. With 16
/// requests in flight, 4 and 8 windows are equally fast on a file. With 4, a server over TLS
/// answers 8 to 15 % more reads, because each window costs messages, syncs of the log and thread
/// wake-ups.
const BEGUN_WINDOWS: usize = 4;

impl Blocks {
    pub(super) fn new(volume: Volume) -> Self {
        let block_bytes = volume.block_bytes();
        let bytes = volume.blocks() * block_bytes as u64;
        let (classes, policy) = (volume.range_classes().to_vec(), volume.range_policy());
        let (cache, begun) = (Cache::new(), VecDeque::new());
        Self { volume, classes, policy, cache, begun, block_bytes, bytes }
    }

    /// Begins to read from the front of `wanted`: one access to longer ranges, in one window, or
    /// the accesses to single blocks that there is room for, in several windows. Each access in
    /// `wanted` must need a block that is neither cached nor [in flight](Self::is_in_flight).
    /// Returns whether any read was begun.
    pub(super) fn begin(
        &mut self,
        wanted: &mut VecDeque<RangeAccess>,
    ) -> Result<bool, VolumeError> {
        let Some(first) = wanted.front() else { return Ok(false) };
        let room = self.volume.reads_to_begin_max()?;
        if first.class() > 0 {
            let fitting = wanted.pop_front_if(|first| first.count() <= room);
            let Some(RangeAccess { extents, blocks }) = fitting else { return Ok(false) };
            self.begin_windows(&[extents], |block| blocks.contains(&block))?;
            return Ok(true);
        }
        let blocks = wanted.iter().take_while(|access| access.class() == 0).count();
        let on_their_way: usize = self.begun.iter().map(Vec::len).sum();
        let window = (on_their_way + blocks).div_ceil(BEGUN_WINDOWS).min(BEGUN_WINDOW_MAX);
        // Filling any room at once would make windows ever shorter, and each has its own log
        // record.
        let count = if room < blocks { room - room % window } else { blocks };
        let blocks: Vec<_> = wanted.drain(..count).flat_map(|access| access.extents).collect();
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
        let coming = |block| InFlightBlock { block, is_kept: is_kept(block), is_forgotten: false };
        let blocks = |window: &Vec<Extent>| {
            window.iter().flat_map(|extent| extent.blocks()).map(coming).collect()
        };
        self.begun.extend(windows.iter().map(blocks));
        Ok(())
    }

    /// The number of blocks of the longest range.
    pub(super) fn longest_range(&self) -> usize {
        self.classes.last().map_or(1, |class| 1 << class)
    }

    /// The number of windows that have begun and not finished.
    pub(super) fn begun_windows(&self) -> usize {
        self.begun.len()
    }

    /// Reads the oldest begun window into the cache.
    pub(super) fn finish_window(&mut self) -> Result<(), VolumeError> {
        let Some(blocks) = self.begun.front() else { return Ok(()) };
        let mut data: Vec<_> = blocks.iter().map(|_| self.zeros()).collect();
        self.volume.finish_reads(&mut data)?;
        let coming = self.begun.pop_front().into_iter().flatten();
        let cached = coming.zip(data).filter(|(coming, _)| coming.is_kept);
        for (InFlightBlock { block, is_forgotten, .. }, data) in cached {
            let data = if is_forgotten { self.zeros() } else { data };
            self.take_in(block, data);
        }
        Ok(())
    }

    /// Caches a block that was read, unless a write has put newer data there.
    fn take_in(&mut self, block: u64, data: WipedBytes) {
        if !self.cache.contains(block) {
            self.cache.insert_clean(block, data);
        }
    }

    /// Finishes all begun windows. Every access other than beginning another window requires this.
    fn finish_all_windows(&mut self) -> Result<(), VolumeError> {
        while self.begun_windows() > 0 {
            self.finish_window()?;
        }
        Ok(())
    }

    /// Reads the blocks `read` into the cache, then writes back `write_back` dirty blocks, the
    /// least recently used first. Makes one access for each block, and accesses to the blocks of
    /// the position map that are missing.
    pub(super) fn exchange(&mut self, read: &[u64], write_back: usize) -> Result<(), VolumeError> {
        self.exchange_by(read, write_back, |volume, batch| {
            volume.access(batch)?;
            Ok(vec![true; batch.len()])
        })
    }

    /// Makes exactly `accesses` accesses: reads and write-backs as in [`Self::exchange`], if they
    /// fit and their positions are on the client, and fetches of the position map blocks
    /// `positions`. The remaining accesses are dummies.
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

    /// Makes exactly `accesses` accesses to ranges of a class: reads the ranges `read` into the
    /// cache, and writes the dirty blocks of `read` and `write_back`. The remaining accesses are
    /// dummies.
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

    /// Reads the ranges of an access, and caches the blocks that it needs.
    pub(super) fn read_ranges(&mut self, access: &RangeAccess) -> Result<(), VolumeError> {
        self.finish_all_windows()?;
        for extent in &access.extents {
            let mut data = room_for(*extent, self.block_bytes);
            let mut ops: Vec<_> = data.iter_mut().map(|data| Op::Read(data)).collect();
            self.volume.access_range(*extent, &mut ops)?;
            let read = extent.blocks().zip(data);
            let needed = read.filter(|(block, _)| access.blocks.contains(block));
            needed.for_each(|(block, data)| self.take_in(block, data));
        }
        Ok(())
    }

    /// Writes dirty blocks back, the least recently used first. If the policy assigns ranges to the
    /// least recently used block, writes only the dirty blocks of those ranges. Otherwise, writes
    /// up to `blocks_max` blocks, and stops before the first block that the policy assigns ranges
    /// to.
    pub(super) fn write_back(&mut self, blocks_max: usize) -> Result<(), VolumeError> {
        let oldest = self.cache.oldest_dirty(blocks_max);
        let mut accesses = oldest.iter().map(|(block, _)| self.dirty_around(*block));
        match accesses.next() {
            Some(ranges) if ranges.class() > 0 => self.write_ranges(&ranges),
            first => {
                let blocks = first.into_iter().chain(accesses).take_while(|it| it.class() == 0);
                let count = blocks.count();
                self.exchange(&[], count)
            }
        }
    }

    /// The ranges to access in order to write back a dirty block. Depending on the policy: the
    /// longest range around it whose blocks are all dirty, the ranges of a request for the dirty
    /// blocks around it, or the fixed range around it.
    fn dirty_around(&self, block: u64) -> RangeAccess {
        match self.policy {
            RangePolicy::Classes => RangeAccess::whole(self.dirty_range_around(block)),
            RangePolicy::Exact => {
                let blocks = self.dirty_stretch_around(block);
                let extents = Extent::exactly(&self.classes, blocks.clone(), self.volume.blocks());
                RangeAccess { extents, blocks }
            }
            RangePolicy::Fixed(class) => RangeAccess::whole(Extent::around(block, class)),
        }
    }

    /// The consecutive dirty blocks around a dirty block, at most the length of the longest range.
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

    /// Writes the dirty blocks of an access. Its other blocks are read and dropped: only requested
    /// blocks are cached.
    fn write_ranges(&mut self, access: &RangeAccess) -> Result<(), VolumeError> {
        self.finish_all_windows()?;
        let Self { volume, cache, .. } = self;
        volume.access_ranges(&access.extents, |block| {
            cache.dirty(block).filter(|_| access.blocks.contains(&block)).map(Op::Write)
        })?;
        self.cache.mark_clean(&access.blocks.clone().collect::<Vec<_>>());
        Ok(())
    }

    /// Reads the blocks `read` and writes `write_back` dirty blocks through `access`, which returns
    /// for each access whether it was made.
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

    /// The first `blocks_max` needed blocks that are not cached, each once, in the order of need.
    pub(super) fn missing(&self, needed: impl Iterator<Item = u64>, blocks_max: usize) -> Vec<u64> {
        let mut seen = HashSet::new();
        let missing = needed.filter(|block| !self.cache.contains(*block) && seen.insert(*block));
        missing.take(blocks_max).collect()
    }

    /// Whether a begun window will bring this block into the cache.
    pub(super) fn is_in_flight(&self, block: u64) -> bool {
        self.begun.iter().flatten().any(|coming| coming.is_kept && coming.block == block)
    }

    /// Whether all of these blocks are cached.
    pub(super) fn are_cached(&self, mut blocks: Range<u64>) -> bool {
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
            // Requests for the block need not wait.
            self.cache.insert_clean(coming.block, WipedBytes::zeros(self.block_bytes));
        }
        self.volume.forget(blocks)
    }
}

/// Zeroed buffers for the blocks of a range.
fn room_for(extent: Extent, block_bytes: usize) -> Vec<WipedBytes> {
    extent.blocks().map(|_| WipedBytes::zeros(block_bytes)).collect()
}
