//! A page for the owner's browser, which draws as it happens what storage sees, and what the owner does.
//!
//! ```text
//! view::Recorder ── events ──▶ StorageSide ─┐
//!                                           ├─ a frame every 100 ms ─▶ hub ──▶ readers
//! WatchedDisk ── requests ──▶ OwnerSide ────┘
//! ```
//!
//! **The sides**: what storage sees is public. What the owner does is secret: unless there is an [`OwnerSide`], nothing of
//! it is noted, and no page can show it.
//!
//! **Who sees the page**: whoever has its address, which holds a token of 256 bits. The server listens on loopback
//! alone; other users of the machine can reach that, and pages of other origins by a browser of the owner's, so what they
//! ask for without the token is not there, and no other name than that of this machine is answered to
//! (`door`).
//!
//! **The disk does not wait**: the sides count, under a lock that is held for the time of a few additions. They keep a
//! bounded number of single events and say how many they left out; a reader that does not keep up
//! misses frames, and is told how many. The sums in a frame are those since the beginning, so they are right again with the
//! next. And **storage sees the same**, watched or not: nothing here makes an access.

mod door;
mod frame;
mod hub;
mod owner_side;
mod page;
mod server;
mod storage_side;
mod token;

use std::io;
use std::net::SocketAddr;

pub use door::is_own_name;
pub use owner_side::OwnerSide;
pub use server::{BoundWatch, WatchServer, bind};
pub use storage_side::{DrawnTree, StorageSide, drawn_trees};

/// What there is to be shown.
pub struct Shown {
    /// What storage sees.
    pub storage: StorageSide,
    /// What the owner does. Secret: `None`, unless the owner wants it on the page.
    pub owner: Option<OwnerSide>,
    /// Levels of the tree, from the root on, that are on the client and not in storage. Public.
    pub levels_on_client: u64,
    /// Bytes of the disk. Public.
    pub disk_bytes: u64,
    /// Bytes of a block. Public.
    pub block_bytes: u32,
}

/// What a page and its readers may use up.
#[derive(Clone, Debug)]
pub struct WatchLimits {
    /// From frame to frame.
    pub frame_millis: u64,
    /// Frames that wait for a reader. The oldest is dropped for one more.
    pub frames_waiting_max: usize,
    /// Visits of buckets that a frame has one by one. More are counted.
    pub visits_max: usize,
    /// Requests of the owner that a frame has one by one. More are counted.
    pub requests_max: usize,
    /// Pages that are open at a time.
    pub readers_max: usize,
    /// Connections at a time, those of strangers included. More are left at once.
    pub connections_max: usize,
    /// Bytes that the system keeps of what a reader has not read.
    pub send_buffer_bytes: usize,
    /// Time until a request must have been said.
    pub request_seconds_max: u64,
}

impl WatchLimits {
    /// What is right for a person or two who look at one disk.
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

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The address can be reached from other machines.
    #[error(
        "other machines can reach {0}, and the page that watches a disk goes over the network \
         unsealed: name an address of 127.0.0.1 or [::1]. To look from another machine, forward \
         the port by `ssh -L`, with the same number on both sides"
    )]
    NotLoopback(SocketAddr),
    /// It is not possible to listen there.
    #[error(
        "cannot serve the page that watches the disk at {0}: {1}; choose another port, or 0 for \
         any free one"
    )]
    Listen(SocketAddr, io::Error),
    /// The system gives no thread.
    #[error("cannot start the thread of the page that watches the disk: {0}")]
    Threads(io::Error),
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Randomness(rand::rngs::SysError),
}
