//! A server that keeps stores of volumes for clients elsewhere.
//!
//! It speaks the protocol of [`oblivio_wire`] and keeps each volume in a folder of its own. It has no key of any volume: what it
//! sees is what storage sees. Clients prove who they are before they are listened to, and each sees its own volumes alone.
//!
//! Nobody is trusted for that. Whatever a client sends is parsed by `oblivio_wire`, each limit of [`BucketLimits`] holds, and a
//! client that does not keep to the protocol is told so and left. Nothing that is logged says which buckets were asked for.
//!
//! A program that embeds the server leaves `SIGPIPE` ignored, as Rust programs have it: a client
//! that disconnects in the middle of an answer is an error, not a signal.
//!
//! | module | what it holds |
//! |---|---|
//! | `server` | [`BucketServer`]: binds, accepts, stops |
//! | `door` | TLS, and who may come in |
//! | `link_server` | [`LinkServer`]: the same over links that are there already |
//! | `service` | what all connections share |
//! | `admission` | who is let in |
//! | `connection` | what one client says, and is answered |
//! | `peer` | what another server says: what it has dealt |
//! | `talk` | what connections have in common |
//! | `working` | telling a client that what it has asked is still worked on |
//! | `shelf` | the volumes of a client, and how much it may have |
//! | `place` | where volumes lie: in folders |
//! | `volume` | who has one volume open, and as what |
//! | `session` | the number of the latest opening to write, on disk |
//! | `disk` | what must be durable, apart from stores |
//! | `shares_folder` | files for what computes on shares of a volume |
//! | `computer` | what computes on shares of one volume |
//! | `computing` | with which servers this one computes |
//! | `lines` | what goes from this server to others |
//! | `trips` | what a request asks of a store |
//! | `memory` | memory for messages, which all connections share |
//! | `refusal` | why something is not done |
//! | `metrics` | what the server has done |

mod admission;
mod clock;
mod computer;
mod computing;
mod connection;
mod disk;
mod door;
mod lines;
mod link_server;
mod memory;
mod metrics;
mod peer;
mod place;
mod refusal;
mod server;
mod service;
mod session;
mod shares_folder;
mod shelf;
mod talk;
mod trips;
mod volume;
mod working;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use oblivio_wire::keys::{AllowedClient, PeerServer, PublicKey, SecretKey};
use oblivio_wire::message::MESSAGE_BYTES_MAX;

pub use computing::{Computed, WatchVolumes};
pub use link_server::LinkServer;
pub use place::{Place, Shelving};
pub use server::{BucketServer, BucketServerHandle};

/// Whose volumes are kept, and where.
pub struct BucketServerOptions {
    /// A folder that is there. It is the server's alone.
    pub folder: PathBuf,
    /// By which clients know the server.
    pub key: SecretKey,
    /// Who may come.
    pub clients: Vec<AllowedClient>,
    /// With whom the server computes: it keeps shares of volumes then, beside their stores. It may be among them itself. Without a list it keeps
    /// stores, and computes nothing.
    pub peers: Option<Vec<PeerServer>>,
    /// What clients may use up.
    pub limits: BucketLimits,
}

/// What clients may use up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketLimits {
    /// Connections at a time of those who have proved who they are.
    pub connections_max: usize,
    /// The same, of one client. One more takes the place of the one that has been silent longest: see
    /// [`Self::makes_room_after`].
    pub connections_per_client_max: usize,
    /// Connections at a time of other servers that compute with this one, an equal part for each.
    /// Each has one for each volume.
    pub peer_connections_max: usize,
    /// Connections at a time of those who have not. One more displaces one of them, by chance.
    pub handshakes_max: usize,
    /// Time for a stranger to prove who it is, in all.
    pub handshake_within: Duration,
    /// Time for a message to come once it has begun, and for an answer to be taken.
    pub message_within: Duration,
    /// How often a client that waits for what is computed is told that it is worked on.
    pub works_every: Duration,
    /// How long a connection must have been silent to make room for another one of its client.
    pub makes_room_after: Duration,
    /// Bytes of a message and of an answer, [`MESSAGE_BYTES_MAX`] at most.
    pub message_bytes_max: usize,
    /// Bytes that messages and answers take in memory together. Those that find no room wait. A
    /// client may hold half as much as it leaves free: a third of all if it is alone.
    pub memory_bytes_max: u64,
    /// The same, for what other servers deal, an equal part for each. It is apart from that of
    /// clients, so that no server waits for a client that waits for it.
    pub peer_memory_bytes_max: u64,
    /// Volumes of one client.
    pub volumes_per_client_max: usize,
    /// How long a store stays open when its writer has gone. Whoever resumes later has lost what was not flushed.
    pub stores_kept_for: Duration,
    /// Such stores of one client.
    pub idle_stores_per_client_max: usize,
    /// Time for requests under way when the server stops. The system may take longer for a flush.
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

/// The shortest bound for messages that lets a client say what it has to.
const MESSAGE_BYTES_MIN: usize = 64 << 10;

impl BucketLimits {
    fn check(&self) -> Result<(), BucketServerError> {
        let counts = [self.connections_max, self.connections_per_client_max, self.handshakes_max];
        let problem = if counts.contains(&0) {
            "nobody is let in: allow a connection and a handshake at least"
        } else if !(MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(&self.message_bytes_max) {
            "messages have from 64 KiB to 32 MiB"
        } else {
            return Ok(());
        };
        Err(BucketServerError::Limits(problem))
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BucketServerError {
    /// The folder cannot be used.
    #[error("cannot keep stores in {path}: {1}; name a folder that is there", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// Another server has it.
    #[error("another server keeps its stores in {}: stop it first", .0.display())]
    InUse(PathBuf),
    /// A client is named or known as another is, or has a name that is none.
    #[error(
        "the client {0:?} cannot be let in: it has a name that is none, the name or the key of \
         another one, or the server's key; give it its own"
    )]
    Client(String),
    /// Another server has a key that is one of a client, or of another server.
    #[error(
        "the server that has {0} cannot be let in: a client or another server has this key; \
         each has its own"
    )]
    Peer(PublicKey),
    /// The key cannot be used.
    #[error("the key of the server cannot be used: {0}")]
    Key(io::Error),
    /// A limit that lets nothing through.
    #[error("the limits cannot be used: {0}")]
    Limits(&'static str),
    /// It is not possible to listen there.
    #[error("cannot listen on {0}: {1}; choose another address")]
    Listen(SocketAddr, io::Error),
    /// The system gives no threads, or no random numbers.
    #[error("the system does not give what a server needs: {0}")]
    System(io::Error),
}
