//! A literal model of the processor, cycle by cycle as in its description.

use std::collections::{HashMap, VecDeque};

use oblivio_sim::processor::{ProcessorSpec, Stalls, Tally};
use oblivio_sim::trace::{AccessKind, Record};
use oblivio_sim::{Cycle, LINE_BYTES};

use super::memory::{Memory, MemoryRequest, TurnResult};
use super::{Cleaning, Outcome};

/// An instruction in the reorder buffer.
struct Entry {
    not_before: Cycle,
    waits_for: Option<usize>,
}

#[derive(Clone, Copy)]
struct CachedLine {
    number: u64,
    dirty: bool,
    comes_by: Option<usize>,
}

pub(crate) struct Literal<'a> {
    spec: &'a ProcessorSpec,
    rob: VecDeque<Entry>,
    /// The lines of each set, the most recently used last.
    sets: Vec<Vec<CachedLine>>,
    fetches: usize,
    answered: HashMap<usize, Cycle>,
    write_backs: u64,
    taken: Vec<Cycle>,
    memory: Memory,
    stops: Vec<[Cycle; 2]>,
    out: Outcome,
}

enum Fetched {
    Yes,
    NoRoomForWriteBack,
    NoRoomForFetch,
}

impl<'a> Literal<'a> {
    pub(crate) fn new(spec: &'a ProcessorSpec, memory: Memory) -> Self {
        let sets = spec.llc_bytes / LINE_BYTES / spec.llc_ways as u64;
        Self {
            spec,
            rob: VecDeque::new(),
            sets: vec![Vec::new(); sets as usize],
            fetches: 0,
            answered: HashMap::new(),
            write_backs: 0,
            taken: Vec::new(),
            memory,
            stops: Vec::new(),
            out: Outcome::default(),
        }
    }

    pub(crate) fn run(mut self, trace: &[Record], cleanings: &[Cleaning]) -> Outcome {
        let instructions = trace.iter().flat_map(|record| {
            let idle = std::iter::repeat_n(None, record.gap as usize);
            idle.chain([Some(*record)])
        });
        let mut instructions = instructions.peekable();
        for now in 0.. {
            for cleaning in cleanings.iter().filter(|cleaning| cleaning.at == now) {
                self.clean_next_victim(cleaning.set);
            }
            let is_stopped = self.stops.iter().any(|[from, until]| (from..until).contains(&&now));
            let retires = self.spec.retire_width.unwrap_or(self.spec.width);
            for _ in 0..if is_stopped { 0 } else { retires } {
                if self.rob.front().is_some_and(|entry| self.is_complete(entry, now)) {
                    self.rob.pop_front();
                    self.out.end = now;
                }
            }
            if self.rob.is_empty() && instructions.peek().is_none() {
                break;
            }
            for place in 0..self.spec.width {
                let Some(&next) = instructions.peek() else { break };
                let stalls: &mut Stalls = &mut self.out.tally.stalls;
                let stalled = if self.rob.len() as u64 == self.spec.rob {
                    &mut stalls.rob
                } else {
                    match self.fetch(next, now) {
                        Fetched::Yes => {
                            self.out.tally.instructions += 1;
                            instructions.next();
                            continue;
                        }
                        Fetched::NoRoomForWriteBack => &mut self.out.tally.stalls.write_backs,
                        Fetched::NoRoomForFetch => &mut self.out.tally.stalls.fetches,
                    }
                };
                *stalled += u64::from(place == 0);
                break;
            }
            while self.memory.next_turn() == Some(now) {
                let TurnResult { at, answers, stop } = self.memory.take_turn();
                self.stops.extend(stop);
                match answers {
                    None => self.taken.push(at),
                    Some(id) => {
                        self.answered.insert(id, at);
                    }
                }
            }
        }
        self.out
    }

    fn is_complete(&self, entry: &Entry, now: Cycle) -> bool {
        now >= entry.not_before && entry.waits_for.is_none_or(|id| self.has_come(id, now))
    }

    fn has_come(&self, id: usize, now: Cycle) -> bool {
        self.answered.get(&id).is_some_and(|at| *at <= now)
    }

    fn fetch(&mut self, instruction: Option<Record>, now: Cycle) -> Fetched {
        let mut entry = Entry { not_before: now + self.spec.depth, waits_for: None };
        if let Some(record) = instruction {
            match self.use_llc(record, now) {
                Err(stalled) => return stalled,
                Ok(waits_for) if record.kind == AccessKind::Read => {
                    entry.not_before += self.spec.llc_latency;
                    entry.waits_for = waits_for;
                }
                Ok(_) => {}
            }
        }
        self.rob.push_back(entry);
        Fetched::Yes
    }

    /// Looks up the line of `record` in the LLC. Returns the fetch that brings or brought the line,
    /// if any. The error says whether there is no room for a write-back or for a fetch.
    fn use_llc(&mut self, record: Record, now: Cycle) -> Result<Option<usize>, Fetched> {
        let writes = record.kind == AccessKind::Write;
        let number = record.line % self.sets.len() as u64;
        let set = &self.sets[number as usize];
        if let Some(place) = set.iter().position(|line| line.number == record.line) {
            let CachedLine { number: _, dirty, comes_by } = set[place];
            let waits = !writes && comes_by.is_some_and(|id| !self.has_come(id, now));
            let Tally { read_hits, write_hits, merges, .. } = &mut self.out.tally;
            *if writes { write_hits } else { read_hits } += 1;
            *merges += u64::from(waits);
            let set = &mut self.sets[number as usize];
            set.remove(place);
            set.push(CachedLine { number: record.line, dirty: dirty | writes, comes_by });
            return Ok(comes_by);
        }
        let victim = (set.len() == self.spec.llc_ways).then(|| set[0]);
        let write_back = victim.is_some_and(|victim| victim.dirty);
        let taken = self.taken.iter().filter(|at| **at <= now).count() as u64;
        if write_back && self.write_backs - taken == self.spec.write_back_room {
            return Err(Fetched::NoRoomForWriteBack);
        }
        let fetch = !writes || self.spec.fetch_on_write_miss;
        let come = self.answered.values().filter(|at| **at <= now).count();
        if fetch && self.spec.fetch_room == (self.fetches - come) as u64 {
            return Err(Fetched::NoRoomForFetch);
        }
        let Tally { read_misses, write_misses, dirty_victims, clean_victims, .. } =
            &mut self.out.tally;
        *if writes { write_misses } else { read_misses } += 1;
        if victim.is_some() {
            *if write_back { dirty_victims } else { clean_victims } += 1;
        }
        self.write_backs += u64::from(write_back);
        let comes_by = fetch.then_some(self.fetches);
        if fetch {
            self.fetches += 1;
            self.ask(now, MemoryRequest::Fetch(record.line));
        }
        let set = &mut self.sets[number as usize];
        set.push(CachedLine { number: record.line, dirty: writes, comes_by });
        if let Some(victim) = victim {
            self.sets[number as usize].remove(0);
            let what = if write_back { MemoryRequest::WriteBack } else { MemoryRequest::Dropped };
            self.ask(now, what(victim.number));
        }
        Ok(comes_by)
    }

    fn ask(&mut self, now: Cycle, what: MemoryRequest) {
        let at = now + self.spec.llc_latency;
        self.out.asked.push((at, what));
        self.memory.ask(at, what);
    }

    fn clean_next_victim(&mut self, set: u64) {
        let sets = self.sets.len() as u64;
        let set = &mut self.sets[(set % sets) as usize];
        if set.len() == self.spec.llc_ways {
            set[0].dirty = false;
        }
    }
}
