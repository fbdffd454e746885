//! The one thread that uses the volume: it serves requests in batches, through the cache. What a batch
//! wants durable is made durable once, at its end.

use oblivio_core::durable::AnyStore;
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use oblivio_core::scheme::WINDOW_ACCESSES_MAX;

use super::DiskOptions;
use super::blocks::Blocks;
use super::requests::{BATCH_BYTES_MAX, BATCH_REQUESTS_MAX, Message, disk_error, refuse_all};
use super::uncached;
use crate::device::ops::{bytes_carried, check, is_durable};
use crate::device::span::parts;
use crate::device::{DiskOp, Request};
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
        let mut failure = self.read_ahead(&batch).err();
        let mut wait_for_flush = Vec::new();
        for Request { op, done } in batch {
            if let Some(error) = &failure {
                done(Err(disk_error(error)));
                continue;
            }
            if let Err(error) = check(&op, self.blocks.bytes) {
                done(Err(error));
                continue;
            }
            let is_durable = is_durable(&op);
            match self.serve_one(op) {
                Ok(_) if is_durable => wait_for_flush.push(done),
                Ok(answer) => done(Ok(answer)),
                Err(error) => {
                    done(Err(disk_error(&error)));
                    failure = Some(error);
                }
            }
        }
        if failure.is_none() && !wait_for_flush.is_empty() {
            failure = self.flush().err();
        }
        for done in wait_for_flush {
            done(failure.as_ref().map_or(Ok(Vec::new()), |error| Err(disk_error(error))));
        }
        self.blocks.cache.shrink(self.cache_blocks_max);
        failure.map_or(Ok(()), Err)
    }

    /// Does what is asked, but does not make it durable.
    fn serve_one(&mut self, op: DiskOp) -> Result<Vec<u8>, VolumeError> {
        match op {
            DiskOp::Read { offset, bytes } => return self.read(offset, bytes as usize),
            DiskOp::Write { offset, data, .. } => self.write(offset, &data)?,
            DiskOp::Zero { offset, bytes, .. } => {
                for edge in self.blocks.forget(offset..offset + bytes)? {
                    let zeros = vec![0; (edge.end - edge.start) as usize];
                    self.write(edge.start, &zeros)?;
                }
            }
            DiskOp::Trim { offset, bytes, .. } => {
                self.blocks.forget(offset..offset + bytes)?;
            }
            DiskOp::Flush => (),
        }
        Ok(Vec::new())
    }

    fn read(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, VolumeError> {
        let mut answer = vec![0; bytes];
        let parts: Vec<_> = parts(offset, bytes, self.blocks.block_bytes).collect();
        for parts in parts.chunks(BATCH_BLOCKS_MAX) {
            let missing = parts.iter().map(|part| part.block);
            let missing: Vec<_> =
                missing.filter(|block| !self.blocks.cache.contains(*block)).collect();
            self.fetch(&missing)?;
            for part in parts {
                let block = self.blocks.cache.get(part.block).expect("it was fetched");
                answer[part.range()].copy_from_slice(&block[part.within.clone()]);
            }
            self.shrink()?;
        }
        Ok(answer)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        for part in parts(offset, data.len(), self.blocks.block_bytes) {
            let new = &data[part.range()];
            if part.is_whole(self.blocks.block_bytes) {
                self.blocks.cache.insert_dirty(part.block, new.into());
            } else {
                if !self.blocks.cache.contains(part.block) {
                    self.fetch(&[part.block])?;
                }
                let block = self.blocks.cache.get_mut(part.block).expect("it was fetched");
                block[part.within].copy_from_slice(new);
            }
            self.shrink()?;
        }
        Ok(())
    }

    /// Makes everything so far durable.
    fn flush(&mut self) -> Result<(), VolumeError> {
        self.write_back_all()?;
        self.blocks.volume.flush()
    }

    /// Brings the blocks that a batch will ask for into the cache, in as few accesses to storage as
    /// there are blocks, and as few waits as there are windows.
    fn read_ahead(&mut self, batch: &[Request]) -> Result<(), VolumeError> {
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for request in batch.iter().filter(|request| check(&request.op, self.blocks.bytes).is_ok())
        {
            let (offset, bytes, only_edges) = match &request.op {
                DiskOp::Read { offset, bytes } => (*offset, *bytes as usize, false),
                DiskOp::Write { offset, data, .. } => (*offset, data.len(), true),
                _ => continue,
            };
            for part in parts(offset, bytes, self.blocks.block_bytes) {
                let is_needed = !(only_edges && part.is_whole(self.blocks.block_bytes));
                if is_needed && !self.blocks.cache.contains(part.block) && seen.insert(part.block) {
                    wanted.push(part.block);
                }
                if wanted.len() == BATCH_BLOCKS_MAX {
                    return self.fetch(&wanted);
                }
            }
        }
        self.fetch(&wanted)
    }

    /// Reads blocks from storage into the cache.
    fn fetch(&mut self, blocks: &[u64]) -> Result<(), VolumeError> {
        blocks.chunks(WINDOW_ACCESSES_MAX).try_for_each(|window| self.blocks.exchange(window, 0))
    }

    /// Keeps the cache within the bounds that hold while a batch is served.
    fn shrink(&mut self) -> Result<(), VolumeError> {
        while self.blocks.cache.dirty_blocks() > self.dirty_blocks_max {
            self.write_back(WINDOW_ACCESSES_MAX)?;
        }
        self.blocks.cache.shrink(self.cache_blocks_max + BATCH_BLOCKS_MAX);
        Ok(())
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
