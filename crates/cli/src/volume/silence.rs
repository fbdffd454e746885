//! A terminal that does not show what is typed.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::SigId;
use signal_hook::consts::SIGINT;

/// While it lasts, the program's terminal shows nothing of what is typed. It begins before the prompt: a program that types as soon as it
/// sees the prompt is not shown either.
pub(crate) struct Silence {
    terminal: File,
    before: Termios,
    /// Ctrl-C was pressed. It ends the program when the terminal is as it was.
    interrupted: Arc<AtomicBool>,
    listening: SigId,
}

impl Silence {
    /// `None` where there is no terminal.
    pub(crate) fn begin() -> Option<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let interrupted = Arc::new(AtomicBool::new(false));
        let listening = signal_hook::flag::register(SIGINT, interrupted.clone()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        let silence = Self { terminal, before, interrupted, listening };
        tcsetattr(&silence.terminal, OptionalActions::Now, &silent).ok()?;
        Some(silence)
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing either.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        signal_hook::low_level::unregister(self.listening);
        if self.interrupted.load(Ordering::Relaxed) {
            // If it cannot end so, the question ends without an answer.
            let _ = signal_hook::low_level::emulate_default_handler(SIGINT);
        }
    }
}
