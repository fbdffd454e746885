//! What the client sends to each server, and servers to each other. To every server goes one of the same shape; what differs is the
//! shares.

use oblivio_core::Leaf;

use crate::sharing::Share;

/// Fills a leaf before anything else is done (Algorithm 3). All leaves are filled, also those to which no block belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load<E> {
    /// Which.
    pub leaf: Leaf,
    /// Of its slots, one after the other.
    pub bucket: Share<E>,
}

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
    /// The level of the buckets that are made in the round: from 1 on.
    pub level: u8,
    /// For each of them, the share of the dealer's share.
    pub shares: Vec<Share<E>>,
}
