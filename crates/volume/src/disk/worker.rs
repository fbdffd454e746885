//! The one thread that uses the volume: it serves requests in batches, through the cache. What a batch
//! wants durable is made durable once, at its end.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use oblivio_core::durable::AnyStore;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;

use super::blocks::Blocks;
use super::pending::{Pending, Step};
use super::requests::{Message, Waiting, refuse_all};
use super::uncached;
use super::{BATCH_BLOCKS_MAX, DiskOptions};
use crate::device::Request;
use crate::error::VolumeError;
use crate::volume::Volume;

/// After so long without a request, dirty blocks are written back.
const IDLE: Duration = Duration::from_millis(500);

pub(super) struct Worker {
    blocks: Blocks,
    cache_blocks_max: usize,
    dirty_blocks_max: usize,
}

/// Requests that are served together.
struct Batch {
    requests: Vec<Pending>,
    /// That they read and write.
    bytes: u64,
    /// Nobody asks for more.
    is_last: bool,
}

/// Whether nobody asks for more.
struct IsLast(bool);

impl Worker {
    pub(super) fn new(volume: Volume, options: &DiskOptions) -> Self {
        let blocks = Blocks::new(volume);
        let cache_blocks_max = (options.cache_bytes_max / blocks.block_bytes as u64) as usize;
        Self { blocks, cache_blocks_max, dirty_blocks_max: (cache_blocks_max / 2).max(1) }
    }

    /// Serves until it is told to close, or nobody is left to ask.
    pub(super) fn run(mut self, queue: &Receiver<Message>) -> Result<AnyStore, VolumeError> {
        while let Some(first) = self.next(queue)? {
            match self.serve_all(Waiting::with(first, queue), queue) {
                Ok(IsLast(true)) => break,
                Ok(IsLast(false)) => (),
                Err(error) => return Err(refuse_all(queue, error)),
            }
        }
        self.write_back_all()?;
        self.blocks.volume.close()
    }

    /// The next request; while there is none, dirty blocks are written back.
    fn next(&mut self, queue: &Receiver<Message>) -> Result<Option<Request>, VolumeError> {
        let message = match queue.recv_timeout(IDLE) {
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = self.flush() {
                    return Err(refuse_all(queue, error));
                }
                queue.recv().ok()
            }
            received => received.ok(),
        };
        Ok(message.and_then(|message| match message {
            Message::Serve(request) => Some(request),
            Message::Tick(_) | Message::Close => None,
        }))
    }

    /// Serves those that wait, and those that come meanwhile.
    fn serve_all(
        &mut self,
        waiting: Waiting,
        queue: &Receiver<Message>,
    ) -> Result<IsLast, VolumeError> {
        let mut is_last = IsLast(waiting.is_last);
        if self.cache_blocks_max == 0 {
            uncached::serve(&mut self.blocks, waiting.requests)?;
            return Ok(is_last);
        }
        let mut next = Some(self.admit(waiting));
        while let Some(batch) = next {
            is_last = IsLast(batch.is_last);
            next = self.serve(batch, queue)?;
        }
        Ok(is_last)
    }

    /// Answers those that cannot be served.
    fn admit(&self, waiting: Waiting) -> Batch {
        let Waiting { requests, bytes, is_last } = waiting;
        let admitted = requests.into_iter().filter_map(|it| Pending::admit(it, &self.blocks));
        Batch { requests: admitted.collect(), bytes, is_last }
    }

    /// Serves a batch in order, and then makes durable what of it asks for that, at once. After an
    /// error, all that have not been answered are answered with it. Answers the batch that comes next, if
    /// it was begun meanwhile.
    fn serve(
        &mut self,
        batch: Batch,
        queue: &Receiver<Message>,
    ) -> Result<Option<Batch>, VolumeError> {
        let mut next = None;
        let mut failure = self.read_ahead(&batch, queue, &mut next).err();
        let mut wait_for_flush = Vec::new();
        for mut pending in batch.requests {
            if failure.is_none() {
                failure = self.carry_out(&mut pending).err();
            }
            if pending.is_durable && failure.is_none() {
                wait_for_flush.push(pending);
            } else {
                pending.answer(failure.as_ref());
            }
        }
        if failure.is_none() && !wait_for_flush.is_empty() {
            failure = self.flush().err();
        }
        wait_for_flush.into_iter().for_each(|pending| pending.answer(failure.as_ref()));
        self.blocks.cache.shrink(self.cache_blocks_max);
        let Some(failure) = failure else { return Ok(next) };
        let not_served = next.into_iter().flat_map(|batch| batch.requests);
        not_served.for_each(|pending| pending.answer(Some(&failure)));
        Err(failure)
    }

    /// Does what is asked, with all accesses that it takes, but does not make it durable.
    fn carry_out(&mut self, pending: &mut Pending) -> Result<(), VolumeError> {
        pending.forget_all(&mut self.blocks)?;
        loop {
            match pending.step(&mut self.blocks, self.dirty_blocks_max)? {
                Step::Done => return Ok(()),
                Step::Made => (),
                Step::Waits => self.make_way(pending)?,
            }
            // So many hold while a batch is served.
            self.blocks.cache.shrink(self.cache_blocks_max + BATCH_BLOCKS_MAX);
        }
    }

    /// Brings the blocks that a request waits for into the cache; if it waits for none, there are too many dirty
    /// ones. Some may be on their way for the batch that comes next.
    fn make_way(&mut self, pending: &Pending) -> Result<(), VolumeError> {
        let needed = pending.needs(self.blocks.block_bytes).take(BATCH_BLOCKS_MAX);
        let needed: Vec<_> = needed.collect();
        // What is at hand of them must not leave for the others: it would be read again.
        needed.iter().for_each(|block| self.blocks.cache.touch(*block));
        let is_awaited = needed.iter().any(|block| self.blocks.is_awaited(*block));
        match &*self.blocks.missing(needed.into_iter(), BATCH_BLOCKS_MAX) {
            [] if is_awaited => self.blocks.finish_window(),
            [] => self.write_back(WINDOW_ACCESSES_MAX),
            missing => self.fetch(missing),
        }
    }

    /// Makes everything so far durable.
    fn flush(&mut self) -> Result<(), VolumeError> {
        self.write_back_all()?;
        self.blocks.volume.flush()
    }

    /// Brings the blocks that a batch will ask for into the cache, in as few accesses to storage as
    /// there are blocks, and as few waits as there are windows. While the last of them are read, the moves of what waits
    /// by then become durable: of the `next` batch.
    fn read_ahead(
        &mut self,
        batch: &Batch,
        queue: &Receiver<Message>,
        next: &mut Option<Batch>,
    ) -> Result<(), VolumeError> {
        let missing = self.missing(batch);
        let mut left = &missing[..];
        loop {
            left = &left[self.blocks.begin(left)?..];
            match self.blocks.begun_windows() {
                0 => return self.fetch(left),
                1 if left.is_empty() => break,
                _ => self.blocks.finish_window()?,
            }
        }
        if !batch.is_last {
            let waiting = Waiting::beside(batch.bytes, queue);
            if waiting.is_last || !waiting.requests.is_empty() {
                let missing = self.missing(next.insert(self.admit(waiting)));
                self.blocks.begin(&missing)?;
            }
        }
        self.blocks.finish_window()
    }

    fn missing(&self, batch: &Batch) -> Vec<u64> {
        let block_bytes = self.blocks.block_bytes;
        let needed = batch.requests.iter().flat_map(|pending| pending.needs(block_bytes));
        self.blocks.missing(needed, BATCH_BLOCKS_MAX)
    }

    /// Reads blocks from storage into the cache.
    fn fetch(&mut self, blocks: &[u64]) -> Result<(), VolumeError> {
        blocks.chunks(WINDOW_ACCESSES_MAX).try_for_each(|window| self.blocks.exchange(window, 0))
    }

    fn write_back_all(&mut self) -> Result<(), VolumeError> {
        while self.blocks.cache.dirty_blocks() > 0 {
            self.write_back(WINDOW_ACCESSES_MAX)?;
        }
        Ok(())
    }

    /// Writes dirty blocks to storage, those first that were not used for longest.
    fn write_back(&mut self, blocks_max: usize) -> Result<(), VolumeError> {
        self.blocks.exchange(&[], blocks_max)
    }
}
