//! DRAM, clock by clock: what a request costs depends on the rows that those before it left open.
//!
//! [`Dram`] is a DDR memory with its controller, as a [`DramSpec`] describes it: channels apart from each
//! other, in each ranks of banks with a row open, a bus for commands and one for data. It jumps from
//! command to command instead of counting clocks. A [`checker::Checker`] knows the rules anew and
//! watches every command; [`bandwidth`] holds it against figures of published simulators.
//!
//! ```
//! use oblivio_sim::dram::{Dram, DramSpec, Request};
//! use oblivio_sim::trace::Kind;
//!
//! let mut dram = Dram::new(&DramSpec::built_in("DDR3-1600")?, 4)?;
//! for line in 0..60 {
//!     dram.enqueue(Request { id: line, line, kind: Kind::Read, arrival: 0 })?;
//! }
//! let mut done = Vec::new();
//! // The row opens (11), the column is read (11), and 15 bursts of 4 clocks pass on each channel.
//! assert_eq!(dram.finish_reads(&mut done), Some(11 + 11 + 15 * 4));
//! assert_eq!(done.len(), 60);
//! # Ok::<(), oblivio_sim::SimError>(())
//! ```

mod address;
pub mod bandwidth;
mod channel;
pub mod checker;
mod command;
mod device;
mod energy;
pub mod layout;
pub mod published;
mod refresh;
mod schedule;
mod spec;
mod tally;
mod timing;
mod view;
mod window;

pub use command::{Command, CommandKind, Observer};
pub use energy::{Currents, Energy, Milliamperes};
pub use spec::DramSpec;
pub use tally::DramTally;
pub use timing::{BankGroups, Queues, Timing};

use crate::SimError;
use crate::trace::Kind;
use address::AddressMap;
use channel::Channel;

/// A point in time, or a stretch of it, in clocks of the command bus.
pub type Clock = u64;

/// What DRAM is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the completion is called.
    pub id: u64,
    /// Which line: below [`Dram::lines`].
    pub line: u64,
    /// Whether it is read or written.
    pub kind: Kind,
    /// When it comes.
    pub arrival: Clock,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which.
    pub id: u64,
    /// When the last beat of its data had passed.
    pub clock: Clock,
}

/// A DRAM, and who watches its commands.
#[derive(Clone, Debug)]
pub struct Dram<O = ()> {
    channels: Vec<Channel>,
    map: AddressMap,
    observer: O,
}

impl Dram {
    /// A DRAM of `channels` alike, all rows closed, at clock 0.
    ///
    /// # Errors
    /// [`SimError::Spec`] when the spec contradicts itself or `channels` is no power of two.
    pub fn new(spec: &DramSpec, channels: u32) -> Result<Self, SimError> {
        Self::observed(spec, channels, ())
    }
}

impl<O: Observer> Dram<O> {
    /// As [`Dram::new`]; `observer` sees each command.
    ///
    /// # Errors
    /// As [`Dram::new`].
    pub fn observed(spec: &DramSpec, channels: u32, observer: O) -> Result<Self, SimError> {
        let map = AddressMap::new(spec, channels)?;
        let channels = (0..channels).map(|number| Channel::new(spec, number)).collect();
        Ok(Self { channels, map, observer })
    }

    /// How many lines there are.
    pub fn lines(&self) -> u64 {
        self.map.lines()
    }

    /// How many neighbouring lines open one row in each bank they touch, from a multiple of so many on:
    /// a row of each channel, in the usual order of address bits.
    pub fn row_span(&self) -> u64 {
        self.map.row_span()
    }

    /// Asks for a line. Requests to a channel wait behind those that were asked for before. What
    /// arrives in the past arrives now.
    ///
    /// # Errors
    /// [`SimError::Spec`] when there is no such line.
    pub fn enqueue(&mut self, request: Request) -> Result<(), SimError> {
        let lines = self.lines();
        if request.line >= lines {
            let line = request.line;
            let message = format!("line {line} of a DRAM of {lines}: use more rows or channels");
            return Err(SimError::Spec(message));
        }
        let place = self.map.place(request.line);
        self.channels[place.channel as usize].enqueue(request, place);
        Ok(())
    }

    /// Runs to `clock`, and appends to `done` what was done by then, in order of time.
    pub fn run_until(&mut self, clock: Clock, done: &mut Vec<Completion>) {
        for channel in &mut self.channels {
            channel.run_until(clock, &mut self.observer);
        }
        self.observer.passed(clock);
        self.take_done(clock, done);
    }

    /// Runs until all is done, and appends to `done`, in order of time, what was not answered yet.
    /// Answers when the last of it was done.
    pub fn run_until_idle(&mut self, done: &mut Vec<Completion>) -> Option<Clock> {
        for channel in &mut self.channels {
            while !channel.is_idle() {
                channel.step(&mut self.observer);
            }
        }
        let last = self.channels.iter().filter_map(Channel::last_done).max()?;
        self.run_until(last, done);
        Some(last)
    }

    /// Runs until all reads are done, and appends to `done`, in order of time, what was done by then:
    /// writes may be left. Answers when the last read was done, if there ever was one.
    pub fn finish_reads(&mut self, done: &mut Vec<Completion>) -> Option<Clock> {
        for channel in &mut self.channels {
            while channel.has_reads() {
                channel.step(&mut self.observer);
            }
        }
        let last = self.channels.iter().filter_map(Channel::last_read).max()?;
        self.run_until(last, done);
        Some(last)
    }

    /// Runs until something is done, if there is anything to do. No channel runs ahead of it.
    pub fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let events = self.channels.iter_mut().enumerate().filter_map(|(number, channel)| {
                (!channel.is_idle()).then(|| (channel.next_event(), number))
            });
            let next = events.min();
            let done =
                self.channels.iter().enumerate().filter_map(|(number, channel)| {
                    channel.first_done().map(|clock| (clock, number))
                });
            let first_done = done.min();
            match (first_done, next) {
                (done, Some((event, number))) if done.is_none_or(|(clock, _)| event < clock) => {
                    self.channels[number].step(&mut self.observer);
                }
                (Some((clock, number)), _) => return self.channels[number].take_done(clock),
                (None, _) => return None,
            }
        }
    }

    /// When something happens next, if anything is to be done: a command, or the end of a request.
    pub fn next_event(&mut self) -> Option<Clock> {
        let event = |channel: &mut Channel| {
            let done = channel.first_done();
            let next = (!channel.is_idle()).then(|| channel.next_event());
            [done, next].into_iter().flatten().min()
        };
        self.channels.iter_mut().filter_map(event).min()
    }

    /// Who watches.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Ends the simulation.
    pub fn into_observer(self) -> O {
        self.observer
    }

    fn take_done(&mut self, until: Clock, done: &mut Vec<Completion>) {
        let start = done.len();
        for channel in &mut self.channels {
            done.extend(std::iter::from_fn(|| channel.take_done(until)));
        }
        done[start..].sort_by_key(|completion| completion.clock);
    }
}
