//! Reads keys and passphrases from their sources; never from the command line itself.

use std::cell::Cell;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

use oblivio_volume::keys::{Cost, KEY_FILE_BYTES_MAX, PASSPHRASE_BYTES_MAX, Secret};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::passphrase::{self, InvalidPassphrase, PassphraseUse, passphrase_in};
use super::prompt;
use crate::args::SecretArgs;
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::{files, output};

/// Calls `attempt`, which opens a volume, with a function that returns the secret that `args`
/// names. If `args` names none, the function asks for a passphrase at the terminal. A wrong
/// passphrase may be typed again, up to [`ASKED_MAX`] times in all.
pub(crate) fn with<T>(
    args: &SecretArgs,
    mut attempt: impl FnMut(&dyn Fn() -> Result<Secret, CliError>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut asked = 0;
    loop {
        let was_asked = Cell::new(false);
        let read = || match named(args, PassphraseUse::Open)? {
            Some(secret) => Ok(secret),
            None => {
                was_asked.set(true);
                let typed = passphrase_in(ask("Passphrase: ")?, PassphraseUse::Open);
                typed.map(Secret::Passphrase).map_err(|fault| match fault {
                    InvalidPassphrase::Empty => no_passphrase("what was typed", fault),
                    _ => CliError::WrongKey(format!(
                        "the passphrase is wrong: what was typed {fault}"
                    )),
                })
            }
        };
        let outcome = attempt(&read);
        asked += usize::from(was_asked.get());
        match outcome {
            Err(CliError::WrongKey(message)) if was_asked.get() && asked < ASKED_MAX => {
                output::print_remark(&format!("{message}. Try again"));
            }
            other => return other,
        }
    }
}

/// Maximum number of times that a passphrase may be typed.
const ASKED_MAX: usize = 3;

/// The secret of a new key slot. A source is read twice, just as a passphrase is typed twice: the
/// volume is lost if the source cannot supply the secret again.
pub(crate) fn choose(args: &SecretArgs) -> Result<Secret, CliError> {
    for path in [&args.key_file, &args.passphrase_file].into_iter().flatten() {
        refuse_unrepeatable(args, path)?;
    }
    if let Some(secret) = named(args, PassphraseUse::New)? {
        return match named(args, PassphraseUse::New) {
            Ok(Some(again)) if bytes_of(&again) == bytes_of(&secret) => Ok(secret),
            _ => Err(not_repeated(args)),
        };
    }
    let typed =
        |question| -> Result<_, CliError> { Ok(passphrase_in(ask(question)?, PassphraseUse::New)) };
    let first =
        typed("New passphrase: ")?.map_err(|fault| no_passphrase("what was typed", fault))?;
    if typed("The same again: ")?.is_ok_and(|again| *again == *first) {
        Ok(Secret::Passphrase(first))
    } else {
        Err(CliError::Input("the two passphrases differ: try again".into()))
    }
}

fn bytes_of(secret: &Secret) -> &[u8] {
    match secret {
        Secret::Passphrase(bytes) | Secret::KeyFile(bytes) => bytes,
    }
}

/// Refuses a source that supplies its contents only once.
fn refuse_unrepeatable(args: &SecretArgs, path: &Path) -> Result<(), CliError> {
    let found = fs::metadata(path).map_err(|error| files::cannot_read(path, &error))?;
    match what_supplies_once(&found) {
        // Reading a directory fails with its own advice.
        None => Ok(()),
        Some(what) => Err(CliError::Input(format!(
            "{} is {what}: a new key must come from a source that supplies it again. {}",
            path.display(),
            how_to_keep(args)
        ))),
    }
}

fn what_supplies_once(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_char_device() {
        Some("a character device")
    } else if kind.is_block_device() {
        Some("a block device")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_file() && found.nlink() == 0 {
        Some("a deleted file")
    } else {
        None
    }
}

/// The error if the second reading of a source failed, or returned another secret than the first.
fn not_repeated(args: &SecretArgs) -> CliError {
    let what = match args {
        SecretArgs { key_file: Some(path), .. } => format!("the key file {}", path.display()),
        SecretArgs { passphrase_file: Some(path), .. } => {
            format!("the passphrase file {}", path.display())
        }
        _ => "the passphrase command".into(),
    };
    CliError::Input(format!(
        "{what} did not supply the same key twice: a new key must come from a source that \
         supplies it again. {}",
        how_to_keep(args)
    ))
}

fn how_to_keep(args: &SecretArgs) -> &'static str {
    if args.key_file.is_some() {
        "Keep the key in a file first (head -c 32 /dev/urandom > disk.key && chmod 600 disk.key), \
         and name that file"
    } else {
        "Keep the passphrase in a file, or in a password manager whose command \
         (--passphrase-command) prints it each time"
    }
}

/// The cost of a slot for `secret`. For a passphrase, it is calibrated to `unlock_millis`. A key
/// file is not stretched.
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

fn named(args: &SecretArgs, purpose: PassphraseUse) -> Result<Option<Secret>, CliError> {
    Ok(match args {
        SecretArgs { key_file: Some(path), .. } => {
            let bytes = read_bounded(path, KEY_FILE_BYTES_MAX)?;
            if bytes.len() > KEY_FILE_BYTES_MAX {
                return Err(CliError::Input(format!(
                    "{} has more than {KEY_FILE_BYTES_MAX} bytes, so it is not a key file: name \
                     another file",
                    path.display()
                )));
            }
            Some(Secret::KeyFile(bytes))
        }
        SecretArgs { passphrase_file: Some(path), .. } => {
            let text = read_bounded(path, passphrase::TEXT_BYTES_MAX)?;
            let source = format!("the passphrase file {}", path.display());
            let line =
                passphrase_in(text, purpose).map_err(|fault| no_passphrase(&source, fault))?;
            Some(Secret::Passphrase(line))
        }
        SecretArgs { passphrase_command: Some(command), .. } => {
            let source = "the output of the passphrase command";
            let line = passphrase_in(output_of(command)?, purpose)
                .map_err(|fault| no_passphrase(source, fault))?;
            Some(Secret::Passphrase(line))
        }
        _ => None,
    })
}

fn no_passphrase(source: &str, fault: InvalidPassphrase) -> CliError {
    let advice = match fault {
        InvalidPassphrase::ManyLines => "; `head -n 1` prints the first line",
        InvalidPassphrase::CarriageReturn
        | InvalidPassphrase::ByteOrderMark
        | InvalidPassphrase::NotUtf8 => "; write it again as plain UTF-8 text",
        _ => "",
    };
    CliError::Input(format!(
        "{source} {fault}: a new passphrase is one line of 1 to {PASSPHRASE_BYTES_MAX} bytes of \
         UTF-8, without control characters{advice}"
    ))
}

fn ask(question: &str) -> Result<Zeroizing<Vec<u8>>, CliError> {
    prompt::ask(question).map_err(|error| {
        let why = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NXIO) => "there is no terminal".into(),
            _ => error.to_string(),
        };
        CliError::Input(format!(
            "cannot ask for a passphrase here ({why}): use --key-file, --passphrase-file or \
             --passphrase-command"
        ))
    })
}

/// Reads a file, up to `bytes_max` bytes and one more, which shows the caller that the file is too
/// long.
fn read_bounded(path: &Path, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let file = files::open(path)?;
    let found = file.metadata().map_err(|error| files::cannot_read(path, &error))?;
    // Special files and files of /proc report no length.
    let bytes = Some(found.len() as usize).filter(|bytes| *bytes > 0 && found.is_file());
    take(file, bytes.unwrap_or(bytes_max), bytes_max)
        .map_err(|error| files::cannot_read(path, &error))
}

/// The output of a command, up to the longest passphrase text and one byte more.
fn output_of(command: &str) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let failed = |cause: String| {
        CliError::Input(format!(
            "the passphrase command failed ({cause}): run it in a shell to see why, or supply the \
             passphrase in another way (`--help` lists the options)"
        ))
    };
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let bytes_max = passphrase::TEXT_BYTES_MAX;
    let text = child.stdout.take().map(|output| take(output, bytes_max, bytes_max)).transpose();
    let text = text.map_err(|error| failed(error.to_string()))?.unwrap_or_default();
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(text) } else { Err(failed(status.to_string())) }
}

/// Reads `source` to its end, or to one byte more than `bytes_max`. Allocates memory for `bytes`
/// bytes in advance.
fn take(source: impl Read, bytes: usize, bytes_max: usize) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // Growing would leave copies in memory. `read_to_end` probes for the end with one spare byte.
    let mut text = Zeroizing::new(Vec::with_capacity(bytes.min(bytes_max) + 2));
    source.take(bytes_max as u64 + 1).read_to_end(&mut text)?;
    Ok(text)
}
