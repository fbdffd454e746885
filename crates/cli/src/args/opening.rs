//! Arguments that name a volume and its secret.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueHint};
use oblivio::Location;
use oblivio_volume::keys::UnlockLimits;

use super::values::parse_size;
use crate::output::shell_word;

/// Parses the location of a volume. Paths need not be UTF-8. An error does not repeat the input,
/// which may hold a password that the user took for a part of a URL.
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

/// Options that name the source of the secret that opens a volume. The secret itself is no option,
/// because other users can read command lines.
#[derive(Args, Clone, Default)]
#[group(multiple = false)]
pub(crate) struct SecretArgs {
    /// A file of 32 or more random bytes. For a new key it must be a regular file, which can be
    /// read again; a pipe can only open an existing volume.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A file with the passphrase on one line. The line end is not part of it, spaces are. For a
    /// new key it must be a regular file, and UTF-8 without control characters.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// A shell command that prints the passphrase on one line. For a new key it is run twice, and
    /// must print the same both times.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) passphrase_command: Option<String>,
}

/// A volume, its client's directory and its secret.
#[derive(Args, Clone)]
pub(crate) struct VolumeArgs {
    /// The volume: a path or a URL.
    ///
    /// file:///… is an absolute path. stripe:URL,URL,… is a volume over 2 to 16 locations, which
    /// work at the same time and are always named in the order of creation; there, write a comma in
    /// a path as %2C, and a percent sign as %25.
    ///
    /// oblivio+tls://HOST:PORT/NAME?server=KEY&key=FILE is a volume on a bucket server (oblivio
    /// serve store). KEY is the server's public key, and FILE holds the client's private key.
    ///
    /// shares://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE is a volume on share
    /// servers (oblivio serve shares), always in the same order.
    ///
    /// `s3://BUCKET/PREFIX?credentials=FILE` (also gs:// and az://) is a volume in an object store,
    /// `redis://HOST:PORT,HOST:PORT/NAME` one on a Redis cluster, and folder:DIR one in a directory
    /// with a file per object. near:FILE,URL keeps its upper levels in a local file, too.
    ///
    /// Any other scheme:// is refused; write a file of such a name as ./scheme://…
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) volume: Location,
    /// The client's directory [default: one for each volume, below `$XDG_STATE_HOME/oblivio` or
    /// ~/.local/state/oblivio].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

impl VolumeArgs {
    /// The options that give another command this client's directory and secret, quoted for a
    /// shell. Omits the text of a passphrase command, which may contain a secret.
    pub(crate) fn options(&self) -> Vec<String> {
        let SecretArgs { key_file, passphrase_file, passphrase_command } = &self.secret;
        let path = |name, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!("{name} {}", shell_word(path.display().to_string())))
        };
        [
            path("--state", &self.state),
            path("--key-file", key_file),
            path("--passphrase-file", passphrase_file),
            // The command may contain a secret, which must not reach a log.
            passphrase_command.as_ref().map(|_| "--passphrase-command …".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// An existing volume, and how to unlock it.
#[derive(Args, Clone)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) volume: VolumeArgs,
    #[command(flatten)]
    pub(crate) unlock: UnlockArgs,
}

/// The slots to try when unlocking a volume, and the memory that may be spent on them.
#[derive(Args, Clone, Copy)]
pub(crate) struct UnlockArgs {
    /// Try only this key slot [default: all of them, one after the other].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) key_slot: Option<u8>,
    /// Maximum memory that a passphrase may need in a key slot. Storage can change what a slot
    /// asks for, and this shows only afterwards, so raise this only for a slot that you created
    /// with a higher cost. All attempts together may fill this memory 64 times.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1G")]
    pub(crate) unlock_memory_max: u64,
}

impl UnlockArgs {
    /// The limits in the form that the library takes.
    pub(crate) fn unlock_limits(self) -> UnlockLimits {
        let memory_kib_max = u32::try_from(self.unlock_memory_max >> 10).unwrap_or(u32::MAX);
        UnlockLimits { slot: self.key_slot, memory_kib_max }
    }
}

/// The values if no option is given.
impl Default for UnlockArgs {
    fn default() -> Self {
        let UnlockLimits { slot, memory_kib_max } = UnlockLimits::default();
        Self { key_slot: slot, unlock_memory_max: u64::from(memory_kib_max) << 10 }
    }
}
