//! A disk without a cache: whatever a request is about, each of its blocks is an access.
//!
//! The blocks of requests that wait together make windows of accesses, in the order in which they were asked
//! for. Reads and writes share a window, so storage sees the same windows whichever they are. A write of a
//! part of a block is two accesses: the first brings what is around it. Zeros and trims of whole blocks are
//! none.
//!
//! Where all accesses are to ranges of one class, the blocks of one request that lie in one of these make a window, which is one
//! access to it. Where a request is an access of rORAM, its blocks make a window, up to as many as the longest range has.

use std::collections::HashMap;
use std::mem;

use oblivio_core::durable::RangePolicy;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};

use super::blocks::Blocks;
use crate::device::ops::{check, is_durable};
use crate::device::span::{Part, parts, whole_blocks};
use crate::device::{Completion, DiskError, DiskOp, Request};
use crate::error::VolumeError;
use crate::volume::{Extent, Volume};

/// Serves requests that wait together: each is answered when its last block was accessed, and those that ask to be
/// durable at the end. After an error, all that have not been answered are answered with it.
pub(super) fn serve(blocks: &mut Blocks, batch: Vec<Request>) -> Result<(), VolumeError> {
    let mut ops = Vec::new();
    let mut waiting = Vec::new();
    for Request { op, done } in batch {
        match check(&op, blocks.bytes) {
            Ok(()) => {
                ops.push(op);
                waiting.push(Waiting::new(done));
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

/// Whoever waits for an answer.
struct Waiting {
    /// Gone once it was told.
    done: Option<Completion>,
    answer: WipedBytes,
    steps_left: usize,
}

impl Waiting {
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

/// Those that ask to be durable are still to be answered when this returns.
fn carry_out(
    blocks: &mut Blocks,
    ops: &[DiskOp],
    waiting: &mut [Waiting],
) -> Result<(), VolumeError> {
    let block_bytes = blocks.block_bytes;
    // Before all else: a write that is trimmed in the same batch makes its access all the same.
    for op in ops {
        if let DiskOp::Zero { offset, bytes, .. } | DiskOp::Trim { offset, bytes, .. } = op {
            blocks.forget(*offset..offset + bytes)?;
        }
    }
    // What lies before or after whole blocks, or wholly in one or two, is shorter.
    let zeros = vec![0; 2 * block_bytes];
    let steps_of = |op| steps(op, block_bytes, &zeros);
    for (op, waiting) in ops.iter().zip(&mut *waiting) {
        if let DiskOp::Read { bytes, .. } = op {
            waiting.answer = WipedBytes::with_capacity(*bytes as usize);
        }
        // One more for the moment from which its answer holds.
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

/// What a request does with one block.
struct Step<'op> {
    part: Part,
    /// What it writes there; nothing if it reads.
    new: Option<&'op [u8]>,
}

/// A request, cut into blocks.
fn steps<'op>(
    op: &'op DiskOp,
    block_bytes: usize,
    zeros: &'op [u8],
) -> impl Iterator<Item = Step<'op>> {
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
            .map(move |part| Step { new: new.map(|new| &new[part.range()]), part })
    })
}

/// Blocks that are accessed together, each once.
#[derive(Default)]
struct Window<'op> {
    blocks: Vec<Block>,
    /// Where each block is in `blocks`.
    places: HashMap<u64, usize>,
    /// Which request each step belongs to.
    steps: Vec<(usize, Step<'op>)>,
}

struct Block {
    address: u64,
    data: WipedBytes,
    /// All of it is written, and so its old contents are not needed.
    is_whole: bool,
    /// It was changed after its access.
    is_changed: bool,
}

impl<'op> Window<'op> {
    fn has_room_for(&self, request: usize, step: &Step<'_>, disk: &Blocks) -> bool {
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

    fn add(&mut self, request: usize, step: Step<'op>, block_bytes: usize) {
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

    /// Accesses the blocks, does the steps, and accesses those blocks again of which a part is new.
    ///
    /// Requests that wait together have no order, so a read may find what a later write brought.
    fn carry_out(
        mut self,
        volume: &mut Volume,
        waiting: &mut [Waiting],
    ) -> Result<(), VolumeError> {
        let accesses = self.blocks.iter_mut().map(|block| {
            let Block { address, data, is_whole, .. } = block;
            let op = if *is_whole { Op::Write(data) } else { Op::Read(data) };
            Access { address: *address, op }
        });
        access(volume, accesses.collect())?;
        for (request, Step { part, new }) in &self.steps {
            let block = &mut self.blocks[self.places[&part.block]];
            let within = &mut block.data[part.within.clone()];
            match new {
                // Blocks of a request come in their order.
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

/// Accesses blocks, which ascend; or the ranges in which the policy has them.
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
    let asked = batch.iter_mut().map(|it| (it.address, it.op.reborrow()));
    let mut asked: HashMap<_, _> = asked.collect();
    volume.access_ranges(&extents, |block| asked.remove(&block))
}
