//! The trees of a position map that is on the servers (section 3.3; `docs/adr/0017`).
//!
//! Each tree is an S³ORAM. Tree 0 holds the data, and tree *i* + 1 holds the leaf of each block of
//! tree *i*. The client keeps the map of the last tree. The array
//! ([`durable`](crate::durable)) accesses all of them, the smallest first.
//!
//! A slot says which block it holds ([`metadata`](crate::server::Server::metadata)), in shares that
//! evictions move with the block. So a client sends nothing but matrices for an eviction, and never
//! writes metadata back: a block that is taken leaves a mark, which servers compute from the query.
//!
//! | module | what it holds |
//! |---|---|
//! | `levels` | the shapes of the trees |
//! | `map_block` | a block of the position map |
//! | `metadata` | what a slot says of its block |
//! | `mapped_tree` | one tree, for a client that is given the leaf of a block |

mod levels;
pub(crate) mod map_block;
pub(crate) mod mapped_tree;
pub(crate) mod metadata;

pub(crate) use levels::Sealed;
pub use levels::{Level, Levels, MapShape};
