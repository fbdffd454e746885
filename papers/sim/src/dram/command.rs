//! The commands that a controller sends to DRAM, and their observers.

use super::Clock;

/// The kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Opens a row of a bank (ACT).
    Activate,
    /// Closes the open row of a bank (PRE).
    Precharge,
    /// Reads a line of the open row (RD).
    Read,
    /// Writes a line of the open row (WR).
    Write,
    /// Refreshes all banks of a rank, which must not have open rows (REF).
    Refresh,
}

/// A command to DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// The time of the command on the command bus.
    pub clock: Clock,
    /// The number of the channel.
    pub channel: u32,
    /// The rank within the channel.
    pub rank: u32,
    /// The bank within the rank; bank groups are consecutive banks. 0 for a refresh.
    pub bank: u32,
    /// The row that is opened, closed, read or written. 0 for a refresh.
    pub row: u32,
    /// The kind of the command.
    pub kind: CommandKind,
}

/// Observes each command. The commands of one channel are in order of time; channels are
/// independent.
pub trait Observer {
    /// Notes that a command was sent.
    fn observe(&mut self, command: Command);

    /// Notes that all commands up to `clock` have been sent in all channels. Most observers ignore
    /// this.
    #[inline]
    fn passed(&mut self, clock: Clock) {
        let _ = clock;
    }
}

/// Ignores all commands.
impl Observer for () {
    #[inline]
    fn observe(&mut self, _: Command) {}
}

/// Logs all commands.
impl Observer for Vec<Command> {
    fn observe(&mut self, command: Command) {
        self.push(command);
    }
}
