//! Messages from the client to each server, and between servers. Messages of one kind have the same
//! shape for all servers, and differ only in the shares. [`bytes`] encodes the messages.

pub mod bytes;

use oblivio_core::{BucketId, Leaf, StoreErrorKind};

use crate::sharing::{Parties, Share};
use crate::tree::Tree;

/// A request for one slot of a path that does not reveal which slot (Subroutine 1). The answer is
/// the share of a block, of degree 2*t*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select<E> {
    /// The leaf of the path. Public once the request is sent.
    pub leaf: Leaf,
    /// The share of a vector with one element for each slot of the path, beginning with the root's
    /// slots. The element is one for the selected slot, and zero for the others.
    pub query: Share<E>,
}

/// A request to write a block to a slot of the root (step 10 of Protocol 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootWrite<E> {
    /// The index of the root's next free slot, which depends only on the number of writes.
    pub slot: usize,
    /// The server's share of the block.
    pub block: Share<E>,
}

/// A request to evict a path (Subroutine 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evict<E> {
    /// The number of the eviction, counted from 0. It determines the path.
    pub number: u64,
    /// The number of the attempt, greater than all earlier numbers. Servers refuse shares that were
    /// dealt in another attempt.
    pub attempt: u64,
    /// The share of the matrix for each level below the root, and one more for the sibling leaf. A
    /// matrix maps slots of the source and the destination to slots of the destination. So it has a
    /// row for each slot of the source and the destination, and a column for each slot of the
    /// destination.
    pub matrices: Vec<Share<E>>,
}

/// The message of a dealer to one server in one round of an eviction (step 3 of Protocol 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DealtShares<E> {
    /// The number of the eviction, counted from 0.
    pub number: u64,
    /// The number of the attempt at this eviction.
    pub attempt: u64,
    /// The index of the part of every block that the message is about; 0 if blocks are not divided.
    pub tile: u32,
    /// The level of the buckets that the servers compute in this round, counted from 1. Level 0
    /// without shares means that the dealer has no more parts in the lane.
    pub level: u8,
    /// For each bucket of the round, the receiver's share of the dealer's share of the bucket.
    pub shares: Vec<Share<E>>,
}

/// The progress of a tree: the client's counts of evictions and writes. A request names the point
/// at which it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TreePoint {
    /// The number of finished evictions.
    pub evictions: u64,
    /// The number of blocks written to the root since the last eviction.
    pub written: usize,
}

/// The role of a server in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The number of the server, counted from 1.
    pub number: u8,
    /// The number of servers, and the number of servers that may collude.
    pub parties: Parties,
    /// The shape of the tree.
    pub tree: Tree,
    /// Bytes of a slot: its metadata, if any, and a shared block.
    pub block_bytes: usize,
    /// Bytes of metadata at the beginning of a slot. The last byte is the mark. 0 if the client
    /// knows the positions of blocks.
    pub metadata_bytes: usize,
    /// The public keys of all servers, in their order. Servers authenticate each other with these
    /// keys.
    pub keys: Vec<ServerKey>,
}

impl Setup {
    /// Bytes of a slot in [`Request::Fetch`] and [`Request::Put`]: the slot, and one more byte for
    /// its mark if slots have metadata.
    pub fn fetched_bytes(&self) -> usize {
        self.block_bytes + usize::from(self.metadata_bytes > 0)
    }
}

/// The public key of a server.
pub type ServerKey = [u8; 32];

/// Consecutive slots of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The bucket to which the slots belong.
    pub bucket: BucketId,
    /// The index of the first slot.
    pub first: usize,
    /// The number of slots, at least one.
    pub count: usize,
}

/// The maximum number of bytes of slots in one message, unless one slot has more.
const SLOTS_BYTES_MAX: usize = 4 << 20;

impl Slots {
    /// The maximum number of slots of `slot_bytes` bytes in one message.
    pub fn at_once(slot_bytes: usize) -> usize {
        (SLOTS_BYTES_MAX / slot_bytes).max(1)
    }

    /// Divides the first `all` slots of a bucket into runs of at most `at_once` slots each.
    pub(crate) fn runs(bucket: BucketId, all: usize, at_once: usize) -> impl Iterator<Item = Self> {
        (0..all).step_by(at_once).map(move |first| {
            let count = at_once.min(all - first);
            Self { bucket, first, count }
        })
    }
}

/// A request of the client to a server with its shares in files. Bytes are elements of GF(2^8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Sets up the server in a new tree. Does nothing if the server already has this setup.
    Setup(Setup),
    /// Asks for the server's progress.
    Epoch,
    /// Requests the share of one slot of a path, without revealing which slot.
    Select {
        /// The point of the access. Blocks that were written to the root after this point count as
        /// zeros.
        at: TreePoint,
        /// The path and the share of the query.
        select: Select<u8>,
    },
    /// Writes a block to the next slot of the root at point `at`. The last write may be repeated.
    Write {
        /// The point before the write. The block goes to slot `at.written` of the root.
        at: TreePoint,
        /// The server's share of the block.
        block: Share<u8>,
    },
    /// Evicts a path, together with all other servers.
    Evict {
        /// The eviction and the server's shares of its matrices.
        evict: Evict<u8>,
        /// The 2*t* + 1 servers whose shares all servers use.
        dealers: Vec<u8>,
    },
    /// Rolls back the last eviction, if this server finished it. The client requests this if
    /// another server did not finish the eviction.
    RollBack {
        /// The number of evictions before the eviction to roll back.
        evictions: u64,
    },
    /// Requests the shares of the metadata of a path, beginning with the root's slots.
    Metadata {
        /// The point of the access. Blocks that were written to the root after this point count as
        /// zeros, and blocks that were taken after it count as not taken.
        at: TreePoint,
        /// The leaf of the path. Public once the request is sent.
        leaf: Leaf,
    },
    /// Requests the shares of slots, to check them or to rebuild another server's shares.
    Fetch {
        /// The point at which the slots are read. The server must still have the state at this
        /// point.
        at: TreePoint,
        /// The slots to read, at most [`Slots::at_once`].
        slots: Slots,
    },
    /// Stores shares in slots of a new tree.
    Put {
        /// The point of the tree once all shares are stored.
        at: TreePoint,
        /// The slots to store the shares in.
        slots: Slots,
        /// The shares of the slots, one after the other.
        share: Share<u8>,
    },
    /// Connects the server to all other servers to which it has no link.
    Connect,
    /// Declares that all shares are stored in the new tree. The server is then at point `at`.
    SetPoint {
        /// The point of the loaded tree, or the point of the other servers if this server was
        /// rebuilt.
        at: TreePoint,
    },
}

/// The maximum number of trees of a volume. Tree 0 is the data, and each further tree maps the
/// blocks of the tree before it.
pub const TREES_MAX: u8 = 8;

/// An answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request is done, and durable.
    Done,
    /// The answer to [`Request::Epoch`].
    Epoch(HostEpoch),
    /// The requested share, or all requested shares, one after the other.
    Share(Vec<u8>),
    /// The request was refused. The contents of the tree have not changed.
    Refused(Refusal),
}

/// Why a server refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of the refusal, which decides what the client does.
    /// [`Unreachable`](StoreErrorKind::Unreachable) if a link to the client or to another server
    /// was lost, or a server was restarted. Never [`Fenced`](StoreErrorKind::Fenced).
    pub kind: StoreErrorKind,
    /// The human-readable reason.
    pub why: String,
}

impl<S: Into<String>> From<S> for Refusal {
    /// A refusal of kind [`Refused`](StoreErrorKind::Refused).
    fn from(why: S) -> Self {
        Self { kind: StoreErrorKind::Refused, why: why.into() }
    }
}

/// The progress of a server with its shares in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostEpoch {
    /// The durable progress of the tree.
    pub at: TreePoint,
    /// The greatest attempt number that the server has seen in any tree.
    pub attempt: u64,
    /// Whether the server is set up.
    pub is_set_up: bool,
}
