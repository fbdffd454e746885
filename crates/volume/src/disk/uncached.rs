//! A disk without a cache: every block of a request is an access, whatever the request.
//!
//! The blocks of requests that wait together form windows of accesses, in the order of requests.
//! Reads and writes share a window, so storage sees the same windows for both. A write of a part of
//! a block is two accesses: the first reads the rest of the block. Zeros and trims of whole blocks
//! take no access.
//!
//! If all accesses are to ranges of one class, the blocks of a request that lie in one range form a
//! window. Such a window is one access to that range. If requests are served by ranges of their own
//! length, as in rORAM, the blocks of a request form a window, up to the length of the longest
//! range.

use std::collections::HashMap;
use std::mem;

use oblivio_core::durable::RangePolicy;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};

use super::blocks::Blocks;
use crate::device::ops::{check, is_durable};
use crate::device::span::{BlockPart, parts, whole_blocks};
use crate::device::{Completion, DiskError, DiskOp, Request};
use crate::error::VolumeError;
use crate::volume::{Extent, Volume};

/// Serves requests that wait together. A durable request is answered at the end, any other once its
/// last block was accessed. After an error, all unanswered requests are answered with it.
pub(super) fn serve(blocks: &mut Blocks, batch: Vec<Request>) -> Result<(), VolumeError> {
    let mut ops = Vec::new();
    let mut waiting = Vec::new();
    for Request { op, done } in batch {
        match check(&op, blocks.bytes) {
            Ok(()) => {
                ops.push(op);
                waiting.push(PendingAnswer::new(done));
            }
            Err(error) => done(Err(error)),
        }
    }
    let outcome = carry_out(blocks, &ops, &mut waiting);
    let error = outcome.as_ref().err().map(DiskError::from);
    for done in waiting.into_iter().filter_map(|waiting| waiting.done) {
        done(error.clone().map_or(Ok(WipedBytes::default()), Err));
    }
    outcome
}

/// A request that waits for its answer.
struct PendingAnswer {
    /// The receiver of the answer. `None` once the request is answered.
    done: Option<Completion>,
    answer: WipedBytes,
    steps_left: usize,
}

impl PendingAnswer {
    fn new(done: Completion) -> Self {
        Self { done: Some(done), answer: WipedBytes::default(), steps_left: 0 }
    }

    fn step_is_done(&mut self) {
        self.steps_left -= 1;
        if self.steps_left == 0
            && let Some(done) = self.done.take()
        {
            done(Ok(mem::take(&mut self.answer)));
        }
    }
}

/// Makes the accesses. Durable requests are still unanswered when this returns.
fn carry_out(
    blocks: &mut Blocks,
    ops: &[DiskOp],
    waiting: &mut [PendingAnswer],
) -> Result<(), VolumeError> {
    let block_bytes = blocks.block_bytes;
    // Before any access: a write that is trimmed in the same batch still makes its access.
    for op in ops {
        if let DiskOp::Zero { offset, bytes, .. } | DiskOp::Trim { offset, bytes, .. } = op {
            blocks.forget(*offset..offset + bytes)?;
        }
    }
    // Before or after its whole blocks, a request zeroes less than two blocks.
    let zeros = vec![0; 2 * block_bytes];
    let steps_of = |op| steps(op, block_bytes, &zeros);
    for (op, waiting) in ops.iter().zip(&mut *waiting) {
        if let DiskOp::Read { bytes, .. } = op {
            waiting.answer = WipedBytes::with_capacity(*bytes as usize);
        }
        // One step more: durable requests wait for the flush.
        waiting.steps_left = steps_of(op).count() + 1;
        if !is_durable(op) {
            waiting.step_is_done();
        }
    }
    let steps = ops.iter().enumerate();
    let steps = steps.flat_map(|(request, op)| steps_of(op).map(move |step| (request, step)));
    let mut steps = steps.peekable();
    while steps.peek().is_some() {
        let mut window = Window::default();
        while let Some((request, step)) =
            steps.next_if(|(request, step)| window.has_room_for(*request, step, blocks))
        {
            window.add(request, step, block_bytes);
        }
        window.carry_out(&mut blocks.volume, waiting)?;
    }
    if ops.iter().any(is_durable) {
        blocks.volume.flush()?;
    }
    Ok(())
}

/// The part of a request in one block.
struct BlockStep<'op> {
    part: BlockPart,
    /// The bytes to write; `None` for a read.
    new: Option<&'op [u8]>,
}

/// The steps of a request, block by block. Trims, flushes, and the whole blocks of a zero request
/// have no steps.
fn steps<'op>(
    op: &'op DiskOp,
    block_bytes: usize,
    zeros: &'op [u8],
) -> impl Iterator<Item = BlockStep<'op>> {
    let nothing = (0, 0, None);
    let ranges = match op {
        DiskOp::Read { offset, bytes } => [(*offset, *bytes as usize, None), nothing],
        DiskOp::Write { offset, data, .. } => [(*offset, data.len(), Some(&**data)), nothing],
        DiskOp::Zero { offset, bytes, .. } => {
            let (_, edges) = whole_blocks(*offset..offset + bytes, block_bytes as u64);
            edges.map(|edge| (edge.start, (edge.end - edge.start) as usize, Some(zeros)))
        }
        DiskOp::Trim { .. } | DiskOp::Flush => [nothing; 2],
    };
    ranges.into_iter().flat_map(move |(offset, bytes, new)| {
        parts(offset, bytes, block_bytes)
            .map(move |part| BlockStep { new: new.map(|new| &new[part.range()]), part })
    })
}

/// Blocks that are accessed together, each once.
#[derive(Default)]
struct Window<'op> {
    blocks: Vec<Block>,
    /// The index of each block in `blocks`.
    places: HashMap<u64, usize>,
    /// The steps, with the index of their request.
    steps: Vec<(usize, BlockStep<'op>)>,
}

struct Block {
    address: u64,
    data: WipedBytes,
    /// Whether the whole block is written, so that its old contents are not needed.
    is_whole: bool,
    /// Whether the block was changed after its access.
    is_changed: bool,
}

impl<'op> Window<'op> {
    fn has_room_for(&self, request: usize, step: &BlockStep<'_>, disk: &Blocks) -> bool {
        let block = step.part.block;
        let (Some(first), Some((of_request, _))) = (self.blocks.first(), self.steps.last()) else {
            return true;
        };
        match disk.policy {
            RangePolicy::Fixed(class @ 1..) => {
                *of_request == request
                    && Extent::around(first.address, class).blocks().contains(&block)
            }
            RangePolicy::Exact => {
                let most = (self.blocks.len() + 1).min(disk.longest_range()) as u64;
                let following = first.address..first.address + most;
                *of_request == request && following.contains(&block)
            }
            RangePolicy::Fixed(0) | RangePolicy::Classes => {
                self.blocks.len() < WINDOW_ACCESSES_MAX || self.places.contains_key(&block)
            }
        }
    }

    fn add(&mut self, request: usize, step: BlockStep<'op>, block_bytes: usize) {
        let place = *self.places.entry(step.part.block).or_insert_with(|| {
            let data = WipedBytes::zeros(block_bytes);
            let address = step.part.block;
            self.blocks.push(Block { address, data, is_whole: false, is_changed: false });
            self.blocks.len() - 1
        });
        let block = &mut self.blocks[place];
        if let Some(new) = step.new
            && (step.part.is_whole(block_bytes) || block.is_whole)
        {
            block.data[step.part.within.clone()].copy_from_slice(new);
            block.is_whole = true;
        }
        self.steps.push((request, step));
    }

    /// Accesses the blocks, makes the steps, and accesses partly written blocks once more.
    ///
    /// Requests that wait together have no order, so a read may find the data of a later write.
    fn carry_out(
        mut self,
        volume: &mut Volume,
        waiting: &mut [PendingAnswer],
    ) -> Result<(), VolumeError> {
        let accesses = self.blocks.iter_mut().map(|block| {
            let Block { address, data, is_whole, .. } = block;
            let op = if *is_whole { Op::Write(data) } else { Op::Read(data) };
            Access { address: *address, op }
        });
        access(volume, accesses.collect())?;
        for (request, BlockStep { part, new }) in &self.steps {
            let block = &mut self.blocks[self.places[&part.block]];
            let within = &mut block.data[part.within.clone()];
            match new {
                // The blocks of a request come in order.
                None => waiting[*request].answer.extend_from_slice(within),
                Some(_) if block.is_whole => {}
                Some(new) => {
                    within.copy_from_slice(new);
                    block.is_changed = true;
                }
            }
        }
        let changed = self.blocks.iter().filter(|block| block.is_changed);
        let again =
            changed.map(|block| Access { address: block.address, op: Op::Write(&block.data) });
        access(volume, again.collect())?;
        self.steps.iter().for_each(|(request, _)| waiting[*request].step_is_done());
        Ok(())
    }
}

/// Accesses blocks, or the ranges that the policy chooses for them. For ranges, the blocks must be
/// in ascending order.
fn access(volume: &mut Volume, mut batch: Vec<Access<'_>>) -> Result<(), VolumeError> {
    let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
    let extents = match volume.range_policy() {
        RangePolicy::Fixed(class @ 1..) => vec![Extent::around(first.address, class)],
        RangePolicy::Exact => {
            let blocks = first.address..last.address + 1;
            Extent::exactly(volume.range_classes(), blocks, volume.blocks())
        }
        RangePolicy::Fixed(0) | RangePolicy::Classes => return volume.access(&mut batch),
    };
    let ops = batch.iter_mut().map(|it| (it.address, it.op.reborrow()));
    let mut ops: HashMap<_, _> = ops.collect();
    volume.access_ranges(&extents, |block| ops.remove(&block))
}
