//! The thread that uses the volume when there is a [`Schedule`](super::Schedule): it makes the same
//! accesses at each tick. Between ticks it moves bytes between requests and the cache, in steps so
//! short that a tick does not wait for them.
//!
//! No request causes a trip: it waits until the accesses of ticks have read or written its blocks.
//! A flush is answered at the end of the tick that has written back the last block that was dirty
//! when the flush arrived. The client's log is synced at the end of every tick. A trim that would
//! cause a checkpoint waits for the next one. When a disk closes, its last ticks suffice to write
//! back the maximum number of dirty blocks. The number of these ticks does not depend on how many
//! blocks are dirty.

use std::collections::{HashSet, VecDeque};

use oblivio_core::durable::{AnyStore, RangePolicy};

use super::blocks::Blocks;
use super::cache::Mark;
use super::pace::{Event, Pace};
use super::pending::{InFlightRequest, RequestStep};
use super::requests::{Queue, REQUESTS_UNDER_WAY_MAX};
use super::schedule::{TickDemand, TickSplit, divide};
use crate::error::VolumeError;
use crate::volume::{Extent, Volume};

/// Maximum number of blocks to examine per access of a tick, when searching for missing or dirty
/// blocks. If twice the number of blocks of an access is greater, that is the maximum. The limit
/// keeps the search from delaying the first access of a tick.
const LOOKS_PER_ACCESS: usize = 16;

pub(super) struct ScheduledWorker {
    blocks: Blocks,
    /// Number of accesses at each tick.
    accesses: usize,
    early_write_backs: bool,
    cache_blocks_max: usize,
    dirty_blocks_max: usize,
    /// Requests in flight, in their order.
    pending: VecDeque<InFlightRequest>,
    /// Requests that wait only until the blocks dirty at their mark are durable, in the order of
    /// marks.
    wait_for_storage: VecDeque<(Mark, InFlightRequest)>,
    /// Whether reads get the extra access of a tick with an odd number of accesses.
    reads_first: bool,
}

impl ScheduledWorker {
    pub(super) fn new(
        mut volume: Volume,
        cache_bytes_max: u64,
        accesses: usize,
        early_write_backs: bool,
    ) -> Self {
        // A tick that comes due while the log or a checkpoint is written is skipped, and storage
        // sees that.
        volume.keep_lengths_constant();
        let blocks = Blocks::new(volume);
        // At most every block of the disk is dirty.
        let in_cache = cache_bytes_max.min(2 * blocks.bytes) / blocks.block_bytes as u64;
        let in_cache = in_cache as usize;
        // With fewer dirty blocks, some accesses of a tick would be of no use.
        let dirty_blocks_max = (in_cache / 2).max(accesses);
        Self {
            blocks,
            accesses,
            early_write_backs,
            cache_blocks_max: in_cache.max(2 * dirty_blocks_max),
            dirty_blocks_max,
            pending: VecDeque::new(),
            wait_for_storage: VecDeque::new(),
            reads_first: false,
        }
    }

    /// Serves requests until the disk closes or its queue has no sender.
    pub(super) fn run(mut self, queue: &Queue, mut pace: Pace) -> Result<AnyStore, VolumeError> {
        if let Err(error) = self.serve(queue, &mut pace) {
            self.refuse(&error);
            return Err(queue.refuse_all(error));
        }
        // The queue is not read from here on.
        if let Err(error) = self.finish(&mut pace) {
            self.refuse(&error);
            return Err(error);
        }
        self.blocks.volume.close()
    }

    /// Answers all unanswered requests with an error.
    fn refuse(&mut self, error: &VolumeError) {
        let waiting = self.wait_for_storage.drain(..).map(|(_, pending)| pending);
        for pending in self.pending.drain(..).chain(waiting) {
            pending.answer(Some(error));
        }
    }

    fn serve(&mut self, queue: &Queue, pace: &mut Pace) -> Result<(), VolumeError> {
        loop {
            let is_full = pace.bounds_requests() && self.unanswered() >= REQUESTS_UNDER_WAY_MAX;
            let event = if is_full { pace.next_tick() } else { pace.next(queue) };
            let mut over = None;
            match event {
                Event::Serve(request) => {
                    self.pending.extend(InFlightRequest::admit(request, &self.blocks))
                }
                Event::Tick(done) => {
                    self.tick(pace)?;
                    over = done;
                }
                Event::Close => return Ok(()),
            }
            self.advance(pace)?;
            // Dropping the sender shows the caller that the tick is over.
            drop(over);
        }
    }

    /// Answers all requests. Then writes back all dirty blocks, always in the number of ticks that
    /// the maximum number of dirty blocks would need.
    fn finish(&mut self, pace: &mut Pace) -> Result<(), VolumeError> {
        while self.unanswered() > 0 {
            pace.next_tick();
            self.tick(pace)?;
            self.advance(pace)?;
        }
        // No later tick will write blocks back.
        self.early_write_backs = true;
        let ticks = self.ticks_to_write_back();
        let mut made = 0;
        // By then no block is dirty. If one were, writing it would matter more than the number of
        // ticks.
        while made < ticks || self.blocks.cache.dirty_blocks() > 0 {
            pace.next_tick();
            self.tick(pace)?;
            made += 1;
        }
        Ok(())
    }

    /// The number of ticks that write back the maximum number of dirty blocks.
    fn ticks_to_write_back(&self) -> usize {
        let volume = &self.blocks.volume;
        if let RangePolicy::Fixed(class @ 1..) = self.blocks.policy {
            // Each dirty block may be in a range of its own.
            let ranges = usize::try_from(volume.blocks() >> class).unwrap_or(usize::MAX);
            return self.dirty_blocks_max.min(ranges).div_ceil(self.accesses);
        }
        let at_a_tick = self.accesses.min(volume.fetches_at_once_max());
        self.dirty_blocks_max.div_ceil(at_a_tick) * volume.accesses_per_block_max()
    }

    fn unanswered(&self) -> usize {
        self.pending.len() + self.wait_for_storage.len()
    }

    /// Makes steps that need no storage until the next tick is due: at least one, if there is any.
    fn advance(&mut self, pace: &Pace) -> Result<(), VolumeError> {
        let mut at = 0;
        while let Some(pending) = self.pending.get_mut(at) {
            match pending.step(&mut self.blocks, self.dirty_blocks_max)? {
                RequestStep::Waits => {
                    at += 1;
                    continue;
                }
                RequestStep::Made => (),
                RequestStep::Done => {
                    let pending = self.pending.remove(at).expect("the index is in bounds");
                    self.settle(pending);
                }
            }
            if pace.is_due() {
                return Ok(());
            }
        }
        self.blocks.cache.shrink(self.cache_blocks_max);
        Ok(())
    }

    /// Answers a request that has nothing left to do. If it must be durable, lets it wait for
    /// storage first.
    fn settle(&mut self, pending: InFlightRequest) {
        if pending.is_durable {
            self.wait_for_storage.push_back((self.blocks.cache.mark(), pending));
        } else {
            pending.answer(None);
        }
    }

    /// Makes the accesses of a tick, always the same number.
    fn tick(&mut self, pace: &mut Pace) -> Result<(), VolumeError> {
        self.reads_first = !self.reads_first;
        match self.blocks.policy {
            RangePolicy::Fixed(class @ 1..) => self.exchange_ranges(class)?,
            RangePolicy::Fixed(0) | RangePolicy::Exact | RangePolicy::Classes => {
                self.exchange_blocks()?;
            }
        }
        // The log is synced even if no request waits for it.
        self.blocks.volume.flush()?;
        pace.ticked();
        // Blocks that were just read stay until their requests have used them.
        let just_read = 2 * self.accesses * self.blocks_per_access();
        self.blocks.cache.shrink(self.cache_blocks_max + just_read);
        while let Some((mark, _)) = self.wait_for_storage.front()
            && self.blocks.cache.dirty_since(*mark, 1) == 0
        {
            let (_, pending) = self.wait_for_storage.pop_front().expect("the queue has a front");
            pending.answer(None);
        }
        Ok(())
    }

    /// Makes a tick of accesses to blocks.
    fn exchange_blocks(&mut self) -> Result<(), VolumeError> {
        let missing = self.missing();
        let split = self.split(missing.len(), self.due(), self.blocks.cache.dirty_blocks());
        let (reads, positions) = (&missing[..split.reads], self.missing_positions()?);
        self.blocks.exchange_exactly(reads, split.write_backs, &positions, self.accesses)
    }

    /// Makes a tick of accesses to ranges of a class.
    fn exchange_ranges(&mut self, class: u8) -> Result<(), VolumeError> {
        let missing = self.missing_ranges(class);
        let mut dirty = self.dirty_ranges(class);
        let due = self.due_ranges(&dirty, class);
        if !self.early_write_backs {
            dirty.truncate(due);
        }
        let split = self.split(missing.len(), due, dirty.len());
        let reads = &missing[..split.reads];
        // The access that reads a range also writes its dirty blocks.
        let others = dirty.into_iter().filter(|range| !reads.contains(range));
        let write_backs: Vec<_> = others.take(split.write_backs).collect();
        self.blocks.exchange_ranges_exactly(reads, &write_backs, class, self.accesses)
    }

    /// Divides the accesses of a tick between `reads` missing blocks or ranges and `dirty` dirty
    /// ones, of which `due` must be written back.
    fn split(&self, reads: usize, due: usize, dirty: usize) -> TickSplit {
        let demand = TickDemand { reads, due, dirty, early_write_backs: self.early_write_backs };
        divide(self.accesses, demand, self.reads_first)
    }

    /// The number of blocks of an access.
    fn blocks_per_access(&self) -> usize {
        match self.blocks.policy {
            RangePolicy::Fixed(class) => 1 << class,
            RangePolicy::Exact | RangePolicy::Classes => 1,
        }
    }

    /// The ranges with missing blocks that requests wait for, each once, up to the number that a
    /// tick can read.
    fn missing_ranges(&self, class: u8) -> Vec<Extent> {
        let needed = self.pending.iter().flat_map(|it| it.needs(self.blocks.block_bytes));
        let looked_at = needed.take(self.looks_max());
        let missing = looked_at.filter(|block| !self.blocks.cache.contains(*block));
        ranges_of(missing, class, self.accesses)
    }

    /// The ranges with a dirty block, each once, in the order in which they are written back. At
    /// most twice the accesses of a tick: those that read may also write some of the ranges.
    fn dirty_ranges(&self, class: u8) -> Vec<Extent> {
        let dirty = self.blocks.cache.dirty_in_order().take(self.looks_max());
        ranges_of(dirty, class, 2 * self.accesses)
    }

    /// Number of ranges in `dirty` that must be written back.
    fn due_ranges(&self, dirty: &[Extent], class: u8) -> usize {
        let cache = &self.blocks.cache;
        match self.wait_for_storage.back() {
            _ if cache.dirty_blocks() >= self.dirty_blocks_max => dirty.len(),
            Some((mark, _)) => {
                let due = cache.dirty_at(*mark).take(self.looks_max());
                ranges_of(due, class, dirty.len()).len()
            }
            None => 0,
        }
    }

    /// The maximum number of blocks to examine before the accesses of a tick.
    fn looks_max(&self) -> usize {
        self.accesses * LOOKS_PER_ACCESS.max(2 * self.blocks_per_access())
    }

    /// The missing blocks that requests wait for, each once, up to the number that a tick can read.
    fn missing(&self) -> Vec<u64> {
        let needed = self.pending.iter().flat_map(|it| it.needs(self.blocks.block_bytes));
        self.blocks.missing(needed.take(self.looks_max()), self.accesses)
    }

    /// The blocks of the position map to fetch before the next blocks can be forgotten. Empty if no
    /// request in flight forgets blocks.
    fn missing_positions(&self) -> Result<Vec<u64>, VolumeError> {
        let forgetting = self.pending.iter().find_map(InFlightRequest::forgets_next);
        forgetting
            .map_or(Ok(Vec::new()), |range| self.blocks.volume.missing_positions_to_forget(range))
    }

    /// Number of blocks that must be written back.
    fn due(&self) -> usize {
        let dirty = self.blocks.cache.dirty_blocks();
        match self.wait_for_storage.back() {
            _ if dirty >= self.dirty_blocks_max => dirty,
            Some((mark, _)) => self.blocks.cache.dirty_since(*mark, self.accesses),
            None => 0,
        }
    }
}

/// The ranges of a class that the blocks are in, each once, in the same order, up to `ranges_max`.
fn ranges_of(blocks: impl Iterator<Item = u64>, class: u8, ranges_max: usize) -> Vec<Extent> {
    let mut seen = HashSet::new();
    let ranges = blocks.map(|block| Extent::around(block, class));
    ranges.filter(|range| seen.insert(*range)).take(ranges_max).collect()
}
