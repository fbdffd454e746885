//! A terminal that does not show what is typed.

use std::fs::File;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// While it lasts, the program's terminal shows nothing of what is typed. It begins before the prompt: a program that types as soon as it
/// sees the prompt is not shown either.
pub(crate) struct Silence {
    terminal: File,
    before: Termios,
}

impl Silence {
    /// `None` where there is no terminal.
    pub(crate) fn begin() -> Option<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &silent).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing either.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
