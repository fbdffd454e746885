//! A whole machine: a processor that runs a trace, and the memory behind it.
//!
//! ```text
//!  trace ──► processor with its LLC ──► controller (core) ──► DRAM
//!                                  └──► DRAM, without ORAM
//! ```
//!
//! There is one loop for both: it takes the earlier of what the processor asks next and what memory does
//! next. Results depend on the specification, the trace and the seed, and on nothing else.

mod behind;
mod bounds;
mod commented;
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
use crate::processor::{Next, Processor, Request};
use crate::trace::Record;
use crate::{Cycle, SimError};
use behind::Memory;
use oram::OramMemory;
use plain::PlainMemory;
use watched::Watched;

/// How a run goes on.
pub trait Progress {
    /// So many records of the trace have been read: told when the machine is built, when its warm-up is
    /// over, and now and then.
    fn records(&self, done: u64);
}

impl Progress for () {
    fn records(&self, _: u64) {}
}

/// What comes before the records that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// So many records fill the LLC alone, and take no time. With delayed remapping, what is then in the LLC is
    /// out of the ORAM.
    pub llc_records: u64,
    /// Whether what leaves the LLC meanwhile goes to the small tree of ρ, by paths that take no time. If not, that tree is empty
    /// when time begins. Without ρ it means nothing.
    pub fills_small_tree: bool,
    /// So many more fill all caches and mix the tree: they take time, and are not in the [`Outcome`].
    pub records: u64,
}

/// Runs `records` to their end on a machine of `spec`, those of `warm_up` first. All coins come from `seed`.
///
/// # Errors
/// [`SimError::Spec`] for parts that do not go together, [`SimError::Engine`] for a line that the ORAM has
/// not.
pub fn run(
    spec: &SystemSpec,
    records: impl IntoIterator<Item = Record>,
    warm_up: WarmUp,
    seed: u64,
    progress: &impl Progress,
) -> Result<Outcome, SimError> {
    run_from(spec, InitialOram::Seed(seed), records, warm_up, seed, progress)
}

/// The same, from an initial ORAM that may be there already. `seed` is for what comes by chance after that. A machine without
/// an ORAM needs none.
///
/// # Errors
/// Those of [`run`], and [`SimError::Spec`] for the initial ORAM of another specification.
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

/// As [`run_from`], with each command of DRAM, those of the warm-up included, held against the rules of the DRAM by a
/// [`Checker`]. The outcome is the same, and takes some times as long. Beside it stands how many commands were checked.
///
/// # Errors
/// Those of [`run_from`], and [`SimError::Command`] at the first command that is illegal.
pub fn run_checked(
    spec: &SystemSpec,
    initial: InitialOram,
    records: impl IntoIterator<Item = Record>,
    warm_up: WarmUp,
    seed: u64,
    progress: &impl Progress,
) -> Result<(Outcome, u64), SimError> {
    let watched = Watched::by(Some(Checker::new(&spec.dram, spec.channels)));
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

/// The machine does not depend on the kind of records: it is compiled once.
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

/// Records of any kind of trace.
struct Records<'r> {
    /// Brings the next ones, or none where the trace has ended.
    bring: &'r mut dyn FnMut(&mut VecDeque<Record>),
    ahead: VecDeque<Record>,
}

/// So many at once: to ask for each would cost more than to bring it.
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

/// How many records pass between two reports.
const RECORDS_AT_ONCE: u64 = 1 << 12;

impl<'r, M: Memory> Machine<'r, M> {
    /// With its LLC as the first records leave it.
    fn new(
        spec: &SystemSpec,
        records: Records<'r>,
        warm_up: WarmUp,
        mut memory: M,
    ) -> Result<Self, SimError> {
        let mut processor = Processor::new(&spec.processor, records)?;
        processor.fill_llc(warm_up.llc_records, &mut |victim| match warm_up.fills_small_tree {
            true => memory.left_before(victim),
            false => Ok(()),
        })?;
        memory.begin(&mut processor.llc().lines())?;
        Ok(Self { processor, memory })
    }

    /// What came out, and how many commands of DRAM were checked, if they are.
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
        // A request reaches memory some cycles after it is pulled: what memory does before comes first.
        let mut pulled = None;
        loop {
            // Memory acts at its next event; the processor is pulled up to the cycle before.
            let event = self.memory.next_event();
            if pulled.is_none() {
                let horizon = event.map_or(Cycle::MAX, |event| event.saturating_sub(1));
                match self.processor.next(horizon) {
                    Next::Ask { at, request } => pulled = Some((at, request)),
                    Next::Done { at } => {
                        let after = self.outcome(at);
                        // Nothing is counted of a trace that ends in the warm-up.
                        let before = if after.records > warm_up { before } else { after.clone() };
                        return Ok((after.since(&before), self.memory.watched().checked()));
                    }
                    // Memory has done all that it does before: its next event is later.
                    Next::Marked { at } => {
                        before = self.outcome(at);
                        progress.records(before.records);
                        continue;
                    }
                    Next::Later { .. } | Next::Waits => (),
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
                        "the processor waits for memory, and memory for the processor: this is a \
                         defect of the simulator"
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
            Request::WriteBack { line } => self.memory.leaves(line, true, at),
            Request::Dropped { line } => self.memory.leaves(line, false, at),
        }
    }

    fn outcome(&self, cycles: Cycle) -> Outcome {
        let processor = self.processor.tally();
        Outcome { cycles, records: processor.records(), processor, memory: self.memory.tally() }
    }
}
