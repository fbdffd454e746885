//! Runs a command in the background once its disk can be used.
//!
//! Nothing is forked: the program runs itself again, with the same arguments and another `argv[0]`.
//! At first both processes use the terminal. The second one asks for a passphrase and prints errors
//! there, so no secret passes between them. Its standard output is a pipe to the first process, on
//! which it reports that it is ready. Then it leaves the terminal and closes its [inherited] files,
//! and the first process ends.

mod inherited;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, process};

use oblivio_wire::private;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal};

use crate::args::{BackgroundArgs, NAME_IN_BACKGROUND};
use crate::error::CliError;
use crate::files::{self, FileKind};
use crate::output;

/// Default name of the log, in the client's directory.
const LOG_NAME: &str = "background.log";

/// The last byte on the pipe. It reports that the disk can be used.
const READY: u8 = 0;

/// Runs `here`, or starts a process that runs it in the background.
pub(crate) fn run(
    args: &BackgroundArgs,
    here: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    if args.in_background {
        inherited::record();
    }
    if !args.background || args.in_background {
        return here();
    }
    if let Some(path) = &args.log {
        // An unwritable log is reported before anything is unlocked.
        open_log(path)?;
    }
    start()
}

/// Starts this program again in the background, and waits until that process is ready or has ended.
/// Terminates the process if its report cannot be printed here.
fn start() -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::Engine(format!(
            "cannot start a process in the background ({error}): leave out --background"
        ))
    };
    let program = env::current_exe().map_err(failed)?;
    let mut again = Command::new(program)
        .arg0(NAME_IN_BACKGROUND)
        .args(env::args_os().skip(1))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut printed = Vec::new();
    if let Some(pipe) = again.stdout.take() {
        read_until_ready(pipe, &mut printed).map_err(failed)?;
    }
    let is_ready = printed.pop_if(|last| *last == READY).is_some();
    let result = output::print_bytes(&printed);
    if is_ready && result.is_err() {
        // The user would not learn of the disk.
        rustix::process::kill_process(Pid::from_child(&again), Signal::TERM)
            .map_err(|error| failed(error.into()))?;
        again.wait().map_err(failed)?;
    }
    result?;
    if is_ready {
        return Ok(());
    }
    let status = again.wait().map_err(failed)?;
    if status.success() {
        let message = "the process in the background ended before the disk could be used";
        return Err(CliError::Engine(message.into()));
    }
    Err(CliError::ChildReported(status))
}

fn read_until_ready(mut pipe: impl Read, printed: &mut Vec<u8>) -> io::Result<()> {
    let mut byte = [0];
    while printed.last() != Some(&READY) {
        match pipe.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => printed.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens the log of a process in the background. Call this before the disk is mounted: a log opened
/// through the mount would keep the mount in use. `state` is the client's directory. Returns `None`
/// if this process does not run in the background.
pub(crate) fn log(args: &BackgroundArgs, state: &Path) -> Result<Option<File>, CliError> {
    let path = || args.log.clone().unwrap_or_else(|| state.join(LOG_NAME));
    args.in_background.then(|| open_log(&path())).transpose()
}

/// Reports that the disk can be used. Without a `log`, prints `text`. With a `log`, leaves the
/// terminal, writes `logged` to the log, and sends `text`, which may be secret, only to the process
/// that started this one.
///
/// # Errors
/// If this process cannot leave the terminal, or if the report cannot be delivered: the user would
/// then not know that the disk is in use.
pub(crate) fn report_ready(log: Option<File>, text: &str, logged: &str) -> Result<(), CliError> {
    let Some(mut log) = log else { return output::print(text) };
    let failed = |error: io::Error| CliError::Engine(format!("cannot leave the terminal: {error}"));
    let nothing = File::open("/dev/null").map_err(failed)?;
    // A process that leads a process group cannot call `setsid`. This one does not lead one,
    // because the first process started it. From here on the terminal may close, so this comes
    // before the report.
    rustix::process::setsid().map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    // The user may read the log as soon as the report arrives.
    output::write_to_log(&mut log, &format!("process {}: {logged}", process::id()));
    let mut pipe = io::stdout();
    pipe.write_all(format!("{text}\n").as_bytes())
        .and_then(|()| pipe.write_all(&[READY]))
        .and_then(|()| pipe.flush())
        .map_err(|_| CliError::Output("the process that started this one has ended".into()))?;
    rustix::stdio::dup2_stdout(&log)
        .and_then(|()| rustix::stdio::dup2_stderr(&log))
        .map_err(|error| failed(error.into()))?;
    inherited::close();
    output::write_times();
    Ok(())
}

/// Opens a log for appending, or creates it, readable only by its owner. Refuses a file of another
/// kind. Refuses a pipe without a reader instead of waiting for one.
fn open_log(path: &Path) -> Result<File, CliError> {
    files::refuse_other(path, FileKind::LOG)?;
    let mut options = private::file_options();
    options.append(true).create(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(path).map_err(|error| files::cannot_write(path, &error))
}

/// Prints `text`, which reports the end of a command. Prints to standard error, which is the log,
/// if the command runs in the background, and otherwise to standard output.
pub(crate) fn report_end(args: &BackgroundArgs, text: &str) -> Result<(), CliError> {
    if args.in_background {
        output::print_remark(text);
        Ok(())
    } else {
        output::print(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_up_to_the_ready_byte() {
        let mut printed = Vec::new();
        read_until_ready(&b"mounted\n\0more"[..], &mut printed).unwrap();
        assert_eq!(printed, b"mounted\n\0");
        let mut printed = Vec::new();
        read_until_ready(&b"failed"[..], &mut printed).unwrap();
        assert_eq!(printed, b"failed");
    }
}
