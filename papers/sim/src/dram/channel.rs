//! The controller of one channel. It jumps from event to event.
//!
//! An event is the arrival of a request, a refresh that becomes due, or a command, which
//! [`super::schedule`] chooses. Requests wait in a backlog. When the scheduler's [read or write
//! window](super::view) has room, they enter it in order of arrival. A read of a line with a
//! waiting write gets the data of that write one clock later.

use std::collections::VecDeque;

use super::address::DramAddress;
use super::command::{Command, CommandKind, Observer};
use super::device::Device;
use super::refresh::Refreshes;
use super::schedule::{self, ScheduledCommand};
use super::view::View;
use super::window::QueuedRequest;
use super::{Clock, Completion, DramSpec, Request};
use crate::trace::AccessKind;

/// An event in a channel.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next request of the backlog arrives.
    Arrival,
    /// The refresh of a rank becomes due.
    RefreshDue,
    /// A command is sent.
    Command(ScheduledCommand),
}

/// The controller and the DRAM of one channel.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    number: u32,
    /// The current time. No event is earlier.
    now: Clock,
    device: Device,
    refreshes: Refreshes,
    backlog: VecDeque<(Request, DramAddress)>,
    /// The number of reads in the backlog.
    reads_behind: usize,
    view: View,
    /// The age number for the next request that enters a window.
    age: u64,
    /// Completions in order of time.
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

    pub(super) fn enqueue(&mut self, request: Request, place: DramAddress) {
        self.reads_behind += usize::from(request.kind == AccessKind::Read);
        self.backlog.push_back((request, place));
        self.planned = None;
    }

    /// Whether no request is in the backlog or waits for its command. First plans the next event,
    /// since this completes requests that need no command.
    pub(super) fn is_idle(&mut self) -> bool {
        self.next_planned_event();
        self.backlog.is_empty() && self.view.is_empty()
    }

    pub(super) fn has_reads(&mut self) -> bool {
        self.next_planned_event();
        self.reads_behind > 0 || self.view.has_reads()
    }

    /// The time of the earliest known completion that the caller has not taken yet.
    pub(super) fn first_done(&self) -> Option<Clock> {
        self.done.front().map(|done| done.clock)
    }

    /// The time of the latest known completion that the caller has not taken yet.
    pub(super) fn last_done(&self) -> Option<Clock> {
        self.done.back().map(|done| done.clock)
    }

    /// The latest completion time among the reads whose command was sent or that a waiting write
    /// answered.
    pub(super) fn last_read(&self) -> Option<Clock> {
        self.last_read
    }

    pub(super) fn take_done(&mut self, until: Clock) -> Option<Completion> {
        self.done.pop_front_if(|completion| completion.clock <= until)
    }

    /// Time of the next event.
    pub(super) fn next_event(&mut self) -> Clock {
        self.next_planned_event().0
    }

    /// Runs all events up to `until`.
    pub(super) fn run_until(&mut self, until: Clock, observer: &mut impl Observer) {
        while self.next_event() <= until {
            self.step(observer);
        }
        if self.now < until {
            self.now = until;
            self.planned = None;
        }
    }

    /// Runs the next event.
    pub(super) fn step(&mut self, observer: &mut impl Observer) {
        let (at, event) = self.next_planned_event();
        self.planned = None;
        self.now = at;
        match event {
            Event::Arrival => {}
            Event::RefreshDue => self.refreshes.due_at(at),
            Event::Command(step) => self.send(step, observer),
        }
    }

    /// Finds the next event. At equal times, arrivals and due refreshes precede commands, since
    /// they affect which command is chosen.
    fn next_planned_event(&mut self) -> (Clock, Event) {
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

    /// Moves requests that have arrived from the backlog into the view while it has room. A read of
    /// a line that will be written is answered at once.
    fn admit_arrived(&mut self) {
        while let Some((request, place)) = self.backlog.front()
            && request.arrival <= self.now
            && let DramAddress { bank, row, .. } = *place
            && let Request { id, line, kind, .. } = *request
            && let answered = (kind == AccessKind::Read && self.view.will_write(bank, line))
            && (answered || self.view.has_room(kind))
        {
            self.backlog.pop_front();
            self.reads_behind -= usize::from(kind == AccessKind::Read);
            if answered {
                self.complete(id, kind, self.now + 1);
            } else {
                let open_row = self.device.open_row(bank);
                let waiting = QueuedRequest { id, line, row, age: self.age };
                self.age += 1;
                self.view.enter(kind, bank, waiting, open_row);
            }
        }
    }

    fn send(&mut self, step: ScheduledCommand, observer: &mut impl Observer) {
        let at = self.now;
        match step {
            ScheduledCommand::Activate { bank } => {
                let row = self.view.window().oldest_row(bank);
                self.device.activate(at, bank, row);
                self.view.row_changed(bank, Some(row));
                observer.observe(self.command(CommandKind::Activate, bank, row));
            }
            ScheduledCommand::Precharge { bank } => {
                let row = self.device.precharge(at, bank);
                self.view.row_changed(bank, None);
                observer.observe(self.command(CommandKind::Precharge, bank, row));
            }
            ScheduledCommand::Column { bank } => {
                let kind = self.view.direction();
                let end = self.device.column(at, bank, kind);
                if let Some(QueuedRequest { id, row, .. }) = self.view.take_hit(bank) {
                    self.complete(id, kind, end);
                    let command = match kind {
                        AccessKind::Read => CommandKind::Read,
                        AccessKind::Write => CommandKind::Write,
                    };
                    observer.observe(self.command(command, bank, row));
                }
            }
            ScheduledCommand::Refresh { rank } => {
                self.device.refresh(at, rank);
                self.refreshes.refreshed(rank);
                let bank = self.device.banks_of(rank).start;
                observer.observe(self.command(CommandKind::Refresh, bank, 0));
            }
        }
    }

    /// Makes a command to a bank of the channel, sent now.
    fn command(&self, kind: CommandKind, bank: u32, row: u32) -> Command {
        let rank = self.device.rank_of(bank);
        let bank = bank - self.device.banks_of(rank).start;
        Command { clock: self.now, channel: self.number, rank, bank, row, kind }
    }

    /// Notes a completion. Bursts end in the order of their commands. Only answers without a burst
    /// may overtake them.
    fn complete(&mut self, id: u64, kind: AccessKind, clock: Clock) {
        if kind == AccessKind::Read {
            self.last_read = self.last_read.max(Some(clock));
        }
        let later = self.done.iter().rev().take_while(|done| done.clock > clock).count();
        self.done.insert(self.done.len() - later, Completion { id, clock });
    }
}
