//! Memory behind an ORAM controller.

use std::ops::Range;

use oblivio_core::geometry::{BucketId, Leaf};

use super::memory::Memory;
use super::outcome::MemoryTally;
use super::spec::{Clocks, Layout, SystemSpec};
use super::watched::Watched;
use crate::cache::Victim;
use crate::controller::{
    Bus, Controller, ControllerEvent, InitialOram, OramSpec, PathAccess, PathTimes, Writes,
};
use crate::dram::layout::{BucketLines, LayoutOrder};
use crate::dram::{Completion, Dram, Observer, Request};
use crate::processor::{FetchId, Processor};
use crate::trace::{AccessKind, Record};
use crate::{Cycle, SimError};

/// The controller, with the events to be passed to the processor.
pub(super) struct OramMemory {
    controller: Controller<DramBus<Watched>, FetchId>,
    events: Vec<ControllerEvent<FetchId>>,
    paths_stop_retirement: bool,
}

impl OramMemory {
    pub(super) fn new(
        spec: &SystemSpec,
        oram: &OramSpec,
        initial: InitialOram,
        seed: u64,
        watched: Watched,
    ) -> Result<Self, SimError> {
        let bus = DramBus::new(spec, oram, watched)?;
        let controller = Controller::new(oram, &spec.controller, bus, initial, seed)?;
        let paths_stop_retirement = spec.processor.paths_stop_retirement;
        Ok(Self { controller, events: Vec::new(), paths_stop_retirement })
    }

    fn deliver_events(&mut self, processor: &mut Processor<impl Iterator<Item = Record>>) {
        for event in self.events.drain(..) {
            match event {
                ControllerEvent::ReadAnswered(id, at) => processor.answer(id, at),
                ControllerEvent::WriteBackAccepted(at) => processor.written_back(at),
                ControllerEvent::BusReading { from, until } if self.paths_stop_retirement => {
                    processor.stop_retirement(from, until);
                }
                ControllerEvent::BusReading { .. } => {}
            }
        }
    }
}

impl Memory for OramMemory {
    fn preload_victim(&mut self, Victim { line, dirty }: Victim) -> Result<(), SimError> {
        self.controller.preload_victim(line, dirty)
    }

    fn start_timed_run(&mut self, held: &mut dyn Iterator<Item = u64>) -> Result<(), SimError> {
        for line in held {
            self.controller.preload_line(line)?;
        }
        self.controller.start_timed_run()
    }

    fn fetch(
        &mut self,
        id: FetchId,
        line: u64,
        at: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError> {
        self.controller.read(id, line, at, &mut self.events)?;
        self.deliver_events(processor);
        Ok(())
    }

    fn evict_line(&mut self, line: u64, is_dirty: bool, at: Cycle) -> Result<(), SimError> {
        self.controller.evict_line(line, is_dirty, at);
        Ok(())
    }

    fn next_event(&mut self) -> Option<Cycle> {
        self.controller.next_slot()
    }

    fn act(
        &mut self,
        event: Cycle,
        processor: &mut Processor<impl Iterator<Item = Record>>,
    ) -> Result<(), SimError> {
        self.controller.act(event, processor, &mut self.events)?;
        self.deliver_events(processor);
        Ok(())
    }

    fn tally(&self) -> MemoryTally {
        MemoryTally { controller: Some(self.controller.tally()), dram: self.watched().tally() }
    }

    fn watched(&self) -> &Watched {
        self.controller.bus().dram.observer()
    }
}

/// The bus to DRAM. It sends all reads of a path at once, and then all its writes.
pub(super) struct DramBus<O> {
    pub(super) dram: Dram<O>,
    clocks: Clocks,
    latency: Cycle,
    /// The layouts of the trees, by the number of the tree.
    trees: Vec<TreeLayout>,
    /// The lines of DRAM to which the tree top is moved at a context switch.
    tree_top: Range<u64>,
    done: Vec<Completion>,
}

/// A tree laid out in DRAM.
struct TreeLayout {
    buckets: BucketLines,
    /// The first line of the tree in DRAM.
    start: u64,
    /// The levels that are in DRAM.
    levels: Range<u8>,
    header_lines: u64,
}

impl TreeLayout {
    /// The lines of all buckets on a path, or only of their headers.
    fn path(&self, leaf: Leaf, writes: Writes) -> impl Iterator<Item = u64> {
        let wanted = match writes {
            Writes::Buckets => usize::MAX,
            Writes::Headers => self.header_lines as usize,
        };
        let buckets = self.levels.clone().map(move |level| BucketId::on_path(leaf, level));
        buckets.flat_map(move |bucket| {
            let lines = self.buckets.lines(bucket.level().into(), bucket.index());
            lines.take(wanted).map(|line| self.start + line)
        })
    }
}

impl<O: Observer> DramBus<O> {
    /// Creates a bus for the trees of `oram`. `observer` sees each DRAM command. Fails if the trees
    /// exceed the DRAM, or a parameter of the trees or the DRAM is invalid.
    pub(super) fn new(spec: &SystemSpec, oram: &OramSpec, observer: O) -> Result<Self, SimError> {
        let dram = Dram::observed(&spec.dram, spec.channels, observer)?;
        let row_span = dram.row_span();
        let order = match spec.layout {
            Layout::Heap => LayoutOrder::Heap,
            Layout::Subtrees => LayoutOrder::Subtrees { row_span },
            Layout::Balanced => LayoutOrder::Balanced { row_span, channels: spec.channels.into() },
        };
        let (mut trees, mut start) = (Vec::new(), 0);
        for slots in oram.slot_lines_in_memory()? {
            let buckets = BucketLines::new(&slots, spec.header_lines, order)?;
            let first = slots.iter().take_while(|slots| **slots == 0).count() as u8;
            let (levels, header_lines) = (first..slots.len() as u8, spec.header_lines);
            let lines = buckets.total();
            trees.push(TreeLayout { buckets, start, levels, header_lines });
            start += lines.next_multiple_of(row_span);
        }
        let is_switched = spec.controller.context_switch.is_some();
        let tree_top = start..start + if is_switched { tree_top_lines(spec, oram) } else { 0 };
        let start = tree_top.end;
        if start > dram.lines() {
            return Err(SimError::Spec(format!(
                "the trees have {start} lines, but the DRAM has {}: use more channels, or a DRAM \
                 with more rows",
                dram.lines()
            )));
        }
        let (clocks, latency) = (spec.clocks(), spec.memory_latency);
        Ok(Self { dram, clocks, latency, trees, tree_top, done: Vec::new() })
    }

    /// Requests all lines of a path, or only its header lines, at once.
    fn ask(&mut self, path: &PathAccess, kind: AccessKind, what: Writes, at: Cycle) {
        let arrival = self.clocks.clock(at);
        for line in self.trees[usize::from(path.tree.0)].path(path.leaf, what) {
            let request = Request { id: 0, line, kind, arrival };
            self.dram.enqueue(request).expect("the trees fit the DRAM");
        }
    }

    /// Requests all lines of the tree top at once.
    fn ask_for_tree_top(&mut self, kind: AccessKind, at: Cycle) {
        let arrival = self.clocks.clock(at);
        for line in self.tree_top.clone() {
            let request = Request { id: 0, line, kind, arrival };
            self.dram.enqueue(request).expect("the tree top fits the DRAM");
        }
    }

    /// Runs until all requests are complete. Returns the time, which is at least `start`.
    fn finish(&mut self, start: Cycle) -> Cycle {
        self.done.clear();
        let last = self.dram.run_until_idle(&mut self.done);
        let has_waited = !self.done.is_empty();
        last.filter(|_| has_waited).map_or(start, |clock| self.clocks.cycle(clock).max(start))
    }
}

impl<O: Observer> Bus for DramBus<O> {
    fn carry(&mut self, path: &PathAccess, start: Cycle) -> PathTimes {
        self.ask(path, AccessKind::Read, Writes::Buckets, start);
        let read = self.finish(start) + self.latency;
        self.ask(path, AccessKind::Write, path.writes, read);
        PathTimes { read, end: self.finish(read) }
    }

    fn carry_writes(&mut self, path: &PathAccess, start: Cycle) -> PathTimes {
        self.ask(path, AccessKind::Write, path.writes, start);
        PathTimes { read: start, end: self.finish(start) }
    }

    fn move_tree_top(&mut self, start: Cycle) -> Cycle {
        self.ask_for_tree_top(AccessKind::Write, start);
        let written = self.finish(start);
        self.ask_for_tree_top(AccessKind::Read, written);
        self.finish(written) + self.latency
    }
}

/// The number of lines of the tree top.
fn tree_top_lines(spec: &SystemSpec, oram: &OramSpec) -> u64 {
    let levels = (0..).zip(&oram.slots).take(oram.tree_top_levels.into());
    levels
        .map(|(level, slots)| (u64::from(*slots) * oram.block_lines + spec.header_lines) << level)
        .sum()
}
