//! A page for the owner's browser. It draws live what storage sees and what the owner does.
//!
//! ```text
//! view::Recorder ── events ──▶ StorageSide ─┐
//!                                           ├─ a frame every 100 ms ─▶ hub ──▶ readers
//! WatchedDisk ── requests ──▶ OwnerSide ────┘
//! ```
//!
//! **The two sides**: what storage sees is public. What the owner does is secret: without an
//! [`OwnerSide`], the page neither records nor shows it.
//!
//! **Access**: the page's address contains a token of 256 bits. The server listens only on
//! loopback. Other users of the machine can connect to it, and so can pages of other origins in the
//! owner's browser. Without the token they get status 404. Requests under a host name that is not
//! the server's own are refused.
//!
//! **The disk does not wait**: each side updates counters under a lock that is held only for a few
//! additions. Each side lists a bounded number of events and only counts the others. A slow reader
//! misses frames, and receives the number of missed frames. Totals count from the start, so the
//! next frame corrects them. **The view of storage does not change** when a disk is watched: this
//! crate makes no access.

mod access;
mod frame;
mod hub;
mod owner_side;
mod page;
mod server;
mod storage_side;
mod token;

use std::io;
use std::net::SocketAddr;

pub use access::is_own_name;
pub use owner_side::OwnerSide;
pub use server::{BoundWatch, WatchServer, bind};
pub use storage_side::{DrawnTree, StorageSide, drawn_trees};

/// The data that a page shows.
pub struct Shown {
    /// The view of storage. Public.
    pub storage: StorageSide,
    /// The owner's activity. Secret: `None` unless the owner wants it on the page.
    pub owner: Option<OwnerSide>,
    /// Number of levels of the tree, from the root down, that are on the client and not in storage.
    /// Public.
    pub levels_on_client: u64,
    /// Size of the disk in bytes. Public.
    pub disk_bytes: u64,
    /// Size of a block in bytes. Public.
    pub block_bytes: u32,
}

/// Limits on the resources of a page and its readers.
#[derive(Clone, Debug)]
pub struct WatchLimits {
    /// Milliseconds between frames.
    pub frame_millis: u64,
    /// Maximum number of frames queued for a reader. When the queue is full, the oldest is dropped.
    pub frames_waiting_max: usize,
    /// Maximum number of visits of buckets listed in a frame. Further visits are only counted.
    pub visits_max: usize,
    /// Maximum number of requests of the owner listed in a frame. Further requests are only
    /// counted.
    pub requests_max: usize,
    /// Maximum number of pages that are open simultaneously.
    pub readers_max: usize,
    /// Maximum number of connections, including unauthenticated ones. Additional connections are
    /// closed immediately.
    pub connections_max: usize,
    /// Size of the socket's send buffer for a reader, in bytes.
    pub send_buffer_bytes: usize,
    /// Seconds within which a request must arrive.
    pub request_seconds_max: u64,
}

impl WatchLimits {
    /// Limits for one or two people who watch one disk.
    pub const DEFAULT: Self = Self {
        frame_millis: 100,
        frames_waiting_max: 16,
        visits_max: 512,
        requests_max: 256,
        readers_max: 8,
        connections_max: 64,
        send_buffer_bytes: 64 << 10,
        request_seconds_max: 2,
    };
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The reason why the page cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The address is reachable from other machines.
    #[error(
        "{0} is reachable from other machines, and the watch page is sent unencrypted; use an \
         address of 127.0.0.1 or [::1]. To watch from another machine, forward the port with \
         `ssh -L`, with the same number on both sides"
    )]
    NotLoopback(SocketAddr),
    /// Listening at the address fails.
    #[error("cannot serve the watch page at {0}: {1}; choose another port, or 0 for any free one")]
    Listen(SocketAddr, io::Error),
    /// The thread cannot be started.
    #[error("cannot start the thread of the watch page: {0}")]
    Threads(io::Error),
    /// The system provides no randomness for the tokens.
    #[error("the system provides no randomness for the watch page: {0}")]
    Randomness(rand::rngs::SysError),
}
