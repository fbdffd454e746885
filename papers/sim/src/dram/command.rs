//! What a controller says to DRAM, and who listens.

use super::Clock;

/// What a command does.
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
    /// Refreshes all banks of a rank (REF): none has an open row.
    Refresh,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// When it is on the command bus.
    pub clock: Clock,
    /// To which channel.
    pub channel: u32,
    /// To which rank of the channel.
    pub rank: u32,
    /// To which bank of the rank; groups are runs of banks. 0 for a refresh.
    pub bank: u32,
    /// The row it opens, closes, reads or writes. 0 for a refresh.
    pub row: u32,
    /// What it does.
    pub kind: CommandKind,
}

/// Somebody who sees each command. Those of one channel come in order of time; channels are apart.
pub trait Observer {
    /// A command was sent.
    fn observe(&mut self, command: Command);

    /// In all channels, whatever had to be sent until `clock` was sent. Most do not care.
    #[inline]
    fn passed(&mut self, clock: Clock) {
        let _ = clock;
    }
}

/// Nobody listens.
impl Observer for () {
    #[inline]
    fn observe(&mut self, _: Command) {}
}

/// The log of all commands.
impl Observer for Vec<Command> {
    fn observe(&mut self, command: Command) {
        self.push(command);
    }
}
