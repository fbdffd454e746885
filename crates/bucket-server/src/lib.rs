//! A server that keeps stores of volumes for clients on other machines.
//!
//! It speaks the protocol of [`oblivio_wire`] and keeps each volume in a separate folder. It has no
//! key of any volume: it sees what storage sees. Clients must authenticate, and each sees only its
//! own volumes.
//!
//! Authenticated clients are not trusted either. Their messages are parsed by `oblivio_wire`, all
//! [`BucketLimits`] hold, and a client that violates the protocol gets an error and is
//! disconnected. Logs contain no addresses of buckets.
//!
//! A program that embeds the server must leave `SIGPIPE` ignored, the default of Rust programs: a
//! client that disconnects during an answer then causes an error, not a signal.
//!
//! | module | contents |
//! |---|---|
//! | `server` | [`BucketServer`]: binds, accepts, stops |
//! | `acceptor` | TLS and access control |
//! | `link_server` | [`LinkServer`]: a server over existing links |
//! | `service` | the state that all connections share |
//! | `admission` | limits on connections and handshakes |
//! | `connection` | the connection of a client |
//! | `peer` | the connection of another server |
//! | `server_connection` | the common part of all connections |
//! | `working` | sends `Working` while a request takes long |
//! | `client_volumes` | the volumes of a client, and its quota |
//! | `volume_storage` | the folders of volumes |
//! | `volume` | a volume, and the connections that have it open |
//! | `session` | the number of the latest opening to write, on disk |
//! | `disk` | durable files besides stores |
//! | `shares_folder` | the files of the shares of a volume |
//! | `share_host` | computations on the shares of a volume |
//! | `computing` | the other share servers |
//! | `peer_links` | messages from this server to others |
//! | `trips` | reads and writes of a store in portions |
//! | `memory` | the shared memory budget for messages |
//! | `refusal` | errors that are sent to clients |
//! | `metrics` | counters, in the format of Prometheus |

mod acceptor;
mod admission;
mod client_volumes;
mod clock;
mod computing;
mod connection;
mod disk;
mod link_server;
mod memory;
mod metrics;
mod peer;
mod peer_links;
mod refusal;
mod server;
mod server_connection;
mod service;
mod session;
mod share_host;
mod shares_folder;
mod trips;
mod volume;
mod volume_storage;
mod working;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use oblivio_wire::keys::{AllowedClient, PeerServer, PublicKey, SecretKey};
use oblivio_wire::message::MESSAGE_BYTES_MAX;

pub use computing::{Computed, WatchVolumes};
pub use link_server::LinkServer;
pub use server::{BucketServer, BucketServerHandle};
pub use volume_storage::{VolumeCatalog, VolumeStorage};

/// Options of a bucket server.
pub struct BucketServerOptions {
    /// An existing folder for the volumes. No other program may use it.
    pub folder: PathBuf,
    /// The server's key.
    pub key: SecretKey,
    /// The allowed clients.
    pub clients: Vec<AllowedClient>,
    /// The other share servers; this server may be in the list. With a list, the server also keeps
    /// shares of volumes and computes on them. `None` for a server that only keeps stores.
    pub peers: Option<Vec<PeerServer>>,
    /// Limits on the resources of clients.
    pub limits: BucketLimits,
}

/// Limits on the resources of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketLimits {
    /// Maximum number of authenticated client connections.
    pub connections_max: usize,
    /// Maximum number of connections of one client. An additional one replaces the connection that
    /// has been silent longest: see [`Self::makes_room_after`].
    pub connections_per_client_max: usize,
    /// Maximum number of connections of other share servers, divided equally among these servers.
    /// Each server needs one per volume.
    pub peer_connections_max: usize,
    /// Maximum number of handshakes in progress. An additional one displaces a randomly chosen one.
    pub handshakes_max: usize,
    /// Maximum duration of a handshake.
    pub handshake_within: Duration,
    /// Time for receiving a message after its first byte, and for sending an answer.
    pub message_within: Duration,
    /// The interval at which a client gets `Working` while a computation runs.
    pub works_every: Duration,
    /// Time for which a connection must have been silent before a new one of its client may replace
    /// it.
    pub makes_room_after: Duration,
    /// Maximum bytes of a message or an answer, at most [`MESSAGE_BYTES_MAX`].
    pub message_bytes_max: usize,
    /// Memory in bytes for all messages and answers. Further messages wait. A client may hold at
    /// most half of what remains free, so a single client holds at most a third.
    pub memory_bytes_max: u64,
    /// Memory in bytes for messages of other servers, an equal part for each. This memory is
    /// separate from the memory for clients, so that a message of a server never waits for memory
    /// that a waiting client holds.
    pub peer_memory_bytes_max: u64,
    /// Maximum number of volumes of one client.
    pub volumes_per_client_max: usize,
    /// Time for which a store with unflushed writes stays open after its writer has disconnected. A
    /// writer that resumes later has lost these writes.
    pub stores_kept_for: Duration,
    /// Maximum number of stores of one client that stay open without a writer.
    pub idle_stores_per_client_max: usize,
    /// Time for requests in flight to end when the server stops. A flush of the operating system
    /// may take longer.
    pub stop_within: Duration,
}

impl Default for BucketLimits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            connections_per_client_max: 16,
            peer_connections_max: 256,
            handshakes_max: 16,
            handshake_within: Duration::from_secs(10),
            message_within: Duration::from_secs(30),
            works_every: Duration::from_secs(5),
            makes_room_after: Duration::from_secs(10),
            message_bytes_max: MESSAGE_BYTES_MAX,
            memory_bytes_max: 512 << 20,
            peer_memory_bytes_max: 256 << 20,
            volumes_per_client_max: 1024,
            stores_kept_for: Duration::from_secs(300),
            idle_stores_per_client_max: 16,
            stop_within: Duration::from_secs(10),
        }
    }
}

/// The smallest limit on message bytes with which clients still work.
const MESSAGE_BYTES_MIN: usize = 64 << 10;

impl BucketLimits {
    fn check(&self) -> Result<(), BucketServerError> {
        let counts = [self.connections_max, self.connections_per_client_max, self.handshakes_max];
        let problem = if counts.contains(&0) {
            "no client could connect; allow at least one connection and one handshake"
        } else if !(MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(&self.message_bytes_max) {
            "the limit of messages must be 64 KiB to 32 MiB"
        } else {
            return Ok(());
        };
        Err(BucketServerError::Limits(problem))
    }
}

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BucketServerError {
    /// The folder cannot be used.
    #[error("cannot keep stores in {path}: {1}; name an existing folder", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// Another server uses the folder.
    #[error("another server keeps its stores in {}; stop it first", .0.display())]
    InUse(PathBuf),
    /// The client's name is invalid, or its name or key is already used.
    #[error(
        "cannot allow the client {0:?}: its name is invalid, or its name or key is already used by \
         another client or the server; give it its own"
    )]
    Client(String),
    /// Another share server has the key of a client or of a third server.
    #[error(
        "cannot allow the server with the key {0}: a client or another server has the same key; \
         each needs its own"
    )]
    Peer(PublicKey),
    /// The server's key cannot be used.
    #[error("the server's key is unusable: {0}")]
    Key(io::Error),
    /// A limit is invalid.
    #[error("invalid limits: {0}")]
    Limits(&'static str),
    /// Listening fails.
    #[error("cannot listen on {0}: {1}; choose another address")]
    Listen(SocketAddr, io::Error),
    /// The system cannot provide a thread or random numbers.
    #[error("the system provides no thread or no random numbers: {0}")]
    System(io::Error),
}
