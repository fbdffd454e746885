//! A command that goes on in the background once there is something to use.
//!
//! Nothing is forked: the program runs itself again, with the same words and under another name. At first both are at the terminal, where the second
//! one asks for a passphrase and says what goes wrong, so no secret passes from one to the other. Its standard output is a pipe
//! to the first one, over which it says that it is ready; then it leaves the terminal and what else it has [inherited], and the first one
//! ends.

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
use crate::files::{self, Kind};
use crate::output;

/// In the client's directory.
const LOG_NAME: &str = "background.log";

/// Ends what is said over the pipe: the disk can be used.
const READY: u8 = 0;

/// Runs `here` what is to be run, or lets it be run in the background.
pub(crate) fn run(
    args: &BackgroundArgs,
    here: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    if args.in_background {
        inherited::take();
    }
    if !args.background || args.in_background {
        return here();
    }
    if let Some(path) = &args.log {
        // What cannot be written is told before anything is unlocked.
        open_log(path)?;
    }
    start()
}

/// Runs this program again, and waits until it is ready, or has ended.
fn start() -> Result<(), CliError> {
    let failed = |error: io::Error| {
        CliError::Engine(format!(
            "nothing can be run in the background ({error}): leave out --background"
        ))
    };
    let program = env::current_exe().map_err(failed)?;
    let mut again = Command::new(program)
        .arg0(NAME_IN_BACKGROUND)
        .args(env::args_os().skip(1))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut said = Vec::new();
    if let Some(pipe) = again.stdout.take() {
        read_until_ready(pipe, &mut said).map_err(failed)?;
    }
    let is_ready = said.pop_if(|last| *last == READY).is_some();
    let told = output::print_bytes(&said);
    if is_ready && told.is_err() {
        // Nobody would know of the disk.
        rustix::process::kill_process(Pid::from_child(&again), Signal::TERM)
            .map_err(|error| failed(error.into()))?;
        again.wait().map_err(failed)?;
    }
    told?;
    if is_ready {
        return Ok(());
    }
    let status = again.wait().map_err(failed)?;
    if status.success() {
        let message = "the process in the background has ended before the disk could be used";
        return Err(CliError::Engine(message.into()));
    }
    Err(CliError::Said(status))
}

fn read_until_ready(mut pipe: impl Read, said: &mut Vec<u8>) -> io::Result<()> {
    let mut byte = [0];
    while said.last() != Some(&READY) {
        match pipe.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => said.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The log of a process that goes on in the background. To be opened before the disk is mounted: a
/// log that was opened through the mount would keep it in use. `state` is the client's directory.
pub(crate) fn log(args: &BackgroundArgs, state: &Path) -> Result<Option<File>, CliError> {
    let path = || args.log.clone().unwrap_or_else(|| state.join(LOG_NAME));
    args.in_background.then(|| open_log(&path())).transpose()
}

/// Says that the disk can be used. With a `log`, it leaves the terminal then, and notes `logged`
/// there: what is printed may be secret.
///
/// # Errors
/// If it cannot be said. Nobody may know of the disk then.
pub(crate) fn ready(log: Option<File>, text: &str, logged: &str) -> Result<(), CliError> {
    let Some(mut log) = log else { return output::print(text) };
    let failed =
        |error: io::Error| CliError::Engine(format!("the terminal cannot be left: {error}"));
    let nothing = File::open("/dev/null").map_err(failed)?;
    // It was begun by another process of the terminal, and leads no group of its own. From here on the terminal may go; that is before
    // anybody is told that it may.
    rustix::process::setsid().map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    // Whoever is told may look there at once.
    output::note(&mut log, &format!("process {}: {logged}", process::id()));
    let mut pipe = io::stdout();
    pipe.write_all(format!("{text}\n").as_bytes())
        .and_then(|()| pipe.write_all(&[READY]))
        .and_then(|()| pipe.flush())
        .map_err(|_| CliError::Output("nobody waits for the disk any more".into()))?;
    rustix::stdio::dup2_stdout(&log)
        .and_then(|()| rustix::stdio::dup2_stderr(&log))
        .map_err(|error| failed(error.into()))?;
    inherited::close();
    output::write_times();
    Ok(())
}

/// A pipe that nobody reads is refused, and not waited for.
fn open_log(path: &Path) -> Result<File, CliError> {
    files::refuse_other(path, Kind::LOG)?;
    let mut options = private::file_options();
    options.append(true).create(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(path).map_err(|error| files::cannot_write(path, &error))
}

/// Says how it ended: at the terminal, or in the log.
pub(crate) fn ended(args: &BackgroundArgs, text: &str) -> Result<(), CliError> {
    if args.in_background {
        output::remark(text);
        Ok(())
    } else {
        output::print(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_before_it_is_ready_is_read_and_nothing_after() {
        let mut said = Vec::new();
        read_until_ready(&b"mounted\n\0more"[..], &mut said).unwrap();
        assert_eq!(said, b"mounted\n\0");
        let mut said = Vec::new();
        read_until_ready(&b"failed"[..], &mut said).unwrap();
        assert_eq!(said, b"failed");
    }
}
