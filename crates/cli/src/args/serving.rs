//! What can be typed about volumes in use by other programs.

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
    /// Keep the storage of volumes for clients elsewhere: a bucket server.
    ///
    /// It holds no key of any volume, and sees what storage sees. Clients and server know each other by keys,
    /// and each client sees its own volumes alone.
    #[command(after_help = STORE_EXAMPLES)]
    Store(StoreArgs),
    /// Keep shares of volumes, and compute on them with other servers: one of the servers of S³ORAM.
    ///
    /// Three or more of them, run by people who do not conspire, keep a volume together. Each sees which paths are
    /// asked for, and shares, which say nothing; so do as many together as may collude, one of three.
    /// It is a bucket server besides.
    #[command(after_help = SHARES_EXAMPLES)]
    Shares(SharesArgs),
}

const SHARES_EXAMPLES: &str = "\
Examples, for the first of three servers:
  oblivio key client ./client.key --name alice >> allow       (the client's key; its owner keeps the file)
  oblivio key server ./server.key --address one.example:2412  (prints a line for the peers files of the others)
  cat peers
    oblivio-key-1 KEY2 two.example:2412
    oblivio-key-1 KEY3 three.example:2412
  oblivio serve shares ./shares --key ./server.key --allow ./allow --peers ./peers --listen 127.0.0.1:2412
And for the client of all of them:
  oblivio create 'shares://one.example:2412,two.example:2412,three.example:2412/disk?server=KEY1,KEY2,KEY3&key=./client.key' --size 1G

A line of the peers file is the public key of another server, where it listens, and after that a name for people,
if you like. The server itself may stand in it, too, so that one file serves all. Servers reach each other at these
addresses, and clients at those of their URL. Ctrl-C or SIGTERM ends the server once the requests under way are answered.";

const STORE_EXAMPLES: &str = "\
Examples:
  oblivio key client ./client.key --name alice >> allow       (the client's key; its owner keeps the file)
  oblivio key server ./server.key
  oblivio serve store ./stores --key ./server.key --allow ./allow --listen 127.0.0.1:2411
  oblivio create 'oblivio+tls://127.0.0.1/disk?server=KEY&key=./client.key' --size 1G

A line of the allow file is the client's public key, its name, and optionally a limit for its
volumes, such as quota=400G. Ctrl-C or SIGTERM ends the server once the requests under way are
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

Whoever reaches the disk can read and write all of it. The socket file is its owner's alone. An
address of loopback is open to every user of this machine and to every container that has the
host's network; --tls-client-authorities lets in only who has a certificate.

With --watch, a page in a browser draws what storage sees; it says nothing of what is asked of the disk
without --watch-secrets. Users of this machine who do not know its URL get nothing; who reads what this
program prints knows it.

Clients are not told which parts hold nothing (base:allocation): a copy reads the whole disk, and
storage does not see from it how full the disk is.

With --rescued, storage sees that all of it was read, once, and not what clients read. Clients get an
error for blocks that are lost. The exit code is that of `oblivio rescue`: 0 if nothing was wrong.

Ctrl-C, SIGTERM or a terminal that closes ends the server and closes the volume. More signals
change nothing.

Clients: nbdcopy, nbdinfo, qemu-img, qemu-io, fio (ioengine=nbd), nbd-client.";

/// What a volume is run with, and what was rescued of one is not.
const OF_A_VOLUME_IN_USE: [&str; 12] = [
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
    /// Where the volumes lie: a directory of the server's alone. Made if missing.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The file of the server's private key: oblivio key server makes it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// Who may come: a file with a line for each client, as oblivio key client prints it.
    #[arg(long, value_name = "FILE")]
    pub(crate) allow: PathBuf,
    /// Where to listen. Port 0 is any free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2411")]
    pub(crate) listen: SocketAddr,
    /// Let `--listen` and `--metrics` name addresses that other machines can reach.
    #[arg(long)]
    pub(crate) beyond_loopback: bool,
    /// Serve figures for Prometheus there, to whoever reaches it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Connections of clients at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) connections_max: usize,
    /// Bytes of memory for messages, of all clients together.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "512M")]
    pub(crate) memory_max: u64,
    /// Say where it is as JSON, once it can be used.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SharesArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// With whom it computes: a file with a line for each other server, its public key and HOST:PORT.
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: PathBuf,
    /// Record what passes this server of each volume, what it and other servers send to each other included: a view file
    /// CLIENT-VOLUME-serverI-NUMBER.view in this directory, for each time that a volume is in use. Made if missing.
    /// It gets its name when nobody has used the volume for some minutes, or this server ends.
    #[arg(long, value_name = "DIR")]
    pub(crate) record_views: Option<PathBuf>,
    /// Bytes of all view files in that directory. Each counts as 1 MiB at least, and takes half of what is left at most, and 2 GiB.
    /// If there is no room for one, the log says so, and the volume is served without it.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "32G", requires = "record_views")]
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
    /// Listen on an address of this machine instead, which every user and many a container can reach.
    /// Port 0 is any free one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) tcp: Option<SocketAddr>,
    /// Let `--tcp` name an address that other machines can reach. Clients must prove who they are then,
    /// with a certificate of --tls-client-authorities.
    #[arg(long, requires = "tcp")]
    pub(crate) beyond_loopback: bool,
    /// Serve clients from other machines who prove nothing: whoever reaches the address can read and write
    /// the whole disk.
    #[arg(long, requires = "beyond_loopback")]
    pub(crate) any_client: bool,
    /// The name of the export.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) export_name: String,
    /// Refuse everything that changes the disk.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Serve what a rescue gives back of a damaged volume, to be read alone: all of storage is read first, and
    /// nothing after that. What is lost cannot be read. Neither side is changed.
    #[arg(long, conflicts_with_all = OF_A_VOLUME_IN_USE)]
    pub(crate) rescued: bool,
    /// Where what was rescued waits, sealed, in a file without a name [default: where the system keeps
    /// temporary files]. It takes as much room as the blocks that hold something, and must not lie where
    /// the volume's storage does: who watches it sees which blocks are read.
    #[arg(long, value_name = "DIR", requires = "rescued")]
    pub(crate) scratch: Option<PathBuf>,
    /// A certificate (PEM), to speak TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Its private key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Authorities (PEM): clients must show a certificate of one of them.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_client_authorities: Option<PathBuf>,
    /// Serve clients without TLS, too.
    #[arg(long, requires = "tls_certificate")]
    pub(crate) tls_optional: bool,
    /// Run a shell command with `$uri` and, without --tcp, `$unixsocket` set, and stop when it ends, with
    /// its exit code; 128 and the number of the signal if one ended it. What it has left in the background
    /// ends then, too, and a signal to this program ends all of it. At a terminal, what is in the
    /// background stays.
    #[arg(long = "run", value_name = "COMMAND", conflicts_with = "background")]
    pub(crate) run_command: Option<String>,
    #[command(flatten)]
    pub(crate) background: BackgroundArgs,
    /// Say where the disk is as JSON, once it can be used.
    #[arg(long)]
    pub(crate) json: bool,
}

impl NbdArgs {
    /// As it is served when nothing more is said.
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
    /// Show the disk as the file `disk`, without a file system. Needs neither root nor loop devices.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Never make a file system, not even on a disk of which no block holds anything.
    #[arg(long, conflicts_with = "raw")]
    pub(crate) no_mkfs: bool,
    /// Mount so that nothing can be written.
    #[arg(long)]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) background: BackgroundArgs,
}

#[derive(Args)]
pub(crate) struct UmountArgs {
    /// The directory that `oblivio mount` mounted on.
    pub(crate) directory: PathBuf,
}
