//! Position map in trees on the servers (section 3.3; ADR 17 in `docs/adr/0017`).
//!
//! Each tree is an S³ORAM. Tree 0 holds the data, and tree *i* + 1 holds the leaves of the blocks
//! of tree *i*. The client keeps the leaves of the last tree's blocks. The array
//! ([`durable`](crate::durable)) accesses all trees, the smallest first.
//!
//! The [metadata](crate::server::Server::metadata) of a slot names its block. Servers hold metadata
//! as shares, and evictions move it with the block. So the client sends only matrices for an
//! eviction, and never writes metadata back. When a block is taken, servers mark its slot; they
//! compute the mark from the query.
//!
//! | module | contents |
//! |---|---|
//! | `levels` | the shapes of the trees |
//! | `map_block` | a block of the position map |
//! | `metadata` | the metadata of a slot |
//! | `mapped_tree` | one tree, for a client that knows the leaves |

mod levels;
pub(crate) mod map_block;
pub(crate) mod mapped_tree;
pub(crate) mod metadata;

pub(crate) use levels::Sealed;
pub use levels::{Level, Levels, MapShape};
