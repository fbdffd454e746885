//! The processor: the pipeline, and the LLC between the pipeline and memory.

use super::fetches::Fetches;
use super::pipeline::{Pipeline, When};
use super::request::{FetchId, ProcessorEvent, Request};
use super::slot_pool::SlotPool;
use super::spec::ProcessorSpec;
use super::tally::Tally;
use crate::cache::{Cache, Victim};
use crate::trace::{AccessKind, Record};
use crate::{Cycle, SimError};

/// A processor that runs a trace.
#[derive(Clone, Debug)]
pub struct Processor<Records> {
    records: Records,
    /// The next record, with the number of its instruction. `None` at the end of the trace.
    current: Option<(u64, Record)>,
    pipeline: Pipeline,
    llc: Cache,
    llc_latency: Cycle,
    fetch_on_write_miss: bool,
    fetches: Fetches,
    fetch_room: SlotPool,
    write_back_room: SlotPool,
    /// The request of a victim whose instruction also fetches a line. It is returned after the
    /// fetch.
    victim: Option<(Cycle, Request)>,
    /// The dirty line whose eviction delays the current instruction.
    in_the_way: Option<u64>,
    /// The cycle from which the current instruction needs no room for a write-back, because its
    /// victim was written early.
    cleaned: Cycle,
    /// The number of records after which [`ProcessorEvent::WarmupDone`] is returned.
    mark: Option<u64>,
    tally: Tally,
}

impl<Records: Iterator<Item = Record>> Processor<Records> {
    /// Creates a processor with an empty LLC, before its first instruction.
    ///
    /// # Errors
    /// The errors of [`ProcessorSpec::check`].
    pub fn new(spec: &ProcessorSpec, records: Records) -> Result<Self, SimError> {
        spec.check()?;
        let mut new = Self {
            records,
            current: None,
            pipeline: Pipeline::new(spec),
            llc: spec.llc()?,
            llc_latency: spec.llc_latency,
            fetch_on_write_miss: spec.fetch_on_write_miss,
            fetches: Fetches::default(),
            fetch_room: SlotPool::new(spec.fetch_room),
            write_back_room: SlotPool::new(spec.write_back_room),
            victim: None,
            in_the_way: None,
            cleaned: 0,
            mark: None,
            tally: Tally::default(),
        };
        new.advance();
        Ok(new)
    }

    /// Fills the LLC with the lines of the next `records` records, without time, requests or
    /// counting. The caller must do this before the first [`next`](Self::next). `left` receives
    /// each line that leaves the LLC.
    ///
    /// # Errors
    /// The errors of `left`.
    pub fn fill_llc(
        &mut self,
        records: u64,
        left: &mut dyn FnMut(Victim) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        for _ in 0..records {
            let Some((_, Record { kind, line, .. })) = self.current else { break };
            let writes = kind == AccessKind::Write;
            if !self.llc.touch(line, writes) {
                self.llc.insert(line, writes).map_or(Ok(()), &mut *left)?;
            }
            // Instruction numbers start with the remaining records.
            self.current = self.records.next().map(|record| (record.gap.into(), record));
        }
        Ok(())
    }

    /// Makes [`Self::next`] return [`ProcessorEvent::WarmupDone`] once, after `records` records and
    /// before the next record runs. If the trace ends there, the event is not returned.
    pub fn mark_after(&mut self, records: u64) {
        self.mark = Some(records);
    }

    /// Runs to the next request or other event. Instructions after cycle `horizon` do not change
    /// the LLC yet. With [`Cycle::MAX`], the processor runs until it needs an unknown answer.
    /// Requests are in order of time, and reach memory at most the LLC's latency after the horizon.
    pub fn next(&mut self, horizon: Cycle) -> ProcessorEvent {
        loop {
            if let Some((at, request)) = self.victim.take() {
                return ProcessorEvent::Request { at, request };
            }
            let Some((index, record)) = self.current else { return self.end(horizon) };
            let stalls = &mut self.tally.stalls;
            let free = match self.pipeline.fetch_up_to(index, &mut self.fetches, stalls, horizon) {
                When::At(cycle) => cycle,
                When::Later(at) => return ProcessorEvent::Idle { at },
                When::Waits => return ProcessorEvent::Blocked,
            };
            if free > horizon {
                return ProcessorEvent::Idle { at: free };
            }
            if self.mark.take_if(|records| *records == self.tally.records()).is_some() {
                return ProcessorEvent::WarmupDone { at: free };
            }
            if self.llc.touch(record.line, record.kind == AccessKind::Write) {
                self.stall(index, free, 0, 0);
                self.hit(index, record, free);
                self.advance();
                continue;
            }
            let victim = self.llc.next_victim(self.llc.set_of(record.line));
            let Some((write_back, fetch)) = self.room_since(record.kind, victim) else {
                return ProcessorEvent::Blocked;
            };
            let cycle = free.max(write_back).max(fetch);
            if cycle > horizon {
                return ProcessorEvent::Idle { at: cycle };
            }
            self.stall(index, free, write_back, fetch);
            let asked = self.miss(index, record, cycle);
            self.advance();
            if let Some(request) = asked {
                return ProcessorEvent::Request { at: cycle + self.llc_latency, request };
            }
        }
    }

    /// Notes that memory answers fetch `id` at cycle `at`. The caller must do this before
    /// [`Self::next`] with a later horizon, since later instructions may use the freed
    /// [room](ProcessorSpec::fetch_room).
    ///
    /// # Panics
    /// If the fetch was answered before, or `at` is before its request.
    pub fn answer(&mut self, id: FetchId, at: Cycle) {
        self.fetches.answer(id, at);
        self.fetch_room.release(at);
    }

    /// Notes that memory accepts one of the write-backs at cycle `at`. The caller must do this
    /// before [`Self::next`] with a later horizon.
    ///
    /// # Panics
    /// If no write-back waits.
    pub fn written_back(&mut self, at: Cycle) {
        self.write_back_room.release(at);
    }

    /// Stops retirement in the cycles `from..until`, while a path is read. Calls must be in
    /// order of time, and before [`Self::next`] with a horizon of `from` or later.
    ///
    /// # Panics
    /// If [paths do not stop](ProcessorSpec::paths_stop_retirement) the retirement of this
    /// processor.
    pub fn stop_retirement(&mut self, from: Cycle, until: Cycle) {
        self.pipeline.stop(from, until);
    }

    /// Marks `line` clean because it was written to memory early, at the start of cycle `at`.
    /// Returns whether it was in the LLC. All answers before `at` must have been passed in, and the
    /// processor must have run exactly to `at - 1`.
    pub fn written_early(&mut self, line: u64, at: Cycle) -> bool {
        if self.in_the_way == Some(line) {
            self.in_the_way = None;
            self.cleaned = self.write_back_room.free_since().map_or(at, |since| since.min(at));
        }
        self.llc.clean(line)
    }

    /// The LLC after all instructions up to the last horizon. If [`Self::next`] has not reached the
    /// horizon, the LLC after the instructions that it has fetched so far.
    pub fn llc(&self) -> &Cache {
        &self.llc
    }

    /// The counts of the processor so far.
    pub fn tally(&self) -> Tally {
        Tally { merges: self.fetches.merges(), ..self.tally }
    }

    fn end(&mut self, horizon: Cycle) -> ProcessorEvent {
        let Some(last) = self.tally.instructions.checked_sub(1) else {
            return ProcessorEvent::Done { at: 0 };
        };
        match self.pipeline.retires(last, &mut self.fetches, horizon) {
            When::At(at) => ProcessorEvent::Done { at },
            When::Later(at) => ProcessorEvent::Idle { at },
            When::Waits => ProcessorEvent::Blocked,
        }
    }

    /// Moves on to the next record.
    fn advance(&mut self) {
        if let Some((index, _)) = self.current {
            self.tally.instructions = index + 1;
        }
        self.in_the_way = None;
        self.cleaned = 0;
        let record = self.records.next();
        self.current =
            record.map(|record| (self.tally.instructions + u64::from(record.gap), record));
    }

    /// Fetches an instruction that hits the LLC.
    fn hit(&mut self, index: u64, record: Record, cycle: Cycle) {
        if record.kind == AccessKind::Write {
            self.tally.write_hits += 1;
            self.pipeline.fetch(index, cycle, 0, None);
            return;
        }
        self.tally.read_hits += 1;
        let wait = self.fetches.merge(record.line, cycle);
        self.pipeline.fetch(index, cycle, self.llc_latency, wait);
    }

    /// Fetches an instruction that misses the LLC. Returns its first request.
    fn miss(
        &mut self,
        index: u64,
        Record { kind, line, .. }: Record,
        cycle: Cycle,
    ) -> Option<Request> {
        let asked = cycle + self.llc_latency;
        let victim =
            self.llc.insert(line, kind == AccessKind::Write).map(|victim| self.evict(victim));
        let id = self.fetches_for(kind).then(|| {
            self.fetches.forget_before(cycle);
            self.fetch_room.acquire();
            self.fetches.start(line, asked)
        });
        if kind == AccessKind::Write {
            self.tally.write_misses += 1;
            self.pipeline.fetch(index, cycle, 0, None);
        } else {
            self.tally.read_misses += 1;
            let wait = id.map(|id| self.fetches.wait(id, None));
            self.pipeline.fetch(index, cycle, self.llc_latency, wait);
        }
        let Some(id) = id else { return victim };
        self.victim = victim.map(|victim| (asked, victim));
        Some(Request::Fetch { id, line })
    }

    fn evict(&mut self, Victim { line, dirty }: Victim) -> Request {
        self.fetches.forget_line(line);
        if dirty {
            self.tally.dirty_victims += 1;
            self.write_back_room.acquire();
            Request::WriteBack { line }
        } else {
            self.tally.clean_victims += 1;
            Request::Dropped { line }
        }
    }

    /// Whether an instruction that misses the LLC fetches its line from memory.
    fn fetches_for(&self, kind: AccessKind) -> bool {
        kind == AccessKind::Read || self.fetch_on_write_miss
    }

    /// The cycles from which memory has room for an instruction that misses and evicts `victim`:
    /// for its write-back, and for its fetch. `None` if it has no room yet.
    fn room_since(&mut self, kind: AccessKind, victim: Option<Victim>) -> Option<(Cycle, Cycle)> {
        let dirty = victim.filter(|victim| victim.dirty);
        self.in_the_way = dirty.map(|victim| victim.line);
        let write_back = match dirty {
            Some(_) => self.write_back_room.free_since()?,
            None => self.cleaned,
        };
        let fetch = if self.fetches_for(kind) { self.fetch_room.free_since()? } else { 0 };
        Some((write_back, fetch))
    }

    /// Counts the cycles for which instruction `index` stalled fetch. The ROB has room for it from
    /// cycle `free` on, and memory has room for its write-back from `write_back` on and for its
    /// fetch from `fetch` on.
    fn stall(&mut self, index: u64, free: Cycle, write_back: Cycle, fetch: Cycle) {
        let stalls = &mut self.tally.stalls;
        let mut from = self.pipeline.idle_from(index);
        let causes = [
            (&mut stalls.rob, free),
            (&mut stalls.write_backs, write_back),
            (&mut stalls.fetches, fetch),
        ];
        for (stalled, until) in causes {
            *stalled += until.saturating_sub(from);
            from = from.max(until);
        }
    }
}
