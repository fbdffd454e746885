//! The contract of a disk as a model: what may be read, at any time and after a crash.
//!
//! Each block remembers what it held when that was last made durable, and every request since. A
//! block is written as a whole: of the requests to it, a crash keeps the first so many, in an order
//! in which they may have been served. Requests in flight together may have been served in any
//! order, or, at a crash, not at all; a failed one may have been served or not.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use oblivio_volume::device::DiskOp;

/// Requests to one block that are in flight together, or overlap in a chain, at most.
const TOGETHER_MAX: usize = 64;

/// What one block may hold, at most so many different contents.
const CONTENTS_MAX: usize = 1 << 14;

/// Wrong blocks that a report describes one by one.
const DESCRIBED_MAX: usize = 8;

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

struct Block {
    /// What it may hold with all that is durable and nothing else.
    base: BTreeSet<Vec<u8>>,
    /// Requests since, as submitted.
    requests: Vec<BlockRequest>,
    /// Hashes of what it held in the past, to name what went wrong.
    past: HashSet<u64>,
}

/// What one request does to one block.
struct BlockRequest {
    start: usize,
    patch: Vec<u8>,
    submitted: u64,
    answered: u64,
    failed: bool,
    durable: bool,
}

const UNANSWERED: u64 = u64::MAX;

/// What was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes that differ from the nearest content allowed.
    pub bytes_wrong: u64,
    /// Blocks with such bytes.
    pub blocks_wrong: u64,
    /// The first of these blocks.
    pub first: Vec<WrongBlock>,
}

/// A block that holds what it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlock {
    /// Its number.
    pub block: u64,
    /// Bytes that differ from the nearest content allowed.
    pub bytes_wrong: u64,
    /// In which way.
    pub wrong: Wrong,
}

/// In which way a block is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// It holds what it held once: newer data, which was to stay, was lost.
    Stale,
    /// Each byte is allowed, but not all together.
    Torn,
    /// It holds what was never written there.
    Foreign,
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
            let block = shadow.block_mut(block);
            block.base = [found].into();
            block.requests.clear();
        });
    }

    /// The same where nothing made it durable: another crash may bring back what this one might have
    /// left. The contract of a disk demands no more.
    pub fn adopt_unflushed(&mut self, mut read: impl FnMut(u64, &mut [u8])) {
        self.adopt_as(&mut read, |shadow, block, found| {
            let (submitted, answered) = (shadow.tick(), shadow.tick());
            let block = shadow.block_mut(block);
            block.base = block.contents(|request| request.durable);
            block.requests = vec![BlockRequest {
                start: 0,
                patch: found,
                submitted,
                answered,
                failed: false,
                durable: false,
            }];
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
            self.block_mut(block).requests.push(BlockRequest {
                start,
                patch: data(range),
                submitted: ticket.submitted,
                answered: UNANSWERED,
                failed: false,
                durable: false,
            });
        }
        ticket
    }

    fn settle(&mut self, ticket: &Ticket, failed: bool) {
        let answered = self.tick();
        for (_, block) in self.blocks.range_mut(ticket.blocks.clone()) {
            let request = |request: &&mut BlockRequest| request.submitted == ticket.submitted;
            if let Some(request) = block.requests.iter_mut().rev().find(request) {
                (request.answered, request.failed) = (answered, failed);
            }
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
                Some(known) => known.requests.is_empty() && known.is_only(found),
                None => found.iter().all(|byte| *byte == 0),
            };
            if !is_known {
                changed.push((block, found.to_vec()));
            }
        });
        for (block, found) in changed {
            let known = self.block_mut(block);
            known.remember(known.contents(|_| false));
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
        report.bytes_wrong += bytes_wrong;
        report.blocks_wrong += 1;
        if report.first.len() < DESCRIBED_MAX {
            let is_mix = (0..found.len()).all(|i| parts().any(|part| part[i] == found[i]));
            let wrong = match () {
                () if known.has_held(start, found) => Wrong::Stale,
                () if is_mix => Wrong::Torn,
                () => Wrong::Foreign,
            };
            report.first.push(WrongBlock { block, bytes_wrong, wrong });
        }
    }
}

fn zeros(range: Range<u64>) -> Vec<u8> {
    vec![0; (range.end - range.start) as usize]
}

impl Block {
    fn zeros(bytes: usize) -> Self {
        Self { base: [vec![0; bytes]].into(), requests: Vec::new(), past: HashSet::new() }
    }

    fn is_only(&self, content: &[u8]) -> bool {
        self.base.len() == 1 && self.base.contains(content)
    }

    /// Marks requests as durable, and forgets those that nothing can come before any more.
    fn pin(&mut self, is_pinned: impl Fn(&BlockRequest) -> bool) {
        for request in &mut self.requests {
            request.durable |= is_pinned(request);
        }
        let durable = |together: &&[BlockRequest]| together.iter().all(|request| request.durable);
        let (mut count, mut base) = (0, None);
        let mut passed = Vec::new();
        for together in groups(&self.requests).take_while(durable) {
            let served = served(together, base.as_ref().unwrap_or(&self.base));
            passed.extend(served.iter().map(|(_, content)| hash(content)));
            base = Some(complete(together, served));
            count += together.len();
        }
        if let Some(base) = base {
            self.past.extend(self.base.iter().map(|content| hash(content)));
            self.past.extend(passed);
            self.base = base;
            self.requests.drain(..count);
        }
    }

    /// All that it may hold when the requests that `must` names have been served, but for those that
    /// failed.
    fn contents(&self, must: impl Fn(&BlockRequest) -> bool) -> BTreeSet<Vec<u8>> {
        let mut before = self.base.clone();
        let mut found = self.base.clone();
        for together in groups(&self.requests) {
            let needed = mask(together, |request| must(request) && !request.failed);
            if needed != 0 {
                found.clear();
            }
            let served = served(together, &before);
            let enough = served.iter().filter(|(done, _)| done & needed == needed);
            found.extend(enough.map(|(_, content)| content.clone()));
            before = complete(together, served);
        }
        found
    }

    fn remember(&mut self, contents: BTreeSet<Vec<u8>>) {
        self.past.extend(contents.iter().map(|content| hash(content)));
    }

    fn has_held(&self, start: usize, found: &[u8]) -> bool {
        let is_whole = start == 0 && self.base.iter().all(|content| content.len() == found.len());
        let parts = self.base.iter().map(|content| &content[start..start + found.len()]);
        (is_whole && self.past.contains(&hash(found))) || parts.into_iter().any(|old| old == found)
    }
}

/// Cuts the requests where all earlier ones were answered before all later ones were submitted.
fn groups(requests: &[BlockRequest]) -> impl Iterator<Item = &[BlockRequest]> {
    let mut rest = requests;
    std::iter::from_fn(move || {
        let mut answered = rest.first()?.answered;
        let later = rest.iter().position(|request| {
            let is_later = request.submitted > answered;
            answered = answered.max(request.answered);
            is_later
        });
        let (together, after) = rest.split_at(later.unwrap_or(rest.len()));
        rest = after;
        Some(together)
    })
}

/// Which requests of a group have been served (a bit each), and what the block then holds.
type Served = BTreeSet<(u64, Vec<u8>)>;

/// Everything that can come of serving some of a group, in any order that the times allow.
fn served(together: &[BlockRequest], before: &BTreeSet<Vec<u8>>) -> Served {
    assert!(together.len() <= TOGETHER_MAX, "too many requests to one block at once for the model");
    let mut seen: Served = before.iter().map(|content| (0, content.clone())).collect();
    let mut open: Vec<_> = seen.iter().cloned().collect();
    while let Some((done, content)) = open.pop() {
        for (i, next) in together.iter().enumerate() {
            let fits = (0..).zip(together).all(|(j, other): (u32, _)| match done >> j & 1 {
                0 => other.failed || other.answered > next.submitted,
                _ => other.submitted < next.answered,
            });
            if done >> i & 1 == 1 || !fits {
                continue;
            }
            let mut content = content.clone();
            content[next.start..next.start + next.patch.len()].copy_from_slice(&next.patch);
            let state = (done | 1 << i, content);
            if seen.insert(state.clone()) {
                open.push(state);
            }
        }
        assert!(seen.len() <= CONTENTS_MAX, "too many possible contents of a block for the model");
    }
    seen
}

/// The contents when everything has been served that did not fail.
fn complete(together: &[BlockRequest], served: Served) -> BTreeSet<Vec<u8>> {
    let all = mask(together, |request| !request.failed);
    let whole = served.into_iter().filter(|(done, _)| done & all == all);
    whole.map(|(_, content)| content).collect()
}

fn mask(together: &[BlockRequest], is_in: impl Fn(&BlockRequest) -> bool) -> u64 {
    let bits = together.iter().enumerate().filter(|(_, request)| is_in(request));
    bits.fold(0, |mask, (i, _)| mask | 1 << i)
}

fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

impl Report {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.blocks_wrong == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {} blocks are wrong", self.bytes_wrong, self.blocks_wrong)?;
        for WrongBlock { block, bytes_wrong, wrong } in &self.first {
            write!(f, "; block {block}: {bytes_wrong} bytes, {wrong:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 4;

    fn write(offset: u64, data: &[u8]) -> DiskOp {
        DiskOp::Write { offset, data: data.to_vec().into(), durable: false }
    }

    /// What is wrong with a disk that holds `held` after a crash.
    fn wrong(shadow: &ShadowDisk, held: &[u8]) -> Vec<(u64, Wrong)> {
        let report = shadow.check(reader(held));
        assert_eq!(report.bytes_wrong > 0, !report.is_clean());
        report.first.iter().map(|wrong| (wrong.block, wrong.wrong)).collect()
    }

    fn reader(held: &[u8]) -> impl FnMut(u64, &mut [u8]) + '_ {
        |offset, out| {
            out.copy_from_slice(&held[offset as usize..][..out.len()]);
        }
    }

    fn is_allowed(shadow: &ShadowDisk, held: &[u8]) -> bool {
        wrong(shadow, held).is_empty()
    }

    #[test]
    fn blocks_are_old_or_new_each_for_itself() {
        let mut shadow = ShadowDisk::new(8, BLOCK);
        shadow.write(2, b"abcd");
        for held in [b"\0\0\0\0\0\0\0\0", b"\0\0ab\0\0\0\0", b"\0\0\0\0cd\0\0", b"\0\0abcd\0\0"] {
            assert!(is_allowed(&shadow, held));
        }
        assert_eq!(wrong(&shadow, b"\0\0a\0cd\0\0"), [(0, Wrong::Torn)]);
        assert_eq!(wrong(&shadow, b"\0\0abxd\0\0"), [(1, Wrong::Foreign)]);
    }

    #[test]
    fn what_was_flushed_stays() {
        let mut shadow = ShadowDisk::new(8, BLOCK);
        shadow.write(0, b"aaaa");
        let flush = shadow.flush_begun();
        shadow.write(0, b"bbbb");
        shadow.flush_done(flush);
        assert_eq!(wrong(&shadow, b"\0\0\0\0\0\0\0\0"), [(0, Wrong::Stale)]);
        assert!(is_allowed(&shadow, b"aaaa\0\0\0\0"));
        assert!(is_allowed(&shadow, b"bbbb\0\0\0\0"));
        assert_eq!(wrong(&shadow, b"aabb\0\0\0\0"), [(0, Wrong::Torn)]);
        assert_eq!(wrong(&shadow, b"aaaa\0\0\0x"), [(1, Wrong::Foreign)]);
    }

    #[test]
    fn a_flush_without_an_answer_promises_nothing() {
        let mut shadow = ShadowDisk::new(4, BLOCK);
        shadow.write(0, b"aaaa");
        let _unanswered = shadow.flush_begun();
        assert!(is_allowed(&shadow, b"\0\0\0\0") && is_allowed(&shadow, b"aaaa"));
    }

    #[test]
    fn a_durable_request_makes_itself_and_what_came_before_durable() {
        let mut shadow = ShadowDisk::new(12, BLOCK);
        shadow.write(0, b"aaaa");
        let durable = shadow.submit(&DiskOp::Write {
            offset: 4,
            data: b"bbbb".to_vec().into(),
            durable: true,
        });
        shadow.write(8, b"cccc");
        shadow.answered(durable);
        assert!(is_allowed(&shadow, b"aaaabbbb\0\0\0\0"));
        assert!(is_allowed(&shadow, b"aaaabbbbcccc"));
        let lost = [(0, Wrong::Stale), (1, Wrong::Stale)];
        assert_eq!(wrong(&shadow, b"\0\0\0\0\0\0\0\0cccc"), lost);
    }

    #[test]
    fn requests_in_flight_together_are_served_in_any_order_or_not() {
        let mut shadow = ShadowDisk::new(4, BLOCK);
        let one = shadow.submit(&write(0, b"aaa"));
        let two = shadow.submit(&write(1, b"bbb"));
        for held in [b"\0\0\0\0", b"aaa\0", b"\0bbb", b"abbb", b"aaab"] {
            assert!(is_allowed(&shadow, held), "{held:?}");
        }
        assert!(!is_allowed(&shadow, b"abab"));
        shadow.answered(one);
        shadow.answered(two);
        let flush = shadow.flush_begun();
        shadow.flush_done(flush);
        assert!(is_allowed(&shadow, b"abbb") && is_allowed(&shadow, b"aaab"));
        assert_eq!(wrong(&shadow, b"\0bbb"), [(0, Wrong::Stale)]);
        shadow.write(0, b"cccc");
        assert!(is_allowed(&shadow, b"aaab") && is_allowed(&shadow, b"cccc"));
    }

    #[test]
    fn a_flush_does_not_pin_what_it_was_in_flight_with() {
        let mut shadow = ShadowDisk::new(4, BLOCK);
        let slow = shadow.submit(&write(0, b"s"));
        shadow.write(1, b"q");
        let flush = shadow.flush_begun();
        shadow.answered(slow);
        shadow.flush_done(flush);
        assert!(is_allowed(&shadow, b"\0q\0\0") && is_allowed(&shadow, b"sq\0\0"));
        assert!(!is_allowed(&shadow, b"s\0\0\0") && !is_allowed(&shadow, b"\0\0\0\0"));
    }

    #[test]
    fn a_failed_request_may_be_done_but_not_later() {
        let mut shadow = ShadowDisk::new(4, BLOCK);
        let failed = shadow.submit(&write(0, b"ff"));
        shadow.failed(failed);
        shadow.write(1, b"g");
        let flush = shadow.flush_begun();
        shadow.flush_done(flush);
        assert!(is_allowed(&shadow, b"fg\0\0") && is_allowed(&shadow, b"\0g\0\0"));
        assert!(!is_allowed(&shadow, b"ff\0\0"));
        let _never_answered = shadow.submit(&write(3, b"s"));
        let failed = shadow.submit(&write(0, b"hh"));
        shadow.failed(failed);
        shadow.write(1, b"i");
        assert!(is_allowed(&shadow, b"hi\0s"));
        let flush = shadow.flush_begun();
        shadow.flush_done(flush);
        assert!(is_allowed(&shadow, b"hi\0s") && !is_allowed(&shadow, b"hh\0s"));
    }

    #[test]
    fn a_trim_clears_whole_blocks_only() {
        let mut shadow = ShadowDisk::new(16, BLOCK);
        shadow.write(0, b"aaaabbbbccccdddd");
        shadow.trim(2, 10);
        shadow.zero(13, 2);
        let flush = shadow.flush_begun();
        shadow.flush_done(flush);
        assert!(is_allowed(&shadow, b"aaaa\0\0\0\0\0\0\0\0d\0\0d"));
        shadow.trim(1, 2);
        assert!(is_allowed(&shadow, b"aaaa\0\0\0\0\0\0\0\0d\0\0d"));
    }

    #[test]
    fn reads_are_held_to_what_was_answered_before_them() {
        let mut shadow = ShadowDisk::new(8, BLOCK);
        shadow.write(2, b"abcd");
        let slow = shadow.submit(&write(6, b"z"));
        let read = shadow.submit(&DiskOp::Read { offset: 3, bytes: 4 });
        assert!(shadow.check_read(&read, 3, b"bcd\0").is_clean());
        assert!(shadow.check_read(&read, 3, b"bcdz").is_clean());
        assert_eq!(shadow.check_read(&read, 3, b"\0cd\0").first[0].wrong, Wrong::Stale);
        assert_eq!(shadow.check_read(&read, 3, b"bcdy").bytes_wrong, 1);
        shadow.answered(slow);
        assert!(shadow.check_read(&read, 3, b"bcd\0").is_clean(), "it was in flight together");
        let later = shadow.submit(&DiskOp::Read { offset: 3, bytes: 4 });
        assert!(!shadow.check_read(&later, 3, b"bcd\0").is_clean());
    }

    #[test]
    fn what_is_adopted_stays_unless_nothing_made_it_durable() {
        let mut shadow = ShadowDisk::new(8, BLOCK);
        shadow.write(0, b"aaaabbbb");
        let held = b"aaaa\0\0\0\0";
        assert!(is_allowed(&shadow, held));
        let mut lenient = ShadowDisk::new(8, BLOCK);
        lenient.write(0, b"aaaabbbb");
        lenient.adopt_unflushed(reader(held));
        assert!(is_allowed(&lenient, &[0; 8]) && is_allowed(&lenient, b"aaaabbbb"));
        let flush = lenient.flush_begun();
        lenient.flush_done(flush);
        shadow.adopt(reader(held));
        for shadow in [&shadow, &lenient] {
            assert!(is_allowed(shadow, held));
            assert_eq!(wrong(shadow, &[0; 8]), [(0, Wrong::Stale)]);
            assert_eq!(wrong(shadow, b"aaaabbbb"), [(1, Wrong::Stale)]);
        }
    }

    #[test]
    fn hundreds_of_versions_between_flushes_are_no_trouble() {
        let mut shadow = ShadowDisk::new(4, BLOCK);
        for version in 0..500u32 {
            shadow.write(0, &version.to_be_bytes());
        }
        assert!(is_allowed(&shadow, &77u32.to_be_bytes()));
        assert!(!is_allowed(&shadow, &500u32.to_be_bytes()));
    }
}
