//! What can be typed after `oblivio key`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use oblivio::Location;
use oblivio_wire::keys::is_host_and_port;
use oblivio_wire::message::check_name;

use super::OpenArgs;
use super::opening::LocationParser;

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Give the volume one more key that opens it.
    Add(KeyAddArgs),
    /// List the key slots.
    List(KeyListArgs),
    /// Take a key away. Whoever kept an old copy of the superblock can still use it.
    Remove(KeyRemoveArgs),
    /// Say who this client is to a bucket server: print a line for the server's allow file.
    ///
    /// The key has nothing to do with what opens a volume: it only lets the client in. It is made if there is
    /// none.
    #[command(
        after_help = "Example:\n  oblivio key client ./client.key --name alice      (and add what it prints to the server's allow file)"
    )]
    Client(ClientKeyArgs),
    /// Print the key by which clients know a bucket server, for the URLs of its volumes.
    ///
    /// It is made if there is none.
    #[command(
        after_help = "Examples:\n  oblivio key server ./server.key\n  oblivio key server ./server.key --address one.example:2412      (a line for the peers files of other share servers)"
    )]
    Server(ServerKeyArgs),
}

#[derive(Args)]
pub(crate) struct ClientKeyArgs {
    /// The file of the client's private key, its owner's alone.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What the server calls the client. Its volumes lie under that name there.
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ServerKeyArgs {
    /// The file of the server's private key, its owner's alone.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where it will listen: print a line for the peers files of other share servers instead.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    pub(crate) address: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A name that servers take.
fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned()).map_err(|_| {
        "it has 1 to 64 letters, digits, -, _ and ., and begins with a letter or a digit".to_owned()
    })
}

/// Where a server listens, as others call it.
fn parse_address(text: &str) -> Result<String, String> {
    if is_host_and_port(text) {
        Ok(text.to_owned())
    } else {
        Err("it is a host and a port, such as one.example:2412 or [2001:db8::7]:2412, without spaces".into())
    }
}

#[derive(Args)]
pub(crate) struct KeyAddArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The new key: a regular file of 32 or more random bytes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new_passphrase_file", "new_passphrase_command"])]
    pub(crate) new_key_file: Option<PathBuf>,
    /// The new key: a regular file with the passphrase, as for --passphrase-file.
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_command")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
    /// The new key: a command that prints the passphrase. It is run twice, and must print the same.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) new_passphrase_command: Option<String>,
    /// A name for the key slot.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    /// How long a passphrase shall take to try on this machine, in milliseconds. Never more than it takes
    /// to fill 1 GiB eight times.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) unlock_millis: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct KeyListArgs {
    /// Where the volume is: a path, file:///… for one from the root, stripe:URL,URL,… for several,
    /// oblivio+tls://… for one on a bucket server, or shares://… for one on share servers.
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
    /// The number of the slot, as `key list` shows it.
    pub(crate) slot: u8,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
