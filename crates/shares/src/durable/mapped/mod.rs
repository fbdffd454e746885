//! An array whose position map is in smaller trees on the same servers (section 3.3 of the paper; ADR 17).
//!
//! ```text
//! for each tree, from the last of the map to the data
//!   metadata of the path that the tree before has told ─► find ─► select ─► check ─► seal ─► write
//! and if the roots are full, for each tree:  epochs ─► go back ─► metadata of two paths ─► evict
//! ```
//!
//! # What the client keeps
//! Of each block of the last tree, to which leaf it is mapped and the number of its last write; of each block of the data, a bit that says whether it has contents. All else is in blocks of the map, each of which is sealed with its address, its tree and the number of its write: so an entry is
//! as authentic and as fresh as the block that it is in, and that follows from its own entry, up to what the client keeps.
//!
//! # Going back
//! A plan says what was drawn: of each tree the leaf to which the block goes, and the one that is shown if the block is nowhere. What a block of the map says is in no log. An access counts once all trees have it on all servers. Until then it is done again from its beginning to the first tree that lacks it: the data, which are written last, unless a disk has lied about a sync,
//! at the same point of each tree: servers that are a write further answer as if they were not, so what they answer is the same, and so is what they are sent. Queries, too, have the same shares
//! each time, because servers add them to the marks of what was taken. They are drawn from a seed that follows from the salt of the plan, and from what is asked: if a server lies the second time, and the client asks for another slot, no share of it is one of the first query.
//!
//! All trees count accesses alike, and are evicted after the same access, when all of them have it.

mod access;
mod array;
mod evict;
mod known;
mod labels;
mod look;
mod salvage;
mod state;
mod walk;

pub(super) use array::MappedArray;
pub(super) use known::{Known, map_bytes};
pub(super) use labels::Labels;
pub(super) use state::{MappedRestore, size};
pub(super) use walk::Opener;
