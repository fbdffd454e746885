//! Drives the processor and a memory, in several ways that must give the same result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oblivio_sim::Cycle;
use oblivio_sim::processor::{FetchId, Next, Processor, ProcessorSpec, Request};
use oblivio_sim::trace::Record;

use super::memory::{Memory, What};
use super::{Cleaning, Outcome};

/// How the caller pulls requests and passes in memory's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Pulls as far ahead as possible. Passes in answers as soon as memory has decided them, long
    /// before they take effect.
    AheadAndEarly,
    /// Pulls as far ahead as possible. Passes in answers in order of time.
    Ahead,
    /// Goes from event to event.
    Stepwise,
}

/// The answers of memory, earliest first: the cycle, and the number of the fetch, or `None` for a
/// write-back.
type Telling = Reverse<(Cycle, Option<usize>)>;

pub(crate) struct Driver<'a, Records> {
    processor: Processor<Records>,
    ids: Vec<FetchId>,
    memory: Memory,
    telling: BinaryHeap<Telling>,
    cleanings: &'a [Cleaning],
    horizon: Cycle,
    out: Outcome,
}

/// The kinds of event, in their order within a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Clean,
    Pull,
    Tell,
    Turn,
}

impl<'a, Records: Iterator<Item = Record>> Driver<'a, Records> {
    pub(crate) fn new(spec: &ProcessorSpec, trace: Records, memory: Memory) -> Self {
        Self {
            processor: Processor::new(spec, trace).unwrap(),
            ids: Vec::new(),
            memory,
            telling: BinaryHeap::new(),
            cleanings: &[],
            horizon: 0,
            out: Outcome::default(),
        }
    }

    /// `cleanings` are in order of time. They require [`Style::Stepwise`].
    pub(crate) fn run(mut self, style: Style, cleanings: &'a [Cleaning]) -> Outcome {
        self.cleanings = cleanings;
        if style != Style::Stepwise {
            self.horizon = Cycle::MAX;
        }
        loop {
            let later = match self.pull() {
                Next::Done { at } => {
                    self.out.end = at;
                    self.out.tally = self.processor.tally();
                    return self.out;
                }
                Next::Later { at } => Some(at),
                _ => None,
            };
            let (at, event) = self.next_event(later).expect("an unfinished run has an event");
            // All requests up to then must be known before.
            let known = if event == Event::Clean { at.saturating_sub(1) } else { at };
            if self.horizon < known {
                self.horizon = known;
                continue;
            }
            match event {
                Event::Clean => self.clean(),
                Event::Pull => unreachable!("it is pulled up to the horizon"),
                Event::Tell => self.tell(),
                Event::Turn => {
                    let told = self.memory.take_turn();
                    if let Some([from, until]) = told.stop {
                        self.processor.stop_retirement(from, until);
                    }
                    self.telling.push(Reverse((told.at, told.answers)));
                    if style == Style::AheadAndEarly {
                        self.tell();
                    }
                }
            }
        }
    }

    fn next_event(&self, later: Option<Cycle>) -> Option<(Cycle, Event)> {
        let events = [
            self.cleanings.first().map(|cleaning| (cleaning.at, Event::Clean)),
            later.map(|at| (at, Event::Pull)),
            self.telling.peek().map(|Reverse((at, _))| (*at, Event::Tell)),
            self.memory.next_turn().map(|at| (at, Event::Turn)),
        ];
        events.into_iter().flatten().min()
    }

    fn pull(&mut self) -> Next {
        loop {
            let Next::Ask { at, request } = self.processor.next(self.horizon) else {
                let next = self.processor.next(self.horizon);
                assert!(!matches!(next, Next::Ask { .. }), "a repeated call gives another answer");
                return next;
            };
            let last = self.out.asked.last().map_or(0, |(at, _)| *at);
            assert!(at >= last, "requests come in order of time");
            let what = match request {
                Request::Fetch { id, line } => {
                    self.ids.push(id);
                    What::Fetch(line)
                }
                Request::WriteBack { line } => What::WriteBack(line),
                Request::Dropped { line } => What::Dropped(line),
            };
            self.out.asked.push((at, what));
            self.memory.ask(at, what);
        }
    }

    fn tell(&mut self) {
        let Some(Reverse((at, answers))) = self.telling.pop() else { return };
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
