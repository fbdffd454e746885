//! The one place that writes to the terminal.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use oblivio::Location;
use oblivio_store::path_text;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::advice::as_commands;
use crate::error::CliError;

/// Prints `text`, with a line end.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(format!("{}\n", text.trim_end()).as_bytes())
}

/// A location as text that [parses](Location::parse) to the same again, also if its path is not
/// UTF-8.
pub fn location_text(location: &Location) -> String {
    match location {
        Location::Store(oblivio_store::Location::File(path)) if path.to_str().is_none() => {
            path_text(path)
        }
        other => other.to_string(),
    }
}

/// Prints bytes as they are.
pub fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    print_with(|out| out.write_all(bytes))
}

/// Lets `write` print. A reader that has seen enough, such as `head`, is no error.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Output(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// The name of the program that runs.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// Sets the name that stands before remarks and errors. The first call counts.
pub fn name_program(name: &str) {
    let _ = PROGRAM.set(name.to_owned());
}

/// Whether standard error is a log.
static WRITES_TIMES: AtomicBool = AtomicBool::new(false);

/// From now on, remarks and errors say when they were written: they go to a log.
pub fn write_times() {
    WRITES_TIMES.store(true, Ordering::Relaxed);
}

/// What stands before remarks and errors.
fn prefix() -> String {
    if WRITES_TIMES.load(Ordering::Relaxed) { prefix_in_log() } else { prefix_at_terminal() }
}

/// The same at a terminal.
fn prefix_at_terminal() -> String {
    format!("{}: ", PROGRAM.get().map_or("oblivio", String::as_str))
}

/// The same in a log.
fn prefix_in_log() -> String {
    let mut time = String::new();
    if SystemTime.format_time(&mut Writer::new(&mut time)).is_ok() {
        time.push(' ');
    }
    time + &prefix_at_terminal()
}

/// Notes something in a log that standard error does not go to yet.
pub fn note(log: &mut impl Write, text: &str) {
    let _ = log.write_all(format!("{}{}\n", prefix_in_log(), as_commands(text)).as_bytes());
}

/// Tells of something that went otherwise than expected, and well.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{}{}", prefix(), as_commands(text));
}

/// Prints `text` where it stays apart from what a command prints that was run for the user.
pub fn explain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Tells of an error.
pub fn complain(error: &CliError) {
    // When even that fails, the exit code has to do.
    let _ = writeln!(io::stderr(), "{}{}", prefix(), as_commands(&error.to_string()));
}

/// A word as one would type it.
pub fn shell_word(word: String) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:,=+%@".contains(letter);
    // What begins so would be taken for an option.
    let word = if word.starts_with('-') { format!("./{word}") } else { word };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
