//! The contract of a disk as a model: what may be read, at any time and after a crash.
//!
//! Each block remembers what it held when that was last made durable, and every request since. A
//! block is written as a whole: of the requests to it, a crash keeps the first so many, in an order
//! in which they may have been served. Requests in flight together may have been served in any
//! order, or, at a crash, not at all; a failed one may have been served or not.

mod block;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use oblivio_volume::device::DiskOp;

use block::{Block, BlockRequest};
pub use report::{Report, Wrong, WrongBlock};

/// What a disk may answer, and what it may hold after a crash. It starts with zeros, durably.
pub struct ShadowDisk {
    bytes: u64,
    block_bytes: usize,
    /// Those that ever had a request; the others hold zeros.
    blocks: BTreeMap<u64, Block>,
    /// Runs with each submission and each answer.
    now: u64,
}

/// A request under way. Never answered, it may have been served or not.
#[derive(Debug)]
#[must_use = "tell the shadow when the request is answered"]
pub struct Ticket {
    submitted: u64,
    blocks: Range<u64>,
    pins: Pins,
}

/// What an answer makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pins {
    Nothing,
    /// What was answered before the request was submitted.
    Earlier,
    /// The same, and the request itself.
    Itself,
}

impl ShadowDisk {
    /// A disk of zeros.
    ///
    /// # Panics
    /// When it does not consist of whole blocks.
    pub fn new(bytes: u64, block_bytes: u32) -> Self {
        assert!(block_bytes > 0 && bytes.is_multiple_of(u64::from(block_bytes)), "whole blocks");
        Self { bytes, block_bytes: block_bytes as usize, blocks: BTreeMap::new(), now: 0 }
    }

    /// A request is about to be submitted.
    ///
    /// # Panics
    /// When it goes past the end of the disk.
    pub fn submit(&mut self, op: &DiskOp) -> Ticket {
        let pins = |durable| if durable { Pins::Itself } else { Pins::Nothing };
        match op {
            DiskOp::Read { .. } => self.ticket(0..0, Pins::Nothing),
            DiskOp::Flush => self.ticket(0..0, Pins::Earlier),
            DiskOp::Write { offset, data, durable } => {
                self.patch(*offset, data.len() as u64, pins(*durable), |range| {
                    data[range.start as usize..range.end as usize].to_vec()
                })
            }
            DiskOp::Zero { offset, bytes, durable } => {
                self.patch(*offset, *bytes, pins(*durable), zeros)
            }
            DiskOp::Trim { offset, bytes, durable } => {
                let block_bytes = self.block_bytes as u64;
                let start = offset.next_multiple_of(block_bytes);
                let end = (offset + bytes) / block_bytes * block_bytes;
                self.patch(start, end.saturating_sub(start), pins(*durable), zeros)
            }
        }
    }

    /// The request was answered, and well.
    pub fn answered(&mut self, ticket: Ticket) {
        self.settle(&ticket, false);
        if ticket.pins == Pins::Nothing {
            return;
        }
        for block in self.blocks.values_mut() {
            block.pin(|request| {
                let is_it = request.submitted == ticket.submitted && ticket.pins == Pins::Itself;
                request.answered < ticket.submitted || is_it
            });
        }
    }

    /// The request was answered with an error: it may have been done, and will not be done later.
    pub fn failed(&mut self, ticket: Ticket) {
        self.settle(&ticket, true);
    }

    /// A write, submitted and answered at once.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.at_once(&DiskOp::Write { offset, data: data.to_vec().into(), durable: false });
    }

    /// The same for zeros.
    pub fn zero(&mut self, offset: u64, bytes: u64) {
        self.at_once(&DiskOp::Zero { offset, bytes, durable: false });
    }

    /// The same for a trim: whole blocks become zeros.
    pub fn trim(&mut self, offset: u64, bytes: u64) {
        self.at_once(&DiskOp::Trim { offset, bytes, durable: false });
    }

    /// A flush is about to be submitted.
    pub fn flush_begun(&mut self) -> Ticket {
        self.submit(&DiskOp::Flush)
    }

    /// It was answered: everything answered before it was submitted is durable.
    pub fn flush_done(&mut self, ticket: Ticket) {
        self.answered(ticket);
    }

    /// Checks what a read brought, whose ticket is `ticket`, now that it is answered.
    pub fn check_read(&self, ticket: &Ticket, offset: u64, data: &[u8]) -> Report {
        let mut report = Report::default();
        for (block, range) in self.split(offset, data.len() as u64) {
            let start = ((offset + range.start) % self.block_bytes as u64) as usize;
            let found = &data[range.start as usize..range.end as usize];
            let must = |request: &BlockRequest| request.answered < ticket.submitted;
            self.compare(block, start, found, must, &mut report);
        }
        report
    }

    /// Checks what the disk holds after a crash, read from its start to its end.
    pub fn check(&self, mut read: impl FnMut(u64, &mut [u8])) -> Report {
        let mut report = Report::default();
        self.each_block(&mut read, |block, found| {
            self.compare(block, 0, found, |request| request.durable, &mut report);
        });
        report
    }

    /// After a crash, what the disk holds is what it is to hold from now on, durably: a disk that has
    /// shown something after a crash keeps to it.
    pub fn adopt(&mut self, mut read: impl FnMut(u64, &mut [u8])) {
        self.adopt_as(&mut read, |shadow, block, found| {
            shadow.block_mut(block).keep(found);
        });
    }

    /// The same where nothing made it durable: another crash may bring back what this one might have
    /// left. The contract of a disk demands no more.
    pub fn adopt_unflushed(&mut self, mut read: impl FnMut(u64, &mut [u8])) {
        self.adopt_as(&mut read, |shadow, block, found| {
            let (submitted, answered) = (shadow.tick(), shadow.tick());
            shadow.block_mut(block).show(found, submitted, answered);
        });
    }

    fn at_once(&mut self, op: &DiskOp) {
        let ticket = self.submit(op);
        self.answered(ticket);
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn ticket(&mut self, blocks: Range<u64>, pins: Pins) -> Ticket {
        Ticket { submitted: self.tick(), blocks, pins }
    }

    /// Notes a request that changes bytes to what `data` gives for a part of it.
    fn patch(
        &mut self,
        offset: u64,
        bytes: u64,
        pins: Pins,
        data: impl Fn(Range<u64>) -> Vec<u8>,
    ) -> Ticket {
        assert!(offset + bytes <= self.bytes, "a request on the disk");
        let parts = self.split(offset, bytes);
        let blocks = match (parts.first(), parts.last()) {
            (Some((first, _)), Some((last, _))) => *first..last + 1,
            _ => 0..0,
        };
        let ticket = self.ticket(blocks, pins);
        for (block, range) in parts {
            let start = ((offset + range.start) % self.block_bytes as u64) as usize;
            let request = BlockRequest::new(start, data(range), ticket.submitted);
            self.block_mut(block).submit(request);
        }
        ticket
    }

    fn settle(&mut self, ticket: &Ticket, failed: bool) {
        let answered = self.tick();
        for (_, block) in self.blocks.range_mut(ticket.blocks.clone()) {
            block.settle(ticket.submitted, answered, failed);
        }
    }

    /// The parts of a request that lie in different blocks, counted from its start.
    fn split(&self, offset: u64, bytes: u64) -> Vec<(u64, Range<u64>)> {
        let block_bytes = self.block_bytes as u64;
        let end = offset + bytes;
        let blocks = offset / block_bytes..end.div_ceil(block_bytes);
        let part = |block: u64| {
            let start = offset.max(block * block_bytes);
            (block, start - offset..end.min((block + 1) * block_bytes) - offset)
        };
        blocks.filter(|_| bytes > 0).map(part).collect()
    }

    fn block_mut(&mut self, block: u64) -> &mut Block {
        let block_bytes = self.block_bytes;
        self.blocks.entry(block).or_insert_with(|| Block::zeros(block_bytes))
    }

    fn each_block(&self, read: &mut impl FnMut(u64, &mut [u8]), mut then: impl FnMut(u64, &[u8])) {
        let mut found = vec![0; self.block_bytes];
        for block in 0..self.bytes / self.block_bytes as u64 {
            read(block * self.block_bytes as u64, &mut found);
            then(block, &found);
        }
    }

    fn adopt_as(
        &mut self,
        read: &mut impl FnMut(u64, &mut [u8]),
        adopt: impl Fn(&mut Self, u64, Vec<u8>),
    ) {
        let mut changed = Vec::new();
        self.each_block(read, |block, found| {
            let is_known = match self.blocks.get(&block) {
                Some(known) => known.is_durably(found),
                None => found.iter().all(|byte| *byte == 0),
            };
            if !is_known {
                changed.push((block, found.to_vec()));
            }
        });
        for (block, found) in changed {
            self.block_mut(block).remember_all();
            adopt(self, block, found);
        }
    }

    /// Compares a part of a block with all that it may hold when the requests that `must` names have
    /// been served.
    fn compare(
        &self,
        block: u64,
        start: usize,
        found: &[u8],
        must: impl Fn(&BlockRequest) -> bool,
        report: &mut Report,
    ) {
        let untouched;
        let known = match self.blocks.get(&block) {
            Some(known) => known,
            None => {
                untouched = Block::zeros(self.block_bytes);
                &untouched
            }
        };
        let allowed = known.contents(must);
        let parts = || allowed.iter().map(|content| &content[start..start + found.len()]);
        let wrong_bytes = |part: &[u8]| part.iter().zip(found).filter(|(a, b)| a != b).count();
        let bytes_wrong = parts().map(wrong_bytes).min().unwrap_or(found.len()) as u64;
        if bytes_wrong == 0 {
            return;
        }
        let is_mix = || (0..found.len()).all(|i| parts().any(|part| part[i] == found[i]));
        report.note(block, bytes_wrong, || match () {
            () if known.has_held(start, found) => Wrong::Stale,
            () if is_mix() => Wrong::Torn,
            () => Wrong::Foreign,
        });
    }
}

fn zeros(range: Range<u64>) -> Vec<u8> {
    vec![0; (range.end - range.start) as usize]
}
