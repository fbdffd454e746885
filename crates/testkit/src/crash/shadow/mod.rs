//! A model of the contract of a disk: the data that reads may return, at any time and after a
//! crash.
//!
//! Each block remembers its last durable contents and every request since. Blocks are written
//! atomically: a crash keeps a prefix of the requests to a block, in an order in which they may
//! have been served. Requests in flight together may have been served in any order or, at a crash,
//! not at all. A failed request may have been served or not.

mod block;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use oblivio_volume::device::DiskOp;

use block::{Block, BlockRequest};
pub use report::{Report, Wrong, WrongBlock};

/// A disk's requests and answers, and the contents that the contract allows. The disk starts with
/// durable zeros.
pub struct ShadowDisk {
    bytes: u64,
    block_bytes: usize,
    /// The models of blocks that had a request. All other blocks hold zeros.
    blocks: BTreeMap<u64, Block>,
    /// The logical time, which advances with each submission and each answer.
    now: u64,
}

/// A request in flight. If it is never answered, it may or may not have been served.
#[derive(Debug)]
#[must_use = "report the answer to the shadow"]
pub struct Ticket {
    submitted: u64,
    blocks: Range<u64>,
    pins: Pins,
}

/// The requests that an answer makes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pins {
    Nothing,
    /// Requests answered before this one was submitted.
    Earlier,
    /// The requests of [`Self::Earlier`], and this request itself.
    Itself,
}

impl ShadowDisk {
    /// Creates the model of a disk of zeros.
    ///
    /// # Panics
    /// If the disk does not consist of whole blocks.
    pub fn new(bytes: u64, block_bytes: u32) -> Self {
        assert!(block_bytes > 0 && bytes.is_multiple_of(u64::from(block_bytes)), "whole blocks");
        Self { bytes, block_bytes: block_bytes as usize, blocks: BTreeMap::new(), now: 0 }
    }

    /// Records that a request is about to be submitted.
    ///
    /// # Panics
    /// If it reaches past the end of the disk.
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

    /// Records that the request of `ticket` succeeded.
    pub fn answered(&mut self, ticket: Ticket) {
        self.complete(&ticket, false);
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

    /// Records that the request of `ticket` failed. It may have been served, but will not be served
    /// later.
    pub fn failed(&mut self, ticket: Ticket) {
        self.complete(&ticket, true);
    }

    /// Records a write that is submitted and answered at once.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.at_once(&DiskOp::Write { offset, data: data.to_vec().into(), durable: false });
    }

    /// Records a request for zeros that is submitted and answered at once.
    pub fn zero(&mut self, offset: u64, bytes: u64) {
        self.at_once(&DiskOp::Zero { offset, bytes, durable: false });
    }

    /// Records a trim that is submitted and answered at once. Whole blocks become zeros.
    pub fn trim(&mut self, offset: u64, bytes: u64) {
        self.at_once(&DiskOp::Trim { offset, bytes, durable: false });
    }

    /// Records that a flush is about to be submitted.
    pub fn flush_begun(&mut self) -> Ticket {
        self.submit(&DiskOp::Flush)
    }

    /// Records the answer to a flush: requests answered before its submission are durable.
    pub fn flush_done(&mut self, ticket: Ticket) {
        self.answered(ticket);
    }

    /// Checks the data that the read of `ticket` returned.
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

    /// Compares the whole disk with the model after a crash.
    pub fn check(&self, mut read: impl FnMut(u64, &mut [u8])) -> Report {
        let mut report = Report::default();
        self.each_block(&mut read, |block, found| {
            self.compare(block, 0, found, |request| request.durable, &mut report);
        });
        report
    }

    /// Adopts the contents of the disk after a crash as durable: later crashes must not change
    /// them.
    pub fn adopt(&mut self, mut read: impl FnMut(u64, &mut [u8])) {
        self.adopt_as(&mut read, |shadow, block, found| {
            shadow.block_mut(block).keep(found);
        });
    }

    /// Adopts the contents of the disk after a crash without making them durable: another crash may
    /// still bring back any contents that the first one could have left.
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

    /// Records a request that writes `data(part)` to each part of its range.
    fn patch(
        &mut self,
        offset: u64,
        bytes: u64,
        pins: Pins,
        data: impl Fn(Range<u64>) -> Vec<u8>,
    ) -> Ticket {
        assert!(offset + bytes <= self.bytes, "the request reaches past the end of the disk");
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

    fn complete(&mut self, ticket: &Ticket, failed: bool) {
        let answered = self.tick();
        for (_, block) in self.blocks.range_mut(ticket.blocks.clone()) {
            block.complete(ticket.submitted, answered, failed);
        }
    }

    /// Splits a request at block boundaries. Ranges are relative to the start of the request.
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

    /// Compares part of a block with all contents that are possible if the requests that `must`
    /// selects were served.
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
