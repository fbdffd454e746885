//! Arguments of `oblivio serve`, `mount` and `umount`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::parse_size;
use super::{BackgroundArgs, OpenArgs, RunArgs, WatchArgs};

#[derive(Subcommand)]
pub(crate) enum ServeCommand {
    /// Serve the volume as a network block device.
    #[command(after_help = NBD_EXAMPLES)]
    Nbd(Box<NbdArgs>),
    /// Run a bucket server: store volumes for clients on other machines.
    ///
    /// The server holds no key of any volume, and sees what storage sees. Clients and server
    /// authenticate each other by their keys, and each client sees only its own volumes.
    #[command(after_help = STORE_EXAMPLES)]
    Store(StoreArgs),
    /// Run a share server: hold shares of volumes, and compute on them with other servers (S³ORAM).
    ///
    /// Three or more share servers, run by operators who do not collude, hold a volume together.
    /// Each server sees which paths are accessed, and its own shares. The shares of colluding
    /// servers reveal nothing as long as no more servers collude than the volume allows (one of
    /// three servers). A share server is also a bucket server.
    #[command(after_help = SHARES_EXAMPLES)]
    Shares(SharesArgs),
}

const SHARES_EXAMPLES: &str = "\
Examples, for the first of three servers:
  oblivio key client ./client.key --name alice >> allow       (the client's key; its owner keeps it)
  oblivio key server ./server.key --address one.example:2412  (a line for the others' peers files)
  cat peers
    oblivio-key-1 KEY2 two.example:2412
    oblivio-key-1 KEY3 three.example:2412
  oblivio serve shares ./shares --key ./server.key --allow ./allow --peers ./peers \
--listen 127.0.0.1:2412
For the client of all three servers:
  oblivio create 'shares://one.example:2412,two.example:2412,three.example:2412/disk\
?server=KEY1,KEY2,KEY3&key=./client.key' --size 1G

A line of the peers file holds the public key of another server, its address, and optionally a
name for people. The server's own line may be there, too, so that one file serves all servers.
Servers connect to each other at these addresses, and clients at the addresses in their URL.
Ctrl-C or SIGTERM ends the server once the requests in flight are answered.";

const STORE_EXAMPLES: &str = "\
Examples:
  oblivio key client ./client.key --name alice >> allow       (the client's key; its owner keeps it)
  oblivio key server ./server.key
  oblivio serve store ./stores --key ./server.key --allow ./allow --listen 127.0.0.1:2411
  oblivio create 'oblivio+tls://127.0.0.1/disk?server=KEY&key=./client.key' --size 1G

A line of the allow file holds the client's public key, its name, and optionally a limit for its
volumes, such as quota=400G. Ctrl-C or SIGTERM ends the server once the requests in flight are
answered.";

const NBD_EXAMPLES: &str = "\
Examples:
  oblivio serve nbd disk.obl
  oblivio serve nbd disk.obl --run 'nbdinfo \"$uri\"'
  oblivio serve nbd disk.obl --background
  oblivio serve nbd disk.obl --rate 2000/s --burst 16
  oblivio serve nbd disk.obl --watch --watch-secrets
  oblivio serve nbd disk.obl --rescued
  oblivio serve nbd disk.obl --tcp 192.0.2.7:10809 --beyond-loopback --tls-certificate cert.pem \\
    --tls-key key.pem --tls-client-authorities authorities.pem

Anyone who reaches the disk can read and write all its blocks. Only the owner can use the socket
file. A loopback address is open to every user of this machine and to every container that has
the host's network; --tls-client-authorities admits only clients that have a certificate.

With --watch, a page in a browser draws what storage sees; it shows the requests to the disk only
with --watch-secrets. Users of this machine who do not know its URL get nothing; anyone who reads
the output of this program knows it.

Clients do not learn which parts of the disk are empty (base:allocation): a copy reads the whole
disk, and does not show storage how full it is.

With --rescued, storage sees one read of everything it holds, and not what clients read. Reading a
lost block is an error. The exit code is as for `oblivio rescue`: 0 if nothing was wrong.

Ctrl-C, SIGTERM or a terminal that closes ends the server and closes the volume. Further signals
change nothing.

Clients: nbdcopy, nbdinfo, qemu-img, qemu-io, fio (ioengine=nbd), nbd-client.";

/// Options for a volume in use. They have no effect on a rescued volume, so `--rescued` conflicts
/// with them.
const OPTIONS_OF_A_VOLUME_IN_USE: [&str; 12] = [
    "cache",
    "serve_hits",
    "sync_moves",
    "direct",
    "retry_for",
    "record_view",
    "after_tampering",
    "rate",
    "period",
    "burst",
    "no_early_write_backs",
    "watch",
];

#[derive(Args)]
pub(crate) struct StoreArgs {
    /// Directory for the volumes, which only this server uses. Created if missing.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The file of the server's private key, made by oblivio key server.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The allow file: one line per client, as oblivio key client prints it.
    #[arg(long, value_name = "FILE")]
    pub(crate) allow: PathBuf,
    /// Address to listen on. Port 0 is any free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2411")]
    pub(crate) listen: SocketAddr,
    /// Let `--listen` and `--metrics` use addresses that other machines can reach.
    #[arg(long)]
    pub(crate) beyond_loopback: bool,
    /// Serve metrics for Prometheus at this address, to anyone who reaches it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Maximum number of client connections at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) connections_max: usize,
    /// Maximum bytes of memory for messages, of all clients together.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "512M")]
    pub(crate) memory_max: u64,
    /// Print the address as JSON once the server is ready.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SharesArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The peers file: one line per other server, with its public key and HOST:PORT.
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: PathBuf,
    /// Record the messages of each volume that pass this server, including the messages between
    /// servers. Each time that a volume is in use makes a view file
    /// CLIENT-VOLUME-serverI-NUMBER.view in this directory, which is created if missing. The file
    /// gets its name when the volume has not been used for some minutes, or when this server ends.
    #[arg(long, value_name = "DIR")]
    pub(crate) record_views: Option<PathBuf>,
    /// Maximum bytes of all view files in that directory. Each counts as at least 1 MiB, and takes
    /// at most half of what is left, and at most 2 GiB. If there is no room for another file, the
    /// log reports it, and the volume is served without a recording.
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_size,
        default_value = "32G",
        requires = "record_views"
    )]
    pub(crate) record_views_max: u64,
}

#[derive(Args)]
pub(crate) struct NbdArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// The socket file [default: `nbd.sock` in the client's directory].
    #[arg(long, value_name = "PATH", conflicts_with = "tcp")]
    pub(crate) socket: Option<PathBuf>,
    /// Listen on a TCP address instead. Every user of this machine and many containers can reach
    /// it. Port 0 is any free port.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<SocketAddr>,
    /// Let `--tcp` use an address that other machines can reach. Clients must then authenticate
    /// with a certificate of --tls-client-authorities.
    #[arg(long, requires = "tcp")]
    pub(crate) beyond_loopback: bool,
    /// Serve clients from other machines without authentication: anyone who reaches the address can
    /// read and write the whole disk.
    #[arg(long, requires = "beyond_loopback")]
    pub(crate) any_client: bool,
    /// The name of the export.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) export_name: String,
    /// Refuse everything that changes the disk.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Serve what a rescue recovers from a damaged volume, read-only: all of storage is read first,
    /// and nothing after that. Lost blocks cannot be read. Neither storage nor the client's
    /// directory is changed.
    #[arg(long, conflicts_with_all = OPTIONS_OF_A_VOLUME_IN_USE)]
    pub(crate) rescued: bool,
    /// Directory for the rescued blocks, which are kept sealed in a file without a name [default:
    /// the system's directory for temporary files]. It needs room for all blocks that hold data. It
    /// must not be on the volume's storage, which would see which blocks are read.
    #[arg(long, value_name = "DIR", requires = "rescued")]
    pub(crate) scratch: Option<PathBuf>,
    /// The server's certificate for TLS (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate authorities (PEM): clients must present a certificate issued by one of them.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_client_authorities: Option<PathBuf>,
    /// Also serve clients without TLS.
    #[arg(long, requires = "tls_certificate")]
    pub(crate) tls_optional: bool,
    /// Run a shell command with `$uri` and, without --tcp, `$unixsocket` set. Stop when it ends,
    /// with its exit code; 128 plus the number of the signal if a signal ended it. Without a
    /// terminal, processes that it left in the background end then, too, and a signal to this
    /// program ends all of them; at a terminal, they are left running.
    #[arg(long = "run", value_name = "COMMAND", conflicts_with = "background")]
    pub(crate) run_command: Option<String>,
    #[command(flatten)]
    pub(crate) background: BackgroundArgs,
    /// Print the URI of the disk as JSON once it can be used.
    #[arg(long)]
    pub(crate) json: bool,
}

impl NbdArgs {
    /// The arguments that serve the volume `at` with all options at their defaults.
    pub(crate) fn new(at: OpenArgs) -> Self {
        Self {
            at,
            run: RunArgs::default(),
            watch: WatchArgs::default(),
            socket: None,
            tcp: None,
            beyond_loopback: false,
            any_client: false,
            export_name: String::new(),
            read_only: false,
            rescued: false,
            scratch: None,
            tls_certificate: None,
            tls_key: None,
            tls_client_authorities: None,
            tls_optional: false,
            run_command: None,
            background: BackgroundArgs::default(),
            json: false,
        }
    }
}

#[derive(Args)]
pub(crate) struct MountArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The directory to mount on.
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Show the disk as the file `disk`, without a file system. Needs neither root nor loop
    /// devices.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Never make a file system, not even if no block of the disk holds data.
    #[arg(long, conflicts_with = "raw")]
    pub(crate) no_mkfs: bool,
    /// Mount read-only.
    #[arg(long)]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) background: BackgroundArgs,
}

#[derive(Args)]
pub(crate) struct UmountArgs {
    /// The directory where `oblivio mount` mounted the disk.
    pub(crate) directory: PathBuf,
}
