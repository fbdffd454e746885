//! Arguments of `oblivio key`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use oblivio::Location;
use oblivio_wire::keys::is_host_and_port;
use oblivio_wire::message::check_name;

use super::OpenArgs;
use super::opening::LocationParser;

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Add a key that opens the volume.
    Add(KeyAddArgs),
    /// List the key slots.
    List(KeyListArgs),
    /// Remove a key. Anyone who kept an old copy of the superblock can still use it.
    Remove(KeyRemoveArgs),
    /// Print a client's line for a bucket server's allow file; makes the client's key if needed.
    ///
    /// The key is made if its file does not exist. It only admits the client to the server; it does
    /// not open volumes.
    #[command(after_help = "Example:
  oblivio key client ./client.key --name alice      (add its output to the server's allow file)")]
    Client(ClientKeyArgs),
    /// Print a bucket server's public key, for URLs of volumes; makes the server's key if needed.
    ///
    /// The key is made if its file does not exist.
    #[command(after_help = "Examples:
  oblivio key server ./server.key
  oblivio key server ./server.key --address one.example:2412      \
(a line for the peers files of other share servers)")]
    Server(ServerKeyArgs),
}

#[derive(Args)]
pub(crate) struct ClientKeyArgs {
    /// The file of the client's private key. Only its owner may read it.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Name of the client on the server. Its volumes are stored under this name there.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ServerKeyArgs {
    /// The file of the server's private key. Only its owner may read it.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Address on which the server will listen: prints a line for the peers files of other share
    /// servers instead.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    pub(crate) address: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a client name that servers accept.
fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned()).map_err(|_| {
        "a name has 1 to 64 letters, digits, -, _ and ., and begins with a letter or a digit"
            .to_owned()
    })
}

/// Parses the host and port at which other servers reach a server.
fn parse_address(text: &str) -> Result<String, String> {
    if is_host_and_port(text) {
        Ok(text.to_owned())
    } else {
        Err("give a host and a port without spaces, such as one.example:2412 or \
             [2001:db8::7]:2412"
            .into())
    }
}

#[derive(Args)]
pub(crate) struct KeyAddArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The new key: a regular file of 32 or more random bytes.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["new_passphrase_file", "new_passphrase_command"]
    )]
    pub(crate) new_key_file: Option<PathBuf>,
    /// The new key: a regular file with the passphrase, as for --passphrase-file.
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_command")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
    /// The new key: a command that prints the passphrase. It is run twice, and must print the same
    /// both times.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) new_passphrase_command: Option<String>,
    /// A name for the key slot.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    /// Milliseconds that one passphrase attempt takes on this machine: more make guessing slower.
    /// An attempt fills 1 GiB of memory at most eight times, however much is given here.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) unlock_millis: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct KeyListArgs {
    /// The volume: a path, file:///… (an absolute path), stripe:URL,URL,… (several locations),
    /// oblivio+tls://… (on a bucket server), or shares://… (on share servers).
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) volume: Location,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct KeyRemoveArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The number of the key slot, as `key list` shows it.
    pub(crate) slot: u8,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
