//! The thread that uses the volume when there is a [`Schedule`](super::Schedule): it makes the same accesses at each
//! tick. In between it moves bytes between requests and the cache, in steps so short that a tick does
//! not wait for them.
//!
//! Whatever the owner asks for makes no trip of its own: a request waits until the accesses of ticks
//! have done what it needs. A flush is answered at the end of the tick that has written back the last
//! block that was dirty when it came; the client's log is synced at the end of every tick. A trim waits
//! for the next checkpoint where it would cause one. A disk that is closed makes as many ticks as it
//! takes to write back the most blocks that may be dirty, whether they are or not.

use std::collections::VecDeque;

use oblivio_core::durable::AnyStore;

use super::blocks::Blocks;
use super::cache::Mark;
use super::pace::{Event, Pace};
use super::pending::{Pending, Step};
use super::requests::{Queue, REQUESTS_UNDER_WAY_MAX};
use super::schedule::{Wanted, divide};
use crate::error::VolumeError;
use crate::volume::Volume;

/// For each access of a tick, so many blocks of requests are looked at for one that is missing.
const LOOKS_PER_ACCESS: usize = 16;

pub(super) struct ScheduledWorker {
    blocks: Blocks,
    /// At each tick.
    accesses: usize,
    early_write_backs: bool,
    cache_blocks_max: usize,
    dirty_blocks_max: usize,
    /// In the order in which they came.
    pending: VecDeque<Pending>,
    /// All that is left is that what was dirty at the mark becomes durable. In the order of marks.
    wait_for_storage: VecDeque<(Mark, Pending)>,
    /// Whose turn it is where an odd number of accesses is divided.
    reads_first: bool,
}

impl ScheduledWorker {
    pub(super) fn new(
        mut volume: Volume,
        cache_bytes_max: u64,
        accesses: usize,
        early_write_backs: bool,
    ) -> Self {
        // A tick that comes while the log or a checkpoint is written is left out, and storage sees that.
        volume.keep_lengths_constant();
        let blocks = Blocks::new(volume);
        // No more blocks are dirty than the disk has.
        let in_cache = cache_bytes_max.min(2 * blocks.bytes) / blocks.block_bytes as u64;
        let in_cache = in_cache as usize;
        // With less, the accesses of a tick could not all be of use.
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

    /// Serves until it is told to close, or nobody is left to ask.
    pub(super) fn run(mut self, queue: &Queue, mut pace: Pace) -> Result<AnyStore, VolumeError> {
        if let Err(error) = self.serve(queue, &mut pace) {
            self.refuse(&error);
            return Err(queue.refuse_all(error));
        }
        // Nobody else is asked for, or answered, from here on.
        if let Err(error) = self.finish(&mut pace) {
            self.refuse(&error);
            return Err(error);
        }
        self.blocks.volume.close()
    }

    /// Answers all that have not been answered with an error.
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
                Event::Serve(request) => self.pending.extend(Pending::admit(request, &self.blocks)),
                Event::Tick(done) => {
                    self.tick(pace)?;
                    over = done;
                }
                Event::Close => return Ok(()),
            }
            self.advance(pace)?;
            // Whoever waits for the end of the tick learns of it so.
            drop(over);
        }
    }

    /// Answers everybody, and writes back what is dirty: in as many ticks as it might take.
    fn finish(&mut self, pace: &mut Pace) -> Result<(), VolumeError> {
        while self.unanswered() > 0 {
            pace.next_tick();
            self.tick(pace)?;
            self.advance(pace)?;
        }
        // From here on there is no later.
        self.early_write_backs = true;
        let volume = &self.blocks.volume;
        let at_a_tick = self.accesses.min(volume.fetches_at_once_max());
        let ticks = self.dirty_blocks_max.div_ceil(at_a_tick) * volume.accesses_per_block_max();
        let mut made = 0;
        // There is nothing left by then. If there were, it would be more important than the number.
        while made < ticks || self.blocks.cache.dirty_blocks() > 0 {
            pace.next_tick();
            self.tick(pace)?;
            made += 1;
        }
        Ok(())
    }

    fn unanswered(&self) -> usize {
        self.pending.len() + self.wait_for_storage.len()
    }

    /// Does what can be done without storage, until the next tick is due. After a tick it does
    /// something in any case.
    fn advance(&mut self, pace: &Pace) -> Result<(), VolumeError> {
        let mut at = 0;
        while let Some(pending) = self.pending.get_mut(at) {
            match pending.step(&mut self.blocks, self.dirty_blocks_max)? {
                Step::Waits => {
                    at += 1;
                    continue;
                }
                Step::Made => (),
                Step::Done => {
                    let pending = self.pending.remove(at).expect("it was there");
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

    /// There is nothing left to do for a request, but perhaps to wait.
    fn settle(&mut self, pending: Pending) {
        if pending.is_durable {
            self.wait_for_storage.push_back((self.blocks.cache.mark(), pending));
        } else {
            pending.answer(None);
        }
    }

    /// Makes exactly as many accesses as at every other tick.
    fn tick(&mut self, pace: &mut Pace) -> Result<(), VolumeError> {
        let missing = self.missing();
        self.reads_first = !self.reads_first;
        let wanted = Wanted {
            reads: missing.len(),
            due: self.due(),
            dirty: self.blocks.cache.dirty_blocks(),
            early_write_backs: self.early_write_backs,
        };
        let shares = divide(self.accesses, wanted, self.reads_first);
        let (reads, positions) = (&missing[..shares.reads], self.missing_positions()?);
        self.blocks.exchange_exactly(reads, shares.write_backs, &positions, self.accesses)?;
        // Whether somebody waits for it or not.
        self.blocks.volume.flush()?;
        pace.ticked();
        self.blocks.cache.shrink(self.cache_blocks_max + 2 * self.accesses);
        while let Some((mark, _)) = self.wait_for_storage.front()
            && self.blocks.cache.dirty_since(*mark, 1) == 0
        {
            let (_, pending) = self.wait_for_storage.pop_front().expect("it was there");
            pending.answer(None);
        }
        Ok(())
    }

    /// The blocks that requests wait for, each once: at most as many as a tick can read.
    fn missing(&self) -> Vec<u64> {
        let needed = self.pending.iter().flat_map(|it| it.needs(self.blocks.block_bytes));
        self.blocks.missing(needed.take(LOOKS_PER_ACCESS * self.accesses), self.accesses)
    }

    /// The blocks of the position map that the first request which forgets blocks waits for.
    fn missing_positions(&self) -> Result<Vec<u64>, VolumeError> {
        let forgetting = self.pending.iter().find_map(Pending::forgets_next);
        forgetting.map_or(Ok(Vec::new()), |range| self.blocks.volume.needs_to_forget(range))
    }

    /// How many blocks must be written back.
    fn due(&self) -> usize {
        let dirty = self.blocks.cache.dirty_blocks();
        match self.wait_for_storage.back() {
            _ if dirty >= self.dirty_blocks_max => dirty,
            Some((mark, _)) => self.blocks.cache.dirty_since(*mark, self.accesses),
            None => 0,
        }
    }
}
