//! The thread that uses the volume. It serves requests in order, through the cache, and lets
//! storage read ahead for waiting requests. Requests that wait together become durable with one
//! flush.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use oblivio_core::durable::{AnyStore, RangePolicy};
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;

use super::blocks::{Blocks, RangeAccess};
use super::pending::{InFlightRequest, ReadAhead, RequestStep};
use super::requests::{Message, Queue, RequestBatch};
use super::streams::Streams;
use super::uncached;
use super::{BLOCKS_UNDER_WAY_MAX, DiskOptions};
use crate::device::Request;
use crate::error::VolumeError;
use crate::volume::Volume;

/// Time without a request after which dirty blocks are written back.
const IDLE: Duration = Duration::from_millis(500);

pub(super) struct Worker {
    blocks: Blocks,
    cache_blocks_max: usize,
    dirty_blocks_max: usize,
    /// Requests in flight, in their order.
    pending: VecDeque<InFlightRequest>,
    /// Bytes that the pending requests read and write.
    bytes: u64,
    /// Number of pending requests that the look-ahead has covered completely.
    looked_at: usize,
    /// Reads that the covered requests need and that have not begun.
    missing: VecDeque<RangeAccess>,
    /// Whether ranges are read past the end of a request. The cache must be large enough to keep
    /// them until they are requested.
    reads_ahead: bool,
    streams: Streams,
    /// Requests that are done, but not durable yet.
    wait_for_flush: Vec<InFlightRequest>,
    /// Whether no request follows, because the disk is closing.
    is_closing: bool,
}

impl Worker {
    pub(super) fn new(volume: Volume, options: &DiskOptions) -> Self {
        let blocks = Blocks::new(volume);
        let cache_blocks_max = (options.cache_bytes_max / blocks.block_bytes as u64) as usize;
        let reads_ahead =
            blocks.policy == RangePolicy::Classes && cache_blocks_max >= 4 * blocks.longest_range();
        Self {
            blocks,
            cache_blocks_max,
            dirty_blocks_max: (cache_blocks_max / 2).max(1),
            pending: VecDeque::new(),
            bytes: 0,
            looked_at: 0,
            missing: VecDeque::new(),
            reads_ahead,
            streams: Streams::default(),
            wait_for_flush: Vec::new(),
            is_closing: false,
        }
    }

    /// Serves requests until the disk closes or its queue has no sender.
    pub(super) fn run(mut self, queue: &Queue) -> Result<AnyStore, VolumeError> {
        while !self.is_closing
            && let Some(first) = self.next(queue)?
        {
            if let Err(error) = self.serve_all(RequestBatch::with(first, queue), queue) {
                // A disk that is closing has no further requests to refuse.
                return Err(if self.is_closing { error } else { queue.refuse_all(error) });
            }
        }
        while self.blocks.cache.dirty_blocks() > 0 {
            self.write_back()?;
        }
        self.blocks.volume.close()
    }

    /// Returns the next request; `None` if the disk is closing. If none arrives within `IDLE`,
    /// makes all earlier writes durable and continues to wait.
    fn next(&mut self, queue: &Queue) -> Result<Option<Request>, VolumeError> {
        let message = match queue.recv_timeout(IDLE) {
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = self.flush() {
                    return Err(queue.refuse_all(error));
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

    /// Serves the requests of `batch`. With a cache, also serves those that arrive meanwhile, until
    /// the queue is empty. After an error, all unanswered requests are answered with it.
    fn serve_all(&mut self, batch: RequestBatch, queue: &Queue) -> Result<(), VolumeError> {
        if self.cache_blocks_max == 0 {
            self.is_closing = batch.is_last;
            return uncached::serve(&mut self.blocks, batch.requests);
        }
        self.serve_cached(batch, queue).inspect_err(|error| {
            let done = self.wait_for_flush.drain(..);
            done.chain(self.pending.drain(..)).for_each(|pending| pending.answer(Some(error)));
        })
    }

    /// Serves requests through the cache. While one window is read, others begin for the requests
    /// that wait by then: their moves become durable, and storage reads ahead for them.
    fn serve_cached(&mut self, batch: RequestBatch, queue: &Queue) -> Result<(), VolumeError> {
        self.admit(batch);
        loop {
            self.serve_cached_requests()?;
            if self.waits_for_room() {
                // Blocks read for other requests meanwhile might be evicted before their turn.
                self.write_back()?;
                continue;
            }
            self.begin_reads()?;
            if self.blocks.begun_windows() > 0 {
                self.blocks.finish_window()?;
            } else if !self.pending.is_empty() {
                self.fetch_window()?;
            } else if !self.wait_for_flush.is_empty() {
                self.flush()?;
                self.wait_for_flush.drain(..).for_each(|pending| pending.answer(None));
            } else {
                self.shrink_cache();
                return Ok(());
            }
            // Requests that must be durable share one flush, which later requests do not delay.
            if !self.is_closing && self.wait_for_flush.is_empty() {
                self.admit(RequestBatch::next_to(self.pending.len(), self.bytes, queue));
            }
        }
    }

    /// Admits requests. Those that cannot be served are answered with an error.
    fn admit(&mut self, RequestBatch { requests, is_last, .. }: RequestBatch) {
        self.is_closing = is_last;
        for request in requests {
            if let Some(mut pending) = InFlightRequest::admit(request, &self.blocks) {
                if self.reads_ahead
                    && let Some(offset) = pending.reads_from()
                {
                    pending.sequential_bytes = self.streams.follow(offset, pending.bytes);
                }
                self.bytes += pending.bytes;
                self.pending.push_back(pending);
            }
        }
    }

    /// Begins the reads that requests will need, until there is no more room.
    fn begin_reads(&mut self) -> Result<(), VolumeError> {
        loop {
            self.look_ahead();
            // A write may have cached missing blocks since.
            self.missing.retain(|access| !self.blocks.are_cached(access.blocks.clone()));
            if !self.blocks.begin(&mut self.missing)? {
                return Ok(());
            }
        }
    }

    /// Looks for needed blocks that are not cached, up to a window of them. Cached blocks count as
    /// used, so that they are not evicted first.
    fn look_ahead(&mut self) {
        let Self { blocks, pending, looked_at, missing, .. } = self;
        let mut wanted: usize = missing.iter().map(RangeAccess::count).sum();
        while wanted < WINDOW_ACCESSES_MAX
            && let Some(request) = pending.get_mut(*looked_at)
        {
            let Some(ReadAhead { access, needed }) = request.look_ahead(blocks) else {
                *looked_at += 1;
                continue;
            };
            let is_missing = |block: u64| {
                let mut missing = missing.iter();
                !blocks.cache.contains(block)
                    && !blocks.is_in_flight(block)
                    && !missing.any(|access| access.blocks.contains(&block))
            };
            if needed.clone().any(is_missing) {
                wanted += access.count();
                missing.push_back(access);
            }
            needed.for_each(|block| blocks.cache.touch(block));
        }
    }

    /// Serves requests in order, until one must wait for a block to be cached or for fewer dirty
    /// blocks.
    fn serve_cached_requests(&mut self) -> Result<(), VolumeError> {
        while let Some(first) = self.pending.front_mut() {
            first.forget_all(&mut self.blocks)?;
            match first.step(&mut self.blocks, self.dirty_blocks_max)? {
                RequestStep::Waits => break,
                RequestStep::Made => self.shrink_cache(),
                RequestStep::Done => self.finish_first(),
            }
        }
        Ok(())
    }

    /// Removes the first request, which has nothing left to do. Answers it unless it must be
    /// durable.
    fn finish_first(&mut self) {
        let Some(done) = self.pending.pop_front() else { return };
        self.bytes -= done.bytes;
        self.looked_at = self.looked_at.saturating_sub(1);
        // The cache is within its bound before the caller gets its answer.
        self.shrink_cache();
        if done.is_durable {
            self.wait_for_flush.push(done);
        } else {
            done.answer(None);
        }
    }

    /// Shrinks the cache. Blocks that were read for requests in flight must not be evicted before
    /// they are used.
    fn shrink_cache(&mut self) {
        // Room for several of the longest ranges: while some are read, the next ones are chosen.
        let most = BLOCKS_UNDER_WAY_MAX.max(4 * self.blocks.longest_range());
        let under_way = if self.pending.is_empty() { 0 } else { most };
        self.blocks.cache.shrink(self.cache_blocks_max + under_way);
    }

    /// Whether the first request waits only until fewer blocks are dirty.
    fn waits_for_room(&self) -> bool {
        self.pending.front().is_some_and(|first| {
            let mut needed = first.needs(self.blocks.block_bytes);
            needed.all(|block| self.blocks.cache.contains(block))
        })
    }

    /// Makes all earlier writes durable.
    fn flush(&mut self) -> Result<(), VolumeError> {
        while self.blocks.cache.dirty_blocks() > 0 {
            self.write_back()?;
        }
        self.blocks.volume.flush()
    }

    /// Reads a window of missing blocks into the cache. Used when no read can begin in advance.
    fn fetch_window(&mut self) -> Result<(), VolumeError> {
        let Self { blocks, pending, missing, .. } = self;
        if let Some(ranges) = missing.pop_front_if(|access| access.class() > 0) {
            return blocks.read_ranges(&ranges);
        }
        if let Some(ReadAhead { access, .. }) =
            pending.front_mut().and_then(|first| first.look_again(blocks))
            && access.class() > 0
        {
            // Needed blocks were evicted before their turn: they are read as if never cached.
            return blocks.read_ranges(&access);
        }
        let needed = pending.front().into_iter().flat_map(|first| first.needs(blocks.block_bytes));
        let lacking = blocks.missing(needed, WINDOW_ACCESSES_MAX);
        let ahead = missing.iter().take_while(|access| access.class() == 0).count();
        let ahead = missing.drain(..ahead).flat_map(|access| access.blocks);
        let lacking = lacking.into_iter().chain(ahead);
        let window = blocks.missing(lacking, WINDOW_ACCESSES_MAX);
        self.blocks.exchange(&window, 0)
    }

    /// Writes dirty blocks back, the least recently used first.
    fn write_back(&mut self) -> Result<(), VolumeError> {
        self.blocks.write_back(WINDOW_ACCESSES_MAX)
    }
}
