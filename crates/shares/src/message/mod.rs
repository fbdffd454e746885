//! What the client sends to each server, and servers to each other. To every server goes one of the same shape; what differs is the
//! shares. How it is said in bytes is in [`bytes`].

pub mod bytes;

use oblivio_core::{BucketId, Leaf, StoreErrorKind};

use crate::sharing::{Parties, Share};
use crate::tree::Tree;

/// Asks for one slot of a path, without saying which (Subroutine 1). The answer is the share of a block, of degree 2*t*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select<E> {
    /// Whose path it is. Public once it is asked for.
    pub leaf: Leaf,
    /// Of a vector with an element for each slot of the path, the root's first: one for the slot that is wanted, zero for the others.
    pub query: Share<E>,
}

/// Puts a block into the root (step 10 of Protocol 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootWrite<E> {
    /// The next one since the last eviction, whatever the block.
    pub slot: usize,
    /// Of the block.
    pub block: Share<E>,
}

/// Evicts a path (Subroutine 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evict<E> {
    /// Counted from 0. It says which path.
    pub number: u64,
    /// Each time that it is begun, a greater one than ever before: what was dealt in one attempt is nothing in another.
    pub attempt: u64,
    /// For each level below the root, of the matrix that says which slot of the source and of the destination goes to which slot of
    /// the destination; and one more, for the leaf beside the path. Each has a row for each slot of both, and a column for each slot.
    pub matrices: Vec<Share<E>>,
}

/// What a dealer sends to one server in one round of an eviction (step 3 of Protocol 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt<E> {
    /// Of the eviction.
    pub number: u64,
    /// Of the attempt.
    pub attempt: u64,
    /// Which part of every block: 0, if they are not divided.
    pub tile: u32,
    /// The level of the buckets that are made in the round: from 1 on.
    pub level: u8,
    /// For each of them, the share of the dealer's share.
    pub shares: Vec<Share<E>>,
}

/// How far a tree is, as the client sees it: what it asks is meant for this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Point {
    /// Evictions that are over.
    pub evictions: u64,
    /// Blocks in the root since the last of them.
    pub written: usize,
}

/// What a server is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Which of the servers it is, from 1.
    pub number: u8,
    /// How many there are, and how many may collude.
    pub parties: Parties,
    /// The tree.
    pub tree: Tree,
    /// Bytes of a slot: of a block as it is shared.
    pub block_bytes: usize,
    /// So many of them, at the beginning, say whose block it is, and the last of these is its mark: none, if the client knows.
    pub metadata_bytes: usize,
    /// By which each server knows the others, in the order of their numbers.
    pub keys: Vec<ServerKey>,
}

impl Setup {
    /// Bytes of a slot as it is fetched and put: with its mark, if slots say whose they are.
    pub fn fetched_bytes(&self) -> usize {
        self.block_bytes + usize::from(self.metadata_bytes > 0)
    }
}

/// The public key of a server.
pub type ServerKey = [u8; 32];

/// Slots of a bucket, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Of the tree.
    pub bucket: BucketId,
    /// Of the bucket.
    pub first: usize,
    /// How many: one at least.
    pub count: usize,
}

/// Bytes of slots that are sent at once, unless one has more.
const SLOTS_BYTES_MAX: usize = 4 << 20;

impl Slots {
    /// How many of so many bytes are sent at once, at most.
    pub fn at_once(slot_bytes: usize) -> usize {
        (SLOTS_BYTES_MAX / slot_bytes).max(1)
    }

    /// The first `all` slots of a bucket, so many at once.
    pub(crate) fn runs(bucket: BucketId, all: usize, at_once: usize) -> impl Iterator<Item = Self> {
        (0..all).step_by(at_once).map(move |first| {
            let count = at_once.min(all - first);
            Self { bucket, first, count }
        })
    }
}

/// What the client asks of a server that keeps its shares in files. Bytes are elements of GF(2^8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Be this server of a new tree. Nothing, if it is already.
    Setup(Setup),
    /// How far it is.
    Epoch,
    /// The share of a slot of a path, which is not said.
    Select {
        /// Blocks that came into the root later are taken for zeros.
        at: Point,
        /// Which path, and the query.
        select: Select<u8>,
    },
    /// Puts a block into the slot of the root that is next at this point; also if that has just been done.
    Write {
        /// The slot is the number of blocks in the root.
        at: Point,
        /// Of the block.
        block: Share<u8>,
    },
    /// Evicts a path, with all other servers.
    Evict {
        /// The matrices.
        evict: Evict<u8>,
        /// Whose shares all take: 2*t* + 1 servers.
        dealers: Vec<u8>,
    },
    /// Goes back to so many evictions, if the last one is over here and not everywhere.
    GoBack {
        /// What there were before it.
        evictions: u64,
    },
    /// What the slots of a path say of themselves, as it is shared, the root's first.
    Metadata {
        /// Blocks that came into the root later are taken for zeros, and what was taken later for there.
        at: Point,
        /// Whose path it is. Public once it is asked for.
        leaf: Leaf,
    },
    /// The shares of slots, as they are: to make those of another server from them, or to check them.
    Fetch {
        /// It has to be here.
        at: Point,
        /// Which: as many as [`Slots::at_once`] says, at most.
        slots: Slots,
    },
    /// Puts shares into slots of a tree of which nothing was used.
    Put {
        /// What the tree is to be when all is there.
        at: Point,
        /// Which.
        slots: Slots,
        /// Theirs, one after the other.
        share: Share<u8>,
    },
    /// Make links to all other servers, if there are none.
    Meet,
    /// All is there: it is this far.
    Adopt {
        /// As others are.
        at: Point,
    },
}

/// A server keeps as many trees for a volume at most: that of the data has number 0, and each further one says where the blocks of the one before are mapped to.
pub const TREES_MAX: u8 = 8;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done, and durable.
    Done,
    /// To [`Request::Epoch`].
    Epoch(HostEpoch),
    /// The share that was asked for, or several, one after the other.
    Share(Vec<u8>),
    /// It is not done, and nothing has changed.
    Refused(Refusal),
}

/// Why a server has not done something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the client acts by: [`Unreachable`](StoreErrorKind::Unreachable) if a lost link is the
    /// cause, to another server or to the client, or a server that was started again; never
    /// [`Fenced`](StoreErrorKind::Fenced).
    pub kind: StoreErrorKind,
    /// For people.
    pub why: String,
}

impl<S: Into<String>> From<S> for Refusal {
    /// What was asked is not what can be done.
    fn from(why: S) -> Self {
        Self { kind: StoreErrorKind::Refused, why: why.into() }
    }
}

/// How far a server is that keeps its shares in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostEpoch {
    /// What is durable there.
    pub at: Point,
    /// The greatest number of an attempt that it has seen.
    pub attempt: u64,
    /// Whether it is a server of a tree at all.
    pub is_set_up: bool,
}
