//! Memory without ORAM: each request of the LLC is one line of DRAM. Line numbers are taken modulo
//! the lines of the DRAM.

use std::collections::HashMap;

use super::memory::Memory;
use super::outcome::MemoryTally;
use super::spec::{Clocks, SystemSpec};
use super::watched::Watched;
use crate::cache::Victim;
use crate::dram::{Completion, Dram, Request};
use crate::processor::{FetchId, Processor};
use crate::trace::{AccessKind, Record};
use crate::{Cycle, SimError};

pub(super) struct PlainMemory {
    dram: Dram<Watched>,
    clocks: Clocks,
    latency: Cycle,
    /// The fetch to answer, for each request by its id; `None` for a write-back.
    readers: HashMap<u64, Option<FetchId>>,
    next_id: u64,
    done: Vec<Completion>,
}

impl PlainMemory {
    pub(super) fn new(spec: &SystemSpec, watched: Watched) -> Result<Self, SimError> {
        Ok(Self {
            dram: Dram::observed(&spec.dram, spec.channels, watched)?,
            clocks: spec.clocks(),
            latency: spec.memory_latency,
            readers: HashMap::new(),
            next_id: 0,
            done: Vec::new(),
        })
    }

    fn ask(
        &mut self,
        line: u64,
        kind: AccessKind,
        reader: Option<FetchId>,
        at: Cycle,
    ) -> Result<(), SimError> {
        let (id, arrival) = (self.next_id, self.clocks.clock(at));
        self.next_id += 1;
        self.readers.insert(id, reader);
        self.dram.enqueue(Request { id, line: line % self.dram.lines(), kind, arrival })
    }
}

impl Memory for PlainMemory {
    fn preload_victim(&mut self, _: Victim) -> Result<(), SimError> {
        Ok(())
    }

    fn start_timed_run(&mut self, _: &mut dyn Iterator<Item = u64>) -> Result<(), SimError> {
        Ok(())
    }

    fn fetch(
        &mut self,
        id: FetchId,
        line: u64,
        at: Cycle,
        _: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError> {
        self.ask(line, AccessKind::Read, Some(id), at)
    }

    fn evict_line(&mut self, line: u64, is_dirty: bool, at: Cycle) -> Result<(), SimError> {
        if is_dirty { self.ask(line, AccessKind::Write, None, at) } else { Ok(()) }
    }

    fn next_event(&mut self) -> Option<Cycle> {
        self.dram.next_event().map(|clock| self.clocks.cycle(clock))
    }

    fn act(
        &mut self,
        event: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError> {
        self.done.clear();
        self.dram.run_until(self.clocks.clock_by(event), &mut self.done);
        for Completion { id, clock } in self.done.drain(..) {
            let at = self.clocks.cycle(clock);
            match self.readers.remove(&id).flatten() {
                Some(reader) => processor.answer(reader, at + self.latency),
                None => processor.written_back(at),
            }
        }
        Ok(())
    }

    fn tally(&self) -> MemoryTally {
        MemoryTally { controller: None, dram: self.watched().tally() }
    }

    fn watched(&self) -> &Watched {
        self.dram.observer()
    }
}
