//! Drives the processor and a memory, in several ways that must give the same result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oblivio_sim::Cycle;
use oblivio_sim::processor::{FetchId, Processor, ProcessorEvent, ProcessorSpec, Request};
use oblivio_sim::trace::Record;

use super::memory::{Memory, MemoryRequest};
use super::{Cleaning, Outcome};

/// The order of pulling requests and passing in memory's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The caller pulls until it needs an answer. It passes in answers as soon as memory has
    /// decided them, long before they take effect.
    AheadAndEarly,
    /// The caller pulls until it needs an answer. It passes in answers in order of time.
    Ahead,
    /// The caller goes from event to event.
    Stepwise,
}

/// An answer of memory: its cycle, and the number of the fetch, or `None` for a write-back.
/// Reversed, so that a heap returns the earliest answer first.
type PendingAnswer = Reverse<(Cycle, Option<usize>)>;

pub(crate) struct Driver<'a, Records> {
    processor: Processor<Records>,
    ids: Vec<FetchId>,
    memory: Memory,
    pending_answers: BinaryHeap<PendingAnswer>,
    cleanings: &'a [Cleaning],
    horizon: Cycle,
    out: Outcome,
}

/// The kinds of event, in their order within a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Clean,
    Pull,
    Deliver,
    Turn,
}

impl<'a, Records: Iterator<Item = Record>> Driver<'a, Records> {
    pub(crate) fn new(spec: &ProcessorSpec, trace: Records, memory: Memory) -> Self {
        Self {
            processor: Processor::new(spec, trace).unwrap(),
            ids: Vec::new(),
            memory,
            pending_answers: BinaryHeap::new(),
            cleanings: &[],
            horizon: 0,
            out: Outcome::default(),
        }
    }

    /// Runs the processor. `cleanings` are in order of time. They require [`Style::Stepwise`].
    pub(crate) fn run(mut self, style: Style, cleanings: &'a [Cleaning]) -> Outcome {
        self.cleanings = cleanings;
        if style != Style::Stepwise {
            self.horizon = Cycle::MAX;
        }
        loop {
            let later = match self.pull() {
                ProcessorEvent::Done { at } => {
                    self.out.end = at;
                    self.out.tally = self.processor.tally();
                    return self.out;
                }
                ProcessorEvent::Idle { at } => Some(at),
                _ => None,
            };
            let (at, event) = self.next_event(later).expect("an unfinished run has an event");
            // All requests up to this cycle must be known before the event.
            let known = if event == Event::Clean { at.saturating_sub(1) } else { at };
            if self.horizon < known {
                self.horizon = known;
                continue;
            }
            match event {
                Event::Clean => self.clean(),
                Event::Pull => unreachable!("it is pulled up to the horizon"),
                Event::Deliver => self.deliver_answers(),
                Event::Turn => {
                    let turn = self.memory.take_turn();
                    if let Some([from, until]) = turn.stop {
                        self.processor.stop_retirement(from, until);
                    }
                    self.pending_answers.push(Reverse((turn.at, turn.answers)));
                    if style == Style::AheadAndEarly {
                        self.deliver_answers();
                    }
                }
            }
        }
    }

    fn next_event(&self, later: Option<Cycle>) -> Option<(Cycle, Event)> {
        let events = [
            self.cleanings.first().map(|cleaning| (cleaning.at, Event::Clean)),
            later.map(|at| (at, Event::Pull)),
            self.pending_answers.peek().map(|Reverse((at, _))| (*at, Event::Deliver)),
            self.memory.next_turn().map(|at| (at, Event::Turn)),
        ];
        events.into_iter().flatten().min()
    }

    fn pull(&mut self) -> ProcessorEvent {
        loop {
            let ProcessorEvent::Request { at, request } = self.processor.next(self.horizon) else {
                let next = self.processor.next(self.horizon);
                assert!(
                    !matches!(next, ProcessorEvent::Request { .. }),
                    "a repeated call gives another answer"
                );
                return next;
            };
            let last = self.out.asked.last().map_or(0, |(at, _)| *at);
            assert!(at >= last, "requests come in order of time");
            let what = match request {
                Request::Fetch { id, line } => {
                    self.ids.push(id);
                    MemoryRequest::Fetch(line)
                }
                Request::WriteBack { line } => MemoryRequest::WriteBack(line),
                Request::Dropped { line } => MemoryRequest::Dropped(line),
            };
            self.out.asked.push((at, what));
            self.memory.ask(at, what);
        }
    }

    fn deliver_answers(&mut self) {
        let Some(Reverse((at, answers))) = self.pending_answers.pop() else { return };
        match answers {
            None => self.processor.written_back(at),
            Some(number) => self.processor.answer(self.ids[number], at),
        }
    }

    fn clean(&mut self) {
        let Cleaning { at, set } = self.cleanings[0];
        self.cleanings = &self.cleanings[1..];
        let llc = self.processor.llc();
        if let Some(victim) = llc.next_victim(set % llc.sets()) {
            assert!(self.processor.written_early(victim.line, at));
        }
    }
}
