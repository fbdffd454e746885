//! A disk for NBD clients: qemu, nbdcopy, the Linux kernel and many more.
//!
//! [`serve`] listens on a socket and hands each client to a [`Service`]. The service negotiates an
//! export ([`negotiation`]), passes the client's requests to the disk, and sends replies in the
//! order in which the disk answers. It implements the public protocol of the NBD project: fixed
//! newstyle, optional TLS, structured replies to reads.
//!
//! The metadata context `base:allocation`, which lists the blocks in use, is not offered, although
//! the ORAM client knows them. A copy that skipped unused blocks would make fewer accesses, and
//! storage would learn from every backup how full the disk is. With a position map in the tree,
//! each answer would also cost accesses.
//!
//! Clients are not trusted. Their bytes are parsed from bounded slices ([`wire`]), all [`Limits`]
//! hold, and a client that violates the protocol is disconnected. Logs contain nothing about
//! requests to the disk.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use oblivio_nbd::{Listen, NbdOptions, ServeError, serve};
//! use oblivio_volume::device::BlockDevice;
//!
//! /// Serves a disk to programs of this user while `work` runs.
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

pub use admission::RefusedCounts;
pub use server::{BoundServer, Counts, ServerHandle, bind, serve};
pub use service::{Disconnect, Service};

/// The address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A socket file that only its owner may use. A stale socket of a dead server is replaced.
    Unix(PathBuf),
    /// A TCP address. Port 0 chooses a free port.
    Tcp(SocketAddr),
}

/// Options of a server.
#[derive(Clone, Debug, Default)]
pub struct NbdOptions {
    /// The name of the export. Clients can also select it by the empty name.
    pub export_name: String,
    /// A human-readable description of the export.
    pub description: String,
    /// Whether TLS is off, offered or required.
    pub tls: TlsMode,
    /// Refuse requests that change the disk.
    pub read_only: bool,
    /// Allow addresses that other machines can reach. Clients must then authenticate.
    pub beyond_loopback: bool,
    /// Allow unauthenticated clients, even beyond loopback.
    pub any_client: bool,
    /// Limits on the resources of clients.
    pub limits: Limits,
}

/// Whether clients can or must use TLS.
#[derive(Clone, Debug, Default)]
pub enum TlsMode {
    /// TLS is not available.
    #[default]
    Off,
    /// Clients may use TLS.
    Offered(TlsFiles),
    /// Clients must use TLS.
    Required(TlsFiles),
}

impl TlsMode {
    /// Whether every client must show a certificate signed by a trusted authority.
    fn proves_who_clients_are(&self) -> bool {
        matches!(self, Self::Required(TlsFiles { client_authorities: Some(_), .. }))
    }
}

/// Certificate and key files in PEM format.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
    /// Authorities that sign client certificates. If `None`, any client is accepted.
    pub client_authorities: Option<PathBuf>,
}

/// Limits on the resources of clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of clients that have chosen an export. Additional clients are refused.
    pub connections_max: usize,
    /// Maximum number of clients that have not chosen an export yet. If there are more, a randomly
    /// chosen one is disconnected, but never a client that has shown a certificate signed by
    /// [`TlsFiles::client_authorities`].
    pub handshakes_max: usize,
    /// Maximum number of unanswered requests of a connection. Additional requests wait in the
    /// socket.
    pub in_flight_requests_max: u32,
    /// Bytes of data in flight reserved for each connection. Long requests go to the disk in
    /// portions of 32 KiB, or of one block or range of the disk if that is longer; at least the
    /// longer portion is then reserved.
    pub in_flight_bytes_max: u32,
    /// Additional bytes in flight that all connections share. They include replies that clients
    /// have not read.
    pub shared_bytes_max: u32,
    /// Maximum bytes of a read or write. The disk may set a lower limit. If a write is never
    /// answered, some of its portions may have reached the disk. If a read is longer than a portion
    /// and its reply must be in one piece (a simple or unfragmented reply), it takes its bytes from
    /// a separate budget of this size, which all connections share.
    pub request_bytes_max: u32,
    /// Seconds within which a client must choose an export.
    pub handshake_seconds_max: u64,
    /// Seconds for requests in flight to end when the server stops.
    pub shutdown_seconds_max: u64,
}

impl Limits {
    /// Limits that suit a disk with one owner.
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

/// The maximum length of a Unix socket path in bytes, without the terminating zero.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The reason why a server cannot start, or did not stop properly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another server listens on the socket file.
    #[error("a server already listens on {}; stop it, or choose another socket file", .0.display())]
    InUse(PathBuf),
    /// The path of the socket file exists and is not a socket.
    #[error("{} is not a socket; move it away, or choose another socket file", .0.display())]
    NotASocket(PathBuf),
    /// The address is reachable from other machines.
    #[error(
        "{0} is reachable from other machines; listen on 127.0.0.1 or [::1], or allow addresses \
         beyond loopback"
    )]
    NotLoopback(SocketAddr),
    /// The address is reachable from other machines, and clients need not authenticate.
    #[error(
        "{0} is reachable from other machines, and any client there could read and write the \
         whole disk; require client certificates, or allow any client explicitly"
    )]
    AnyClient(SocketAddr),
    /// The path of the socket file is too long for the system.
    #[error(
        "the socket path {path} is longer than {max} bytes; choose a shorter one",
        max = SOCKET_PATH_BYTES_MAX,
        path = .0.display()
    )]
    PathTooLong(PathBuf),
    /// The folder of the socket file does not exist.
    #[error(
        "the folder of the socket {} does not exist; make the folder or choose another socket file",
        .0.display()
    )]
    NoFolder(PathBuf),
    /// The lock file next to the socket belongs to another user.
    #[error(
        "{} is not your file; remove it, or choose a socket file in a folder of your own",
        .0.display()
    )]
    ForeignLock(PathBuf),
    /// A string is longer than the protocol allows.
    #[error("{0} is too long; use at most {max} bytes", max = wire::STRING_BYTES_MAX)]
    TooLong(&'static str),
    /// A limit is 0.
    #[error("{0} is 0, which allows no request; raise it")]
    NoRoom(&'static str),
    /// Listening fails.
    #[error("cannot listen on {0}: {1}; choose another socket file or address")]
    Listen(String, io::Error),
    /// The certificates or the key cannot be used.
    #[error("cannot use {path} for TLS: {1}", path = .0.display())]
    Tls(PathBuf, String),
    /// The threads cannot be started.
    #[error("cannot start the threads of the NBD server: {0}")]
    Threads(io::Error),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Randomness(rand::rngs::SysError),
    /// Requests were still in flight when the time limit of the shutdown ended.
    #[error(
        "{connections} {} still had requests in flight when the time to stop was over; they were \
         dropped, and any of their writes may be on the disk",
        if *.connections == 1 { "client" } else { "clients" }
    )]
    Unfinished {
        /// The number of clients with requests in flight.
        connections: usize,
    },
}
