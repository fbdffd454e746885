//! A complete machine: a processor that runs a trace, and its memory.
//!
//! ```text
//!  trace ──► processor with its LLC ──► controller (core) ──► DRAM
//!                                  └──► DRAM, without ORAM
//! ```
//!
//! One loop serves memory with and without ORAM. It handles the earlier of the processor's next
//! request and the memory's next event. Results depend only on the specification, the trace and the
//! seed.

mod bounds;
mod commented;
mod memory;
mod notes;
mod oram;
mod outcome;
mod plain;
mod spec;
mod watched;

#[cfg(test)]
mod tests;

pub use outcome::{MemoryTally, Outcome};
pub use spec::{Layout, SystemSpec};

use std::collections::VecDeque;

use crate::controller::InitialOram;
use crate::dram::checker::Checker;
use crate::processor::{Processor, ProcessorEvent, Request};
use crate::trace::Record;
use crate::{Cycle, SimError};
use memory::Memory;
use oram::OramMemory;
use plain::PlainMemory;
use watched::Watched;

/// An observer of the progress of a run.
pub trait Progress {
    /// Reports that `done` records of the trace have run. Called when the machine is built, at the
    /// end of its warm-up, and regularly.
    fn records(&self, done: u64);
}

impl Progress for () {
    fn records(&self, _: u64) {}
}

/// The part of a run before counting begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// Records that only fill the LLC, and are not timed. With delayed remapping, the blocks that
    /// are then in the LLC are out of the ORAM.
    pub llc_records: u64,
    /// Whether lines that leave the LLC during `llc_records` move to the small tree of ρ, by
    /// untimed paths. If not, that tree is empty at first. This has no effect without ρ.
    pub fills_small_tree: bool,
    /// Further records that fill all caches and mix the tree. They are timed, but not in the
    /// [`Outcome`].
    pub records: u64,
}

/// Runs the records of `warm_up`, and then all remaining `records`, on a machine of `spec`. All
/// randomness follows from `seed`.
///
/// # Errors
/// [`SimError::Spec`] if the parameters cannot be combined. [`SimError::Engine`] for an impossible
/// tree, or for a line past the end of the ORAM.
pub fn run(
    spec: &SystemSpec,
    records: impl IntoIterator<Item = Record>,
    warm_up: WarmUp,
    seed: u64,
    progress: &impl Progress,
) -> Result<Outcome, SimError> {
    run_from(spec, InitialOram::Seed(seed), records, warm_up, seed, progress)
}

/// Runs a machine like [`run`], but from an initial ORAM, which may be ready-made. All later
/// randomness follows from `seed`. A machine without an ORAM ignores `initial`.
///
/// # Errors
/// The errors of [`run`], and [`SimError::Spec`] for an initial ORAM of another specification.
pub fn run_from(
    spec: &SystemSpec,
    initial: InitialOram,
    records: impl IntoIterator<Item = Record>,
    warm_up: WarmUp,
    seed: u64,
    progress: &impl Progress,
) -> Result<Outcome, SimError> {
    let watched = Watched::default();
    Ok(run_watched(spec, initial, records, warm_up, seed, progress, watched)?.0)
}

/// Runs a machine like [`run_from`], with a [`Checker`] of all DRAM commands, including the
/// warm-up. The outcome is the same, but the run takes several times as long. Also returns the
/// number of checked commands.
///
/// # Errors
/// The errors of [`run_from`], and [`SimError::Command`] at the first illegal command.
pub fn run_checked(
    spec: &SystemSpec,
    initial: InitialOram,
    records: impl IntoIterator<Item = Record>,
    warm_up: WarmUp,
    seed: u64,
    progress: &impl Progress,
) -> Result<(Outcome, u64), SimError> {
    let watched = Watched::with_checker(Some(Checker::new(&spec.dram, spec.channels)));
    let (outcome, checked) = run_watched(spec, initial, records, warm_up, seed, progress, watched)?;
    Ok((outcome, checked.unwrap_or_default()))
}

fn run_watched(
    spec: &SystemSpec,
    initial: InitialOram,
    records: impl IntoIterator<Item = Record>,
    warm_up: WarmUp,
    seed: u64,
    progress: &impl Progress,
    watched: Watched,
) -> Result<(Outcome, Option<u64>), SimError> {
    let mut records = records.into_iter().fuse();
    let mut bring = |ahead: &mut VecDeque<Record>| {
        ahead.extend(records.by_ref().take(RECORDS_BROUGHT));
    };
    let records = Records { bring: &mut bring, ahead: VecDeque::new() };
    run_any(spec, initial, records, warm_up, seed, progress, watched)
}

/// Runs a machine. The function does not depend on the type of the records, so it is compiled only
/// once.
fn run_any(
    spec: &SystemSpec,
    initial: InitialOram,
    records: Records<'_>,
    warm_up: WarmUp,
    seed: u64,
    progress: &dyn Progress,
    watched: Watched,
) -> Result<(Outcome, Option<u64>), SimError> {
    spec.check()?;
    match &spec.oram {
        Some(oram) => {
            let memory = OramMemory::new(spec, oram, initial, seed, watched)?;
            Machine::new(spec, records, warm_up, memory)?.run(warm_up.records, progress)
        }
        None => {
            let memory = PlainMemory::new(spec, watched)?;
            Machine::new(spec, records, warm_up, memory)?.run(warm_up.records, progress)
        }
    }
}

/// Records from any kind of trace.
struct Records<'r> {
    /// Appends the next records of the trace to a queue, or no records at the end of the trace.
    bring: &'r mut dyn FnMut(&mut VecDeque<Record>),
    ahead: VecDeque<Record>,
}

/// The number of records fetched at once, since a call per record would be expensive.
const RECORDS_BROUGHT: usize = 1 << 8;

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.ahead.is_empty() {
            (self.bring)(&mut self.ahead);
        }
        self.ahead.pop_front()
    }
}

/// A processor and its memory.
struct Machine<'r, M> {
    processor: Processor<Records<'r>>,
    memory: M,
}

/// Records between two reports of progress.
const RECORDS_AT_ONCE: u64 = 1 << 12;

impl<'r, M: Memory> Machine<'r, M> {
    /// Builds a machine whose LLC is filled by the first records.
    fn new(
        spec: &SystemSpec,
        records: Records<'r>,
        warm_up: WarmUp,
        mut memory: M,
    ) -> Result<Self, SimError> {
        let mut processor = Processor::new(&spec.processor, records)?;
        processor.fill_llc(warm_up.llc_records, &mut |victim| match warm_up.fills_small_tree {
            true => memory.preload_victim(victim),
            false => Ok(()),
        })?;
        memory.start_timed_run(&mut processor.llc().lines())?;
        Ok(Self { processor, memory })
    }

    /// Runs to the end of the trace. Returns the outcome after the first `warm_up` timed records,
    /// and the number of checked DRAM commands if the machine has a checker.
    fn run(
        mut self,
        warm_up: u64,
        progress: &dyn Progress,
    ) -> Result<(Outcome, Option<u64>), SimError> {
        progress.records(0);
        let mut before = Outcome::default();
        if warm_up > 0 {
            self.processor.mark_after(warm_up);
        }
        let mut reported = 0;
        // A request that was pulled, but reaches memory later. Earlier memory events come first.
        let mut pulled = None;
        loop {
            // Memory acts at its next event. The processor is pulled up to the cycle before.
            let event = self.memory.next_event();
            if pulled.is_none() {
                let horizon = event.map_or(Cycle::MAX, |event| event.saturating_sub(1));
                match self.processor.next(horizon) {
                    ProcessorEvent::Request { at, request } => pulled = Some((at, request)),
                    ProcessorEvent::Done { at } => {
                        let after = self.outcome(at);
                        // A trace that ends within the warm-up counts nothing.
                        let before = if after.records > warm_up { before } else { after.clone() };
                        return Ok((after.since(&before), self.memory.watched().checked()));
                    }
                    // All earlier memory events are done, since the next one is later.
                    ProcessorEvent::WarmupDone { at } => {
                        before = self.outcome(at);
                        progress.records(before.records);
                        continue;
                    }
                    ProcessorEvent::Idle { .. } | ProcessorEvent::Blocked => (),
                }
            }
            match (event, pulled) {
                (Some(event), None) => self.memory.act(event, &mut self.processor)?,
                (Some(event), Some((at, _))) if event < at => {
                    self.memory.act(event, &mut self.processor)?;
                }
                (_, Some((at, request))) => {
                    self.ask(request, at)?;
                    pulled = None;
                }
                (None, None) => {
                    return Err(SimError::Spec(
                        "the processor and memory wait for each other: this is a defect of the \
                         simulator"
                            .to_owned(),
                    ));
                }
            }
            self.memory.watched().verdict()?;
            let done = self.processor.tally().records();
            if done >= reported + RECORDS_AT_ONCE {
                reported = done;
                progress.records(done);
            }
        }
    }

    fn ask(&mut self, request: Request, at: Cycle) -> Result<(), SimError> {
        match request {
            Request::Fetch { id, line } => self.memory.fetch(id, line, at, &mut self.processor),
            Request::WriteBack { line } => self.memory.evict_line(line, true, at),
            Request::Dropped { line } => self.memory.evict_line(line, false, at),
        }
    }

    fn outcome(&self, cycles: Cycle) -> Outcome {
        let processor = self.processor.tally();
        Outcome { cycles, records: processor.records(), processor, memory: self.memory.tally() }
    }
}
