//! A request in flight, served block by block as its blocks are cached.

use std::collections::VecDeque;
use std::ops::Range;

use oblivio_core::durable::RangePolicy;
use oblivio_core::wiped::WipedBytes;

use super::blocks::{Blocks, RangeAccess};
use crate::device::ops::{bytes_carried, check, is_durable};
use crate::device::span::{BlockPart, parts, whole_blocks};
use crate::device::{Completion, DiskOp, Request};
use crate::error::VolumeError;
use crate::volume::Extent;

/// Maximum number of blocks to forget in one step. A tick that is due waits for at most one step.
const FORGET_BLOCKS_MAX: u64 = 1 << 16;

/// A request in flight.
pub(super) struct InFlightRequest {
    /// Blocks that remain to be forgotten.
    forget: Range<u64>,
    /// Transfers to make once the blocks are forgotten.
    transfers: VecDeque<Transfer>,
    /// The answer to a read. Wiped if dropped.
    answer: WipedBytes,
    pub(super) is_durable: bool,
    /// Bytes read sequentially up to the end of this request. 0 if the disk does not read ahead, or
    /// if this is not a read that continues an earlier one.
    pub(super) sequential_bytes: u64,
    /// Bytes that the request reads or writes.
    pub(super) bytes: u64,
    done: Completion,
}

/// Blocks to read ahead.
pub(super) struct ReadAhead {
    pub(super) access: RangeAccess,
    /// The blocks that the request needs. If all of them are cached, nothing is read.
    pub(super) needed: Range<u64>,
}

impl ReadAhead {
    /// A range of blocks that are all needed.
    fn all(extent: Extent) -> Self {
        Self { access: RangeAccess::whole(extent), needed: extent.blocks() }
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStep {
    Made,
    /// The request waits for a block to be cached, for fewer dirty blocks, or until the disk can
    /// forget blocks.
    Waits,
    /// The request has nothing left to do.
    Done,
}

impl InFlightRequest {
    /// Admits a request that can be served. Answers any other with an error.
    pub(super) fn admit(request: Request, blocks: &Blocks) -> Option<Self> {
        match check(&request.op, blocks.bytes) {
            Ok(()) => Some(Self::new(request, blocks.block_bytes)),
            Err(error) => {
                (request.done)(Err(error));
                None
            }
        }
    }

    fn new(request: Request, block_bytes: usize) -> Self {
        let is_durable = is_durable(&request.op);
        let bytes = bytes_carried(&request.op);
        let write = |offset, data| Transfer::new(true, offset, data);
        let mut forget = 0..0;
        let mut transfers = VecDeque::new();
        match request.op {
            DiskOp::Read { offset, bytes } => {
                let data = WipedBytes::zeros(bytes as usize);
                transfers.push_back(Transfer::new(false, offset, data));
            }
            DiskOp::Write { offset, data, .. } => {
                transfers.push_back(write(offset, data));
            }
            DiskOp::Zero { offset, bytes, .. } => {
                let (whole, edges) = whole_blocks(offset..offset + bytes, block_bytes as u64);
                forget = whole;
                transfers.extend(edges.map(|edge| {
                    write(edge.start, WipedBytes::zeros((edge.end - edge.start) as usize))
                }));
            }
            DiskOp::Trim { offset, bytes, .. } => {
                (forget, _) = whole_blocks(offset..offset + bytes, block_bytes as u64);
            }
            DiskOp::Flush => (),
        }
        let answer = WipedBytes::default();
        let done = request.done;
        Self { forget, transfers, answer, is_durable, sequential_bytes: 0, bytes, done }
    }

    /// Offset of the first byte of a read. `None` for other operations.
    pub(super) fn reads_from(&self) -> Option<u64> {
        self.transfers.front().filter(|transfer| !transfer.is_write).map(|transfer| transfer.offset)
    }

    /// The blocks that must be cached, in the order in which they are needed.
    pub(super) fn needs(&self, block_bytes: usize) -> impl Iterator<Item = u64> {
        self.transfers.iter().flat_map(move |transfer| transfer.needs(block_bytes))
    }

    /// Continues the look-ahead: returns the next blocks that must be cached, as one block or as
    /// the ranges that the [policy](RangePolicy) chooses. Returns each needed block once. If enough
    /// was read sequentially, a range may reach past the end of the request.
    pub(super) fn look_ahead(&mut self, blocks: &Blocks) -> Option<ReadAhead> {
        let sequential_bytes = self.sequential_bytes;
        self.transfers.iter_mut().find_map(|transfer| transfer.look_ahead(blocks, sequential_bytes))
    }

    /// Restarts the look-ahead after cached blocks were evicted before the request used them.
    /// Returns the next blocks that must be cached; `None` if there are none, or if the disk
    /// accesses single blocks only.
    pub(super) fn look_again(&mut self, blocks: &Blocks) -> Option<ReadAhead> {
        if blocks.longest_range() == 1 {
            return None;
        }
        self.transfers.iter_mut().for_each(|transfer| transfer.looked_at = 0);
        self.look_ahead(blocks)
    }

    /// The blocks that the next step forgets, if it forgets any.
    pub(super) fn forgets_next(&self) -> Option<Range<u64>> {
        Some(self.next_to_forget()).filter(|range| !range.is_empty())
    }

    fn next_to_forget(&self) -> Range<u64> {
        let Range { start, end } = self.forget;
        start..end.min(start + FORGET_BLOCKS_MAX)
    }

    /// Forgets all blocks of the request, with the accesses and checkpoints that this takes.
    pub(super) fn forget_all(&mut self, blocks: &mut Blocks) -> Result<(), VolumeError> {
        match std::mem::take(&mut self.forget) {
            nothing if nothing.is_empty() => Ok(()),
            range => blocks.forget_blocks(range),
        }
    }

    /// Makes the next step, if it needs no storage.
    pub(super) fn step(
        &mut self,
        blocks: &mut Blocks,
        dirty_blocks_max: usize,
    ) -> Result<RequestStep, VolumeError> {
        if !self.forget.is_empty() {
            // Storage would see a checkpoint or an access that the request has caused.
            let Range { start, end } = self.next_to_forget();
            let has_room = blocks.volume.has_room_to_forget();
            if !has_room || !blocks.volume.missing_positions_to_forget(start..end)?.is_empty() {
                return Ok(RequestStep::Waits);
            }
            blocks.forget_blocks(start..end)?;
            self.forget.start = end;
            return Ok(RequestStep::Made);
        }
        let Some(transfer) = self.transfers.front_mut() else { return Ok(RequestStep::Done) };
        let Some(part) = transfer.next(blocks.block_bytes) else {
            if !transfer.is_write {
                self.answer = std::mem::take(&mut transfer.data);
            }
            self.transfers.pop_front();
            return Ok(RequestStep::Made);
        };
        let moved = transfer.make(&part, blocks, dirty_blocks_max);
        Ok(if moved { RequestStep::Made } else { RequestStep::Waits })
    }

    /// Answers the request: with success, or with the error in `failure`.
    pub(super) fn answer(self, failure: Option<&VolumeError>) {
        (self.done)(match failure {
            None => Ok(self.answer),
            Some(error) => Err(error.into()),
        });
    }
}

/// Bytes that move between a request and blocks.
struct Transfer {
    is_write: bool,
    offset: u64,
    data: WipedBytes,
    /// Number of bytes moved so far.
    done: usize,
    /// Number of bytes that the look-ahead has covered.
    looked_at: usize,
}

impl Transfer {
    fn new(is_write: bool, offset: u64, data: WipedBytes) -> Self {
        Self { is_write, offset, data, done: 0, looked_at: 0 }
    }

    /// The parts after the first `from` bytes. Offsets in the result are relative to `from`.
    fn parts(&self, from: usize, block_bytes: usize) -> impl Iterator<Item = BlockPart> + use<> {
        parts(self.offset + from as u64, self.data.len() - from, block_bytes)
    }

    fn next(&self, block_bytes: usize) -> Option<BlockPart> {
        self.parts(self.done, block_bytes).next()
    }

    fn needs(&self, block_bytes: usize) -> impl Iterator<Item = u64> + use<> {
        self.needs_from(self.done, block_bytes)
    }

    fn needs_from(&self, from: usize, block_bytes: usize) -> impl Iterator<Item = u64> + use<> {
        // A write needs the old contents of its first and last block at most.
        let end = self.offset + self.data.len() as u64;
        let end_of_whole = end - end % block_bytes as u64;
        let is_write = self.is_write;
        let all = (!is_write).then(|| self.parts(from, block_bytes)).into_iter().flatten();
        let next = self.parts(from, block_bytes).next();
        let has_last = is_write && next.is_some() && end > end_of_whole;
        let first = next.filter(|part| is_write && !part.is_whole(block_bytes));
        let last = has_last.then_some(end_of_whole / block_bytes as u64);
        all.chain(first).map(|part| part.block).chain(last)
    }

    /// The next piece with a needed block that is not transferred yet. The blocks read for a piece
    /// depend on the start and end of the request, not on which blocks are cached.
    fn look_ahead(&mut self, blocks: &Blocks, sequential_bytes: u64) -> Option<ReadAhead> {
        let next = self.next(blocks.block_bytes)?.block;
        loop {
            let ReadAhead { access, needed } = self.next_piece(blocks, sequential_bytes)?;
            if next < needed.end {
                let needed = needed.start.max(next)..needed.end;
                return Some(ReadAhead { access, needed });
            }
        }
    }

    /// The piece that follows the bytes already covered by the look-ahead.
    fn next_piece(&mut self, blocks: &Blocks, sequential_bytes: u64) -> Option<ReadAhead> {
        let block_bytes = blocks.block_bytes as u64;
        let end = self.offset + self.data.len() as u64;
        let Some(block) = self.needs_from(self.looked_at, blocks.block_bytes).next() else {
            self.looked_at = self.data.len();
            return None;
        };
        let behind = end.div_ceil(block_bytes);
        let wanted = match blocks.policy {
            RangePolicy::Fixed(class) => {
                let access = RangeAccess::whole(Extent::around(block, class));
                // A write needs at most its first and its last block.
                let behind = if self.is_write { block + 1 } else { behind };
                let needed = block..access.blocks.end.min(behind);
                ReadAhead { access, needed }
            }
            _ if self.is_write => ReadAhead::all(Extent::of_block(block)),
            RangePolicy::Classes => {
                let in_stream = |class: &&u8| block_bytes << **class <= sequential_bytes;
                let in_stream =
                    blocks.classes.iter().rfind(in_stream).map_or(0, |class| 1 << class);
                let disk_end = blocks.bytes / block_bytes;
                let whole = (end / block_bytes).max(block + in_stream).min(disk_end);
                ReadAhead::all(Extent::longest(&blocks.classes, block, whole))
            }
            RangePolicy::Exact => {
                // Up to the length of the longest range or the end of the request.
                let needed = block..behind.min(block + blocks.longest_range() as u64);
                let extents =
                    Extent::exactly(&blocks.classes, needed.clone(), blocks.volume.blocks());
                ReadAhead { access: RangeAccess { extents, blocks: needed.clone() }, needed }
            }
        };
        let looked_at = (wanted.needed.end * block_bytes).min(end) - self.offset;
        self.looked_at = looked_at as usize;
        Some(wanted)
    }

    /// Moves the bytes of a part. Returns whether they were moved. A read, or a write of less than
    /// a block, is not possible while the block is not cached. A write is not possible if it would
    /// make more than `dirty_blocks_max` blocks dirty.
    fn make(&mut self, part: &BlockPart, blocks: &mut Blocks, dirty_blocks_max: usize) -> bool {
        let Blocks { cache, block_bytes, .. } = blocks;
        let bytes = &mut self.data[self.done..][part.range()];
        if self.is_write {
            if cache.dirty_blocks() >= dirty_blocks_max && !cache.is_dirty(part.block) {
                return false;
            }
            if part.is_whole(*block_bytes) {
                cache.insert_dirty(part.block, (&*bytes).into());
            } else {
                let Some(block) = cache.get_mut(part.block) else { return false };
                block[part.within.clone()].copy_from_slice(bytes);
            }
        } else {
            let Some(block) = cache.get(part.block) else { return false };
            bytes.copy_from_slice(&block[part.within.clone()]);
        }
        self.done += part.within.len();
        true
    }
}
