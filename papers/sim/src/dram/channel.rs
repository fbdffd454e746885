//! The controller of one channel: it jumps from event to event.
//!
//! A request arrives, a refresh is due, or a command goes (which one, says [`super::schedule`]). Reads
//! and writes come into view in order of arrival, as there is room. A read of a line that waits to be
//! written is answered with what is to be written, a clock later.

use std::collections::VecDeque;

use super::address::Place;
use super::command::{Command, CommandKind, Observer};
use super::device::Device;
use super::refresh::Refreshes;
use super::schedule::{self, Step};
use super::view::View;
use super::window::Waiting;
use super::{Clock, Completion, DramSpec, Request};
use crate::trace::Kind;

/// Something that happens in a channel.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next request of the backlog arrives.
    Arrival,
    /// A rank must be refreshed.
    RefreshDue,
    /// A command goes.
    Command(Step),
}

/// One channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    number: u32,
    /// Nothing happens before.
    now: Clock,
    device: Device,
    refreshes: Refreshes,
    backlog: VecDeque<(Request, Place)>,
    /// Reads in the backlog.
    reads_behind: usize,
    view: View,
    /// The age of the next request that comes into view.
    age: u64,
    /// In order of time.
    done: VecDeque<Completion>,
    last_read: Option<Clock>,
    planned: Option<(Clock, Event)>,
}

impl Channel {
    pub(super) fn new(spec: &DramSpec, number: u32) -> Self {
        Self {
            number,
            now: 0,
            device: Device::new(spec),
            refreshes: Refreshes::new(spec),
            backlog: VecDeque::new(),
            reads_behind: 0,
            view: View::new(spec),
            age: 0,
            done: VecDeque::new(),
            last_read: None,
            planned: None,
        }
    }

    pub(super) fn enqueue(&mut self, request: Request, place: Place) {
        self.reads_behind += usize::from(request.kind == Kind::Read);
        self.backlog.push_back((request, place));
        self.planned = None;
    }

    /// Whether all that has arrived is done. (To plan is to answer what can be answered at once.)
    pub(super) fn is_idle(&mut self) -> bool {
        self.plan();
        self.backlog.is_empty() && self.view.is_empty()
    }

    pub(super) fn has_reads(&mut self) -> bool {
        self.plan();
        self.reads_behind > 0 || self.view.has_reads()
    }

    /// When the first is done of those that are known to be done and not taken yet.
    pub(super) fn first_done(&self) -> Option<Clock> {
        self.done.front().map(|done| done.clock)
    }

    /// When the last of them is done.
    pub(super) fn last_done(&self) -> Option<Clock> {
        self.done.back().map(|done| done.clock)
    }

    /// When the last read is done of those that have gone.
    pub(super) fn last_read(&self) -> Option<Clock> {
        self.last_read
    }

    pub(super) fn take_done(&mut self, until: Clock) -> Option<Completion> {
        self.done.pop_front_if(|completion| completion.clock <= until)
    }

    /// When the next event happens.
    pub(super) fn next_event(&mut self) -> Clock {
        self.plan().0
    }

    /// All that happens up to `until`.
    pub(super) fn run_until(&mut self, until: Clock, observer: &mut impl Observer) {
        while self.next_event() <= until {
            self.step(observer);
        }
        if self.now < until {
            self.now = until;
            self.planned = None;
        }
    }

    /// Lets the next event happen.
    pub(super) fn step(&mut self, observer: &mut impl Observer) {
        let (at, event) = self.plan();
        self.planned = None;
        self.now = at;
        match event {
            Event::Arrival => {}
            Event::RefreshDue => self.refreshes.due_at(at),
            Event::Command(step) => self.send(step, observer),
        }
    }

    /// At the same time arrivals and due refreshes go before commands: they have a say in them.
    fn plan(&mut self) -> (Clock, Event) {
        if let Some(planned) = self.planned {
            return planned;
        }
        self.admit_arrived();
        let mut first = (self.refreshes.next_due(), Event::RefreshDue);
        if let Some((next, _)) = self.backlog.front()
            && self.now < next.arrival
            && next.arrival <= first.0
        {
            first = (next.arrival, Event::Arrival);
        }
        let next = schedule::next(&self.view, &self.device, &self.refreshes, self.now);
        if let Some((at, step)) = next
            && at < first.0
        {
            first = (at, Event::Command(step));
        }
        self.planned = Some(first);
        first
    }

    /// Brings into view what has arrived and has room.
    fn admit_arrived(&mut self) {
        while let Some((request, place)) = self.backlog.front()
            && request.arrival <= self.now
            && let Place { bank, row, .. } = *place
            && let Request { id, line, kind, .. } = *request
            && let answered = (kind == Kind::Read && self.view.will_write(bank, line))
            && (answered || self.view.has_room(kind))
        {
            self.backlog.pop_front();
            self.reads_behind -= usize::from(kind == Kind::Read);
            if answered {
                self.complete(id, kind, self.now + 1);
            } else {
                let open_row = self.device.open_row(bank);
                let waiting = Waiting { id, line, row, age: self.age };
                self.age += 1;
                self.view.enter(kind, bank, waiting, open_row);
            }
        }
    }

    fn send(&mut self, step: Step, observer: &mut impl Observer) {
        let at = self.now;
        match step {
            Step::Activate { bank } => {
                let row = self.view.window().oldest_row(bank);
                self.device.activate(at, bank, row);
                self.view.row_changed(bank, Some(row));
                observer.observe(self.command(CommandKind::Activate, bank, row));
            }
            Step::Precharge { bank } => {
                let row = self.device.precharge(at, bank);
                self.view.row_changed(bank, None);
                observer.observe(self.command(CommandKind::Precharge, bank, row));
            }
            Step::Column { bank } => {
                let kind = self.view.direction();
                let end = self.device.column(at, bank, kind);
                if let Some(Waiting { id, row, .. }) = self.view.take_hit(bank) {
                    self.complete(id, kind, end);
                    let command = match kind {
                        Kind::Read => CommandKind::Read,
                        Kind::Write => CommandKind::Write,
                    };
                    observer.observe(self.command(command, bank, row));
                }
            }
            Step::Refresh { rank } => {
                self.device.refresh(at, rank);
                self.refreshes.refreshed(rank);
                let bank = self.device.banks_of(rank).start;
                observer.observe(self.command(CommandKind::Refresh, bank, 0));
            }
        }
    }

    /// A command that goes now, to a bank of the channel.
    fn command(&self, kind: CommandKind, bank: u32, row: u32) -> Command {
        let rank = self.device.rank_of(bank);
        let bank = bank - self.device.banks_of(rank).start;
        Command { clock: self.now, channel: self.number, rank, bank, row, kind }
    }

    /// Bursts end in the order of their commands: only answers without a burst overtake.
    fn complete(&mut self, id: u64, kind: Kind, clock: Clock) {
        if kind == Kind::Read {
            self.last_read = self.last_read.max(Some(clock));
        }
        let later = self.done.iter().rev().take_while(|done| done.clock > clock).count();
        self.done.insert(self.done.len() - later, Completion { id, clock });
    }
}
