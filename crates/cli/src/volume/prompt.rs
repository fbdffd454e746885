//! A prompt at the terminal whose answer is not shown.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTSTP;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::signals::{are_handled, ending_signals};
use zeroize::Zeroizing;

/// Maximum bytes of a line from a terminal, without the line end. The terminal drops what is typed
/// beyond that.
const LINE_BYTES_MAX: usize = 4095;

/// Returns the line typed after `prompt`, without its line end. Ctrl-C and other ending signals end
/// this program, and restore the terminal first.
///
/// # Errors
/// If there is no terminal, if its input ends before a character was typed, or if the line is so
/// long that the terminal may have cut it.
pub(super) fn ask(prompt: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    restore_on_signals()?;
    // Echo is off before the prompt, to cover programs that type as soon as they see it.
    let _echo_off = EchoOff::begin(&terminal)?;
    terminal.write_all(prompt.as_bytes())?;
    let answer = read_line(&terminal);
    // The typed line end was not shown.
    terminal.write_all(b"\n")?;
    answer
}

fn read_line(mut terminal: &File) -> io::Result<Zeroizing<Vec<u8>>> {
    // Reserve the whole capacity: growing would leave copies in memory.
    let mut line = Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX));
    let mut byte = Zeroizing::new([0]);
    loop {
        match terminal.read(&mut *byte) {
            Ok(0) if line.is_empty() => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(0) => break,
            Ok(_) if *byte == *b"\n" => break,
            Ok(_) if line.len() + 1 < LINE_BYTES_MAX => line.push(byte[0]),
            Ok(_) => {
                let message = "a terminal cuts lines of 4095 bytes and more";
                return Err(io::Error::new(ErrorKind::InvalidInput, message));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

/// The terminal whose echo is off now, and the modes to restore.
static ECHO_OFF: Mutex<Option<(File, Termios)>> = Mutex::new(None);

fn echo_off() -> MutexGuard<'static, Option<(File, Termios)>> {
    ECHO_OFF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns the echo of the terminal on again, if it is off.
fn restore() {
    if let Some((terminal, before)) = echo_off().take() {
        // A terminal that was closed shows nothing either.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}

/// Makes ending signals restore the terminal before they end this process, until another part of
/// the program handles them. Ctrl-Z is ignored while the echo is off, because the user would then
/// return to a shell without echo.
fn restore_on_signals() -> io::Result<()> {
    static IS_LISTENING: AtomicBool = AtomicBool::new(false);
    if IS_LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut signals = Signals::new(ending_signals().chain([SIGTSTP]))?;
    let end = move || {
        for signal in signals.forever() {
            let does_as_usual = if signal == SIGTSTP {
                echo_off().is_none()
            } else {
                restore();
                !are_handled()
            };
            if does_as_usual {
                // If this fails, the process continues.
                let _ = emulate_default_handler(signal);
            }
        }
    };
    thread::Builder::new().name("prompt".into()).spawn(end).map(drop)
}

/// Turns the echo of the terminal off, until dropped.
struct EchoOff;

impl EchoOff {
    fn begin(terminal: &File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        // From here on, a signal finds the previous modes.
        *echo_off() = Some((terminal.try_clone()?, before));
        let begun = Self;
        tcsetattr(terminal, OptionalActions::Now, &modes)?;
        Ok(begun)
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        restore();
    }
}
