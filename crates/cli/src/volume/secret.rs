//! Keys and passphrases, from wherever they may come; never from the command line itself.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use oblivio_volume::keys::{Cost, KEY_FILE_BYTES_MAX, PASSPHRASE_BYTES_MAX, Secret};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::prompt;
use crate::args::SecretArgs;
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::{files, output};

/// Tries to open a volume with the secret that `args` names. If it names none, it is asked for on the terminal, and asked for again where a
/// passphrase is wrong.
pub(crate) fn with<T>(
    args: &SecretArgs,
    mut attempt: impl FnMut(&dyn Fn() -> Result<Secret, CliError>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut asked = 0;
    loop {
        let was_asked = Cell::new(false);
        let read = || match named(args)? {
            Some(secret) => Ok(secret),
            None => {
                was_asked.set(true);
                ask("Passphrase: ").map(Secret::Passphrase)
            }
        };
        let outcome = attempt(&read);
        asked += usize::from(was_asked.get());
        match outcome {
            Err(CliError::WrongKey(message)) if was_asked.get() && asked < ASKED_MAX => {
                output::remark(&format!("{message}. Try again"));
            }
            other => return other,
        }
    }
}

/// How often a person may type a passphrase.
const ASKED_MAX: usize = 3;

/// The secret of a new key slot; asked for twice on the terminal.
pub(crate) fn choose(args: &SecretArgs) -> Result<Secret, CliError> {
    if let Some(secret) = named(args)? {
        return Ok(secret);
    }
    let first = ask("New passphrase: ")?;
    if first.is_empty() || first.len() > PASSPHRASE_BYTES_MAX {
        return Err(CliError::Input(format!(
            "a passphrase has 1 to {PASSPHRASE_BYTES_MAX} bytes: use one that does"
        )));
    }
    if *first == *ask("The same again: ")? {
        Ok(Secret::Passphrase(first))
    } else {
        Err(CliError::Input("the two passphrases differ: try again".into()))
    }
}

/// What a slot for `secret` shall cost. A key file is not stretched.
pub(crate) fn cost(secret: &Secret, unlock_millis: u32) -> Result<Cost, CliError> {
    match secret {
        Secret::Passphrase(_) => {
            let stopwatch = Stopwatch::start();
            Cost::calibrate(unlock_millis, || stopwatch.elapsed())
                .map_err(|error| CliError::Engine(error.to_string()))
        }
        Secret::KeyFile(_) => Ok(Cost::FLOOR),
    }
}

fn named(args: &SecretArgs) -> Result<Option<Secret>, CliError> {
    Ok(match args {
        SecretArgs { key_file: Some(path), .. } => {
            Some(Secret::KeyFile(read_bounded(path, KEY_FILE_BYTES_MAX)?))
        }
        SecretArgs { passphrase_file: Some(path), .. } => {
            Some(Secret::Passphrase(first_line(read_bounded(path, PASSPHRASE_BYTES_MAX)?)))
        }
        SecretArgs { passphrase_command: Some(command), .. } => {
            Some(Secret::Passphrase(first_line(output_of(command)?)))
        }
        _ => None,
    })
}

fn ask(question: &str) -> Result<Zeroizing<Vec<u8>>, CliError> {
    prompt::ask(question).map_err(|error| {
        let why = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NXIO) => "there is no terminal".into(),
            _ => error.to_string(),
        };
        CliError::Input(format!(
            "no passphrase can be asked for here ({why}): name one with --key-file, --passphrase-file or --passphrase-command"
        ))
    })
}

/// A whole file of at most `bytes_max`.
fn read_bounded(path: &Path, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let mut bytes = Zeroizing::new(Vec::new());
    take(files::open(path)?, bytes_max, &mut bytes)
        .map_err(|error| files::cannot_read(path, &error))?;
    if bytes.len() > bytes_max {
        let message = format!("{} has more than {bytes_max} bytes: it is no key", path.display());
        return Err(CliError::Input(message));
    }
    Ok(bytes)
}

fn output_of(command: &str) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let failed = |cause: String| CliError::Input(format!("the passphrase command failed: {cause}"));
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut bytes = Zeroizing::new(Vec::new());
    if let Some(output) = child.stdout.take() {
        take(output, PASSPHRASE_BYTES_MAX, &mut bytes)
            .map_err(|error| failed(error.to_string()))?;
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(bytes) } else { Err(failed(status.to_string())) }
}

/// Reads one byte more than is allowed, at most.
fn take(
    source: impl Read + IsFile,
    bytes_max: usize,
    bytes: &mut Zeroizing<Vec<u8>>,
) -> std::io::Result<usize> {
    // All of the room at once: growing would leave copies behind.
    bytes.reserve_exact(source.bytes_hint().unwrap_or(bytes_max).min(bytes_max) + 2);
    source.take(bytes_max as u64 + 1).read_to_end(bytes)
}

trait IsFile {
    fn bytes_hint(&self) -> Option<usize>;
}

impl IsFile for File {
    fn bytes_hint(&self) -> Option<usize> {
        self.metadata().ok().map(|metadata| metadata.len() as usize)
    }
}

impl IsFile for std::process::ChildStdout {
    fn bytes_hint(&self) -> Option<usize> {
        None
    }
}

/// Up to the first line end.
fn first_line(mut bytes: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}
