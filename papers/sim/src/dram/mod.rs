//! DRAM, exact to the clock: the cost of a request depends on the rows that earlier requests left
//! open.
//!
//! [`Dram`] is a DDR memory with its controller, as described by a [`DramSpec`]. Its channels are
//! independent. Each has ranks of banks with open rows, a command bus and a data bus. The
//! simulation jumps from command to command instead of counting clocks. A [`checker::Checker`]
//! implements the rules independently and observes every command. [`bandwidth`] compares with
//! published simulators.
//!
//! ```
//! use oblivio_sim::dram::{Dram, DramSpec, Request};
//! use oblivio_sim::trace::AccessKind;
//!
//! let mut dram = Dram::new(&DramSpec::built_in("DDR3-1600")?, 4)?;
//! for line in 0..60 {
//!     dram.enqueue(Request { id: line, line, kind: AccessKind::Read, arrival: 0 })?;
//! }
//! let mut done = Vec::new();
//! // ACT to RD takes 11 clocks, RD to data 11, and 15 bursts of 4 clocks pass on each channel.
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
use crate::trace::AccessKind;
use address::AddressMap;
use channel::Channel;

/// A point in time or a duration, in clocks of the command bus.
pub type Clock = u64;

/// A request to DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number that identifies the completion.
    pub id: u64,
    /// The number of the line, below [`Dram::lines`].
    pub line: u64,
    /// Whether the request is a read or a write.
    pub kind: AccessKind,
    /// The time at which the request arrives.
    pub arrival: Clock,
}

/// A completed request, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The `id` of the request.
    pub id: u64,
    /// The end of the last beat of the request's data. If a waiting write answers a read, one clock
    /// after the read is admitted.
    pub clock: Clock,
}

/// A DRAM with an observer of its commands.
#[derive(Clone, Debug)]
pub struct Dram<O = ()> {
    channels: Vec<Channel>,
    map: AddressMap,
    observer: O,
}

impl Dram {
    /// Creates a DRAM of `channels` identical channels, with all rows closed, at clock 0.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the specification contradicts itself, or `channels` is not a power of
    /// two.
    pub fn new(spec: &DramSpec, channels: u32) -> Result<Self, SimError> {
        Self::observed(spec, channels, ())
    }
}

impl<O: Observer> Dram<O> {
    /// Creates a DRAM like [`Dram::new`], with an observer of each command.
    ///
    /// # Errors
    /// The errors of [`Dram::new`].
    pub fn observed(spec: &DramSpec, channels: u32, observer: O) -> Result<Self, SimError> {
        let map = AddressMap::new(spec, channels)?;
        let channels = (0..channels).map(|number| Channel::new(spec, number)).collect();
        Ok(Self { channels, map, observer })
    }

    /// The number of lines that the DRAM holds.
    pub fn lines(&self) -> u64 {
        self.map.lines()
    }

    /// The number of neighbouring lines, starting at a multiple of this number, that lie in a
    /// single row of each bank they touch. It is meaningful only if `row` precedes `column` in the
    /// address order. In the usual order of address bits, these are the lines of one row in every
    /// channel.
    pub fn row_span(&self) -> u64 {
        self.map.row_span()
    }

    /// Adds a request. A channel admits its requests in the order of these calls, even if a later
    /// request arrives earlier. An arrival time in the past counts as now.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the line does not exist.
    pub fn enqueue(&mut self, request: Request) -> Result<(), SimError> {
        let lines = self.lines();
        if request.line >= lines {
            let line = request.line;
            let message =
                format!("line {line} is past the DRAM's {lines}: use more rows or channels");
            return Err(SimError::Spec(message));
        }
        let place = self.map.place(request.line);
        self.channels[place.channel as usize].enqueue(request, place);
        Ok(())
    }

    /// Runs to `clock`. Appends the completions up to then to `done`, in order of time.
    pub fn run_until(&mut self, clock: Clock, done: &mut Vec<Completion>) {
        for channel in &mut self.channels {
            channel.run_until(clock, &mut self.observer);
        }
        self.observer.passed(clock);
        self.take_done(clock, done);
    }

    /// Runs until all requests are complete. Appends the remaining completions to `done`, in order
    /// of time. Returns the time of the last of them, or `None` if no completion remained.
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

    /// Runs until all reads are complete. Appends the completions up to then to `done`, in order of
    /// time. Writes may remain. Returns the completion time of the last of all reads so far; `None`
    /// if there was no read.
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

    /// Runs until the next completion, and returns it; `None` if no requests remain. No channel
    /// runs ahead of the completion.
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

    /// The time of the next event in the channels that have requests, or of the next completion. An
    /// event is an arrival, a due refresh, or a command. `None` if neither requests nor completions
    /// remain.
    pub fn next_event(&mut self) -> Option<Clock> {
        let event = |channel: &mut Channel| {
            let done = channel.first_done();
            let next = (!channel.is_idle()).then(|| channel.next_event());
            [done, next].into_iter().flatten().min()
        };
        self.channels.iter_mut().filter_map(event).min()
    }

    /// The observer of the commands.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Ends the simulation, and returns the observer.
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
