//! Writes results to standard output, and remarks and errors to standard error.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use oblivio::Location;
use oblivio_store::path_text;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::advice::with_cli_advice;
use crate::error::CliError;

/// Prints `text` with one line end, instead of any white space at its end.
pub fn print(text: &str) -> Result<(), CliError> {
    print_bytes(format!("{}\n", text.trim_end()).as_bytes())
}

/// A location as text that [parses](Location::parse) to the same location, even if its path is not
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

/// Prints with `write`. A reader that closes the pipe early, such as `head`, is not an error.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Output(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// The name of the running program.
static PROGRAM: OnceLock<String> = OnceLock::new();

/// Sets the program's name, which precedes remarks and errors. Only the first call counts.
pub fn name_program(name: &str) {
    let _ = PROGRAM.set(name.to_owned());
}

/// Whether standard error is a log.
static WRITES_TIMES: AtomicBool = AtomicBool::new(false);

/// From now on, makes remarks and errors begin with the current time, because standard error is a
/// log.
pub fn write_times() {
    WRITES_TIMES.store(true, Ordering::Relaxed);
}

/// The prefix of remarks and errors.
fn prefix() -> String {
    if WRITES_TIMES.load(Ordering::Relaxed) { prefix_in_log() } else { prefix_at_terminal() }
}

/// The prefix at a terminal.
fn prefix_at_terminal() -> String {
    format!("{}: ", PROGRAM.get().map_or("oblivio", String::as_str))
}

/// The prefix in a log.
fn prefix_in_log() -> String {
    let mut time = String::new();
    if SystemTime.format_time(&mut Writer::new(&mut time)).is_ok() {
        time.push(' ');
    }
    time + &prefix_at_terminal()
}

/// Writes a message with its time to a log file, for a process whose standard error is still the
/// terminal.
pub fn write_to_log(log: &mut impl Write, text: &str) {
    let _ = log.write_all(format!("{}{}\n", prefix_in_log(), with_cli_advice(text)).as_bytes());
}

/// Prints a remark: something unexpected that is not an error.
pub fn print_remark(text: &str) {
    let _ = writeln!(io::stderr(), "{}{}", prefix(), with_cli_advice(text));
}

/// Prints `text` to standard error, apart from the output of a command that was run for the user.
pub fn print_aside(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints an error.
pub fn print_error(error: &CliError) {
    // If this fails, only the exit code is left to report the error.
    let _ = writeln!(io::stderr(), "{}{}", prefix(), with_cli_advice(&error.to_string()));
}

/// Quotes a path or a URL for a shell, if necessary.
pub fn shell_word(word: String) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./:,=+%@".contains(letter);
    // A shell command would take a word that begins with a dash for an option.
    let word = if word.starts_with('-') { format!("./{word}") } else { word };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
