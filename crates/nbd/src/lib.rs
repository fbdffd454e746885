//! A disk for NBD clients: qemu, nbdcopy, the Linux kernel and many more.
//!
//! [`serve`] listens on a socket and hands each client that connects to a [`Service`], which agrees
//! with it on an export ([`negotiation`]), reads its requests, passes them to the disk, and writes
//! the answers in the order in which they come. The protocol is the public one of the NBD project:
//! fixed newstyle, TLS by option, structured replies to reads.
//!
//! `base:allocation` is not offered, though the client knows which blocks hold something: a copy that leaves
//! out the others makes fewer accesses, and so storage would learn from every backup how full the disk is.
//! Where the position map lies in the tree, each answer would cost accesses of its own as well.
//!
//! A client is not trusted: whatever it sends is parsed from bounded slices ([`wire`]), each limit of
//! [`Limits`] holds, and a client that does not keep to the protocol is left. Nothing that is logged
//! says what was asked of the disk.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use oblivio_nbd::{Listen, NbdOptions, ServeError, serve};
//! use oblivio_volume::device::BlockDevice;
//!
//! /// Lets programs of this user reach a disk by a socket while `work` runs.
//! fn share(disk: Arc<dyn BlockDevice>, work: impl FnOnce(&str)) -> Result<(), ServeError> {
//!     let socket = Listen::Unix("disk.sock".into());
//!     let server = serve(disk, socket, NbdOptions::default())?;
//!     work(&server.uri()); // `nbdcopy "$uri" copy.img`, say
//!     server.shutdown().map(drop)
//! }
//! ```

mod admission;
mod bind_lock;
pub mod export;
mod listen;
pub mod negotiation;
mod portions;
mod replies;
mod requests;
mod server;
mod service;
mod tls;
mod wiped_reader;
pub mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use admission::NotLetIn;
pub use server::{BoundServer, Counts, ServerHandle, bind, serve};
pub use service::{Disconnect, Service};

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A socket file that only its owner may use. One left over by a dead server is replaced.
    Unix(PathBuf),
    /// An address of the network; port 0 means any free one.
    Tcp(SocketAddr),
}

/// What to serve, and to whom.
#[derive(Clone, Debug, Default)]
pub struct NbdOptions {
    /// The name that clients ask for. The empty name always works.
    pub export_name: String,
    /// What clients may show to people.
    pub description: String,
    /// Whether clients may or must speak TLS.
    pub tls: TlsMode,
    /// Refuse everything that changes the disk.
    pub read_only: bool,
    /// Listen on addresses that other machines can reach, too. Clients must prove who they are then.
    pub beyond_loopback: bool,
    /// Serve clients who do not prove who they are, even beyond loopback.
    pub any_client: bool,
    /// What clients may use up.
    pub limits: Limits,
}

/// Whether clients may or must speak TLS.
#[derive(Clone, Debug, Default)]
pub enum TlsMode {
    /// They cannot.
    #[default]
    Off,
    /// They may.
    Offered(TlsFiles),
    /// They must.
    Required(TlsFiles),
}

impl TlsMode {
    /// Whether every client shows a certificate of somebody who vouches for it.
    fn proves_who_clients_are(&self) -> bool {
        matches!(self, Self::Required(TlsFiles { client_authorities: Some(_), .. }))
    }
}

/// Files in PEM format.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the server, and those between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the server.
    pub key: PathBuf,
    /// Authorities; a client must show a certificate of one of them. None: any client will do.
    pub client_authorities: Option<PathBuf>,
}

/// What clients may use up.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Clients at a time that have chosen an export. More are turned away.
    pub connections_max: usize,
    /// Clients at a time that have not chosen an export yet. One more displaces one of them, by chance; never
    /// one that has shown a certificate that [`TlsFiles::client_authorities`] vouch for.
    pub handshakes_max: usize,
    /// Requests of one connection that are not yet answered. More wait in the socket.
    pub in_flight_requests_max: u32,
    /// Bytes that the reads and writes of one connection carry, whatever others do; a block at least. Long ones go to the disk
    /// in portions of 32 KiB, or of a block or range of the disk if that is longer.
    pub in_flight_bytes_max: u32,
    /// More bytes, which all connections share. Replies that clients do not read count, too.
    pub shared_bytes_max: u32,
    /// Bytes of one read or write. The disk may set a lower limit. Of a write that is not answered, some portions may have
    /// reached the disk. Reads that are longer than a portion and whose replies must be in one piece (simple ones, and those that
    /// are not to be fragmented) share as many bytes over all connections, beside the others.
    pub request_bytes_max: u32,
    /// Time until a client must have chosen an export.
    pub handshake_seconds_max: u64,
    /// Time for requests in flight when the server stops.
    pub shutdown_seconds_max: u64,
}

impl Limits {
    /// What is right for a disk of one owner.
    pub const DEFAULT: Self = Self {
        connections_max: 64,
        handshakes_max: 64,
        in_flight_requests_max: 128,
        in_flight_bytes_max: portions::PORTION_BYTES_MAX,
        shared_bytes_max: 2 << 20,
        request_bytes_max: 32 << 20,
        handshake_seconds_max: 10,
        shutdown_seconds_max: 10,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What fits into the address of a Unix socket, with the zero that ends it.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Why there is no server, or it did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another server listens on the socket file.
    #[error("a server already listens on {}: stop it, or choose another socket file", .0.display())]
    InUse(PathBuf),
    /// Something that is no socket lies where the socket file should be.
    #[error("{} is not a socket: move it away, or choose another socket file", .0.display())]
    NotASocket(PathBuf),
    /// The address can be reached from other machines.
    #[error(
        "other machines can reach {0}: listen on 127.0.0.1 or [::1], or allow addresses beyond \
         loopback"
    )]
    NotLoopback(SocketAddr),
    /// The address can be reached from other machines, and clients need not prove who they are.
    #[error(
        "other machines can reach {0}, and whoever does could read and write the whole disk: \
         let clients prove who they are, or serve any of them on purpose"
    )]
    AnyClient(SocketAddr),
    /// The path of the socket file is longer than the system takes.
    #[error(
        "the path of a socket is at most {max} bytes long, and {path} is longer: choose a \
         shorter one",
        max = SOCKET_PATH_BYTES_MAX,
        path = .0.display()
    )]
    PathTooLong(PathBuf),
    /// There is no folder for the socket file.
    #[error(
        "there is no folder for the socket {}: make the folder, or choose another socket file",
        .0.display()
    )]
    NoFolder(PathBuf),
    /// The file that keeps other servers away while the socket is made is somebody else's.
    #[error(
        "{} is no file of yours: remove it, or choose a socket file in a folder of your own",
        .0.display()
    )]
    ForeignLock(PathBuf),
    /// A text is longer than the protocol allows.
    #[error("{0} is too long: use at most {max} bytes", max = wire::STRING_BYTES_MAX)]
    TooLong(&'static str),
    /// A limit that lets nothing through.
    #[error("{0} lets no request through: raise it")]
    NoRoom(&'static str),
    /// It is not possible to listen there.
    #[error("cannot listen on {0}: {1}; choose another socket file or address")]
    Listen(String, io::Error),
    /// The certificates or the key cannot be used.
    #[error("cannot use {path} for TLS: {1}", path = .0.display())]
    Tls(PathBuf, String),
    /// The system gives no threads.
    #[error("cannot start the threads of the server: {0}")]
    Threads(io::Error),
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Randomness(rand::rngs::SysError),
    /// When the time was over, clients still had requests in flight.
    #[error(
        "{connections} {} still had requests in flight when the time was over; these were \
         dropped: of writes among them, any may be on the disk",
        if *.connections == 1 { "client" } else { "clients" }
    )]
    Unfinished {
        /// How many clients.
        connections: usize,
    },
}
