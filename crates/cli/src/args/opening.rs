//! Where a volume is, and what opens it.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueHint};
use oblivio::Location;
use oblivio_volume::keys::Attempt;

use super::values::parse_size;
use crate::output::shell_word;

/// Where a volume is. Paths need not be text. What is refused is not repeated: it may hold a password that somebody
/// took for a part of a URL.
#[derive(Clone)]
pub(super) struct LocationParser;

impl TypedValueParser for LocationParser {
    type Value = Location;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        written: &OsStr,
    ) -> Result<Location, clap::Error> {
        Location::parse(written)
            .map_err(|error| command.clone().error(ErrorKind::ValueValidation, error))
    }
}

/// What opens a volume. Never the secret itself: command lines are public.
#[derive(Args, Clone, Default)]
#[group(multiple = false)]
pub(crate) struct SecretArgs {
    /// A file of 32 or more random bytes. For a new key it must be a regular file, which can be
    /// read again; a pipe can only open an existing volume.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A file with the passphrase: one line. Its line end does not count, spaces do. For a new key
    /// it must be a regular file, and UTF-8 without control characters.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// A command that prints the passphrase, as such a file holds it; run by the shell. For a new
    /// key it is run twice, and must print the same.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) passphrase_command: Option<String>,
}

/// A volume, and what is needed to open it.
#[derive(Args, Clone)]
pub(crate) struct VolumeArgs {
    /// Where the volume is: a path, or file:///… for one from the root; or stripe:URL,URL,… for a volume
    /// over 2 to 16 of them, which work at the same time, always named in the order in which it was
    /// made (a comma in a path is %2C there, a percent sign %25); or
    /// oblivio+tls://HOST:PORT/NAME?server=KEY&key=FILE for one on a bucket server (oblivio serve store),
    /// with the server's public key and the file of the client's own; or
    /// shares://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE for one on share servers
    /// (oblivio serve shares), always in one order. Any other scheme:// is refused; a
    /// file of such a name is written ./scheme://…
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) volume: Location,
    /// The client's directory [default: one for each volume, beside the user's other state].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

impl VolumeArgs {
    /// The options with which the volume is to be named again, as words for a shell.
    pub(crate) fn options(&self) -> Vec<String> {
        let SecretArgs { key_file, passphrase_file, passphrase_command } = &self.secret;
        let path = |name, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!("{name} {}", shell_word(path.display().to_string())))
        };
        [
            path("--state", &self.state),
            path("--key-file", key_file),
            path("--passphrase-file", passphrase_file),
            // It may hold what is not to be in a log.
            passphrase_command.as_ref().map(|_| "--passphrase-command …".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A volume that there is, and how it is opened.
#[derive(Args, Clone)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) place: VolumeArgs,
    #[command(flatten)]
    pub(crate) unlock: UnlockArgs,
}

/// What is tried to unlock a volume.
#[derive(Args, Clone, Copy)]
pub(crate) struct UnlockArgs {
    /// Try this key slot alone [default: all of them, one after the other].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) key_slot: Option<u8>,
    /// The most memory to spend on trying a passphrase in a key slot. All slots together may fill it 64
    /// times. Storage could ask for more before anything vouches for what it says; so say more only for
    /// a slot that you made so.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1G")]
    pub(crate) unlock_memory_max: u64,
}

impl UnlockArgs {
    /// How the library calls it.
    pub(crate) fn attempt(self) -> Attempt {
        let memory_kib_max = u32::try_from(self.unlock_memory_max >> 10).unwrap_or(u32::MAX);
        Attempt { slot: self.key_slot, memory_kib_max }
    }
}

/// As it is when nothing is said.
impl Default for UnlockArgs {
    fn default() -> Self {
        let Attempt { slot, memory_kib_max } = Attempt::default();
        Self { key_slot: slot, unlock_memory_max: u64::from(memory_kib_max) << 10 }
    }
}
