//! The one thread that uses the volume: it serves requests in batches, through the cache. What a batch
//! wants durable is made durable once, at its end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use oblivio_core::durable::AnyStore;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;

use super::DiskOptions;
use super::blocks::Blocks;
use super::pending::{Pending, Step};
use super::requests::{BATCH_BYTES_MAX, BATCH_REQUESTS_MAX, Message, refuse_all};
use super::uncached;
use crate::device::Request;
use crate::device::ops::bytes_carried;
use crate::error::VolumeError;
use crate::volume::Volume;

/// As many blocks are read together, for the requests of a batch or for a long one. The cache may hold
/// so many more than its bound, until the batch is served.
const BATCH_BLOCKS_MAX: usize = 1024;

/// After so long without a request, dirty blocks are written back.
const IDLE: Duration = Duration::from_millis(500);

pub(super) struct Worker {
    blocks: Blocks,
    cache_blocks_max: usize,
    dirty_blocks_max: usize,
}

impl Worker {
    pub(super) fn new(volume: Volume, options: &DiskOptions) -> Self {
        let blocks = Blocks::new(volume);
        let cache_blocks_max = (options.cache_bytes_max / blocks.block_bytes as u64) as usize;
        Self { blocks, cache_blocks_max, dirty_blocks_max: (cache_blocks_max / 2).max(1) }
    }

    /// Serves until it is told to close, or nobody is left to ask.
    pub(super) fn run(mut self, queue: &Receiver<Message>) -> Result<AnyStore, VolumeError> {
        while let Some(first) = self.next(queue)? {
            let mut bytes = bytes_carried(&first.op);
            let mut batch = vec![first];
            let mut is_last = false;
            while batch.len() < BATCH_REQUESTS_MAX && bytes < BATCH_BYTES_MAX {
                match queue.try_recv() {
                    Ok(Message::Serve(request)) => {
                        bytes += bytes_carried(&request.op);
                        batch.push(request);
                    }
                    // Without a schedule, there are no ticks.
                    Ok(Message::Tick(_)) => (),
                    Ok(Message::Close) => {
                        is_last = true;
                        break;
                    }
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            if let Err(error) = self.serve(batch) {
                return Err(refuse_all(queue, error));
            }
            if is_last {
                break;
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

    /// Serves a batch in order, and then makes durable what of it asks for that, at once. After an
    /// error, all that have not been answered are answered with it.
    fn serve(&mut self, batch: Vec<Request>) -> Result<(), VolumeError> {
        if self.cache_blocks_max == 0 {
            return uncached::serve(&mut self.blocks, batch);
        }
        let admitted = batch.into_iter().filter_map(|it| Pending::admit(it, &self.blocks));
        let batch: Vec<_> = admitted.collect();
        let mut failure = self.read_ahead(&batch).err();
        let mut wait_for_flush = Vec::new();
        for mut pending in batch {
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
        failure.map_or(Ok(()), Err)
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
    /// ones.
    fn make_way(&mut self, pending: &Pending) -> Result<(), VolumeError> {
        let needed = pending.needs(self.blocks.block_bytes).take(BATCH_BLOCKS_MAX);
        let needed: Vec<_> = needed.collect();
        // What is at hand of them must not leave for the others: it would be read again.
        needed.iter().for_each(|block| self.blocks.cache.touch(*block));
        match &*self.blocks.missing(needed.into_iter(), BATCH_BLOCKS_MAX) {
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
    /// there are blocks, and as few waits as there are windows.
    fn read_ahead(&mut self, batch: &[Pending]) -> Result<(), VolumeError> {
        let needed = batch.iter().flat_map(|pending| pending.needs(self.blocks.block_bytes));
        self.fetch(&self.blocks.missing(needed, BATCH_BLOCKS_MAX))
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
