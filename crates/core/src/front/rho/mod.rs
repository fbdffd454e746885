//! ρ, the relaxed hierarchical ORAM (Nagarajan et al., ASPLOS'19), as IR-ORAM compares itself to it
//! (section V): a small tree in front of the main one.
//!
//! Blocks that were written lately are likely to be wanted again. They lie in a small tree, whose
//! paths are short, and whose position map is on the client: an *array* of tags, a block's address and
//! its leaf in the small tree. So an access there costs one short path, and none for the position map.
//!
//! | request | array | what is needed |
//! |---|---|---|
//! | any | hit | one access to the small tree, which remaps the block there |
//! | read | miss | a request to the main ORAM, where the block stays |
//! | write, update | miss | the block is *inserted*: taken out of the main ORAM, put into the stash of the small tree; the victim of the array is taken out of the small tree, and put into the main stash with a fresh leaf |
//!
//! # Each block is in one place
//! A copy in the main tree would be stale as soon as its block is in the small one, and a victim that
//! is put into the main stash without a data access would be there twice. So an insertion takes the
//! block out of the main ORAM, at one data access; and the way back costs position-map accesses only.
//!
//! # Under a cache
//! It is meant to lie under a last-level cache, and as its paper has it, under one that remaps with a
//! [delay](crate::RemapPolicy::Delayed): what the cache has is out of the ORAM already, so it costs no
//! data access to insert it.
//!
//! | [`Front`](crate::Front) | array | what is needed |
//! |---|---|---|
//! | `take`: the cache misses | hit | one access to the small tree, out of which the block is taken; its place in the array is free |
//! | `take` | miss | the block is taken out of the main ORAM |
//! | `put_back`: the cache has a victim | | the block is put into the stash of the small tree; the victim of the array goes the way of any, and where there is none, a small access finds nothing |
//!
//! The paper has no other place than the small tree for what a cache gives back. That goes for a
//! line that has not changed, too: it is nowhere else, so it must go somewhere, and into the main stash it
//! would need the position map at once, at up to as many main accesses as a victim of the array, which may
//! never come to that.
//!
//! Under a cache that remaps at accesses ([`CachedOram::at_access`](crate::CachedOram::at_access)) it is
//! the changed victims that are written, and inserted; what has not changed is in the ORAM still.
//!
//! # What storage sees
//! Two trees, which it can tell apart. So accesses follow a fixed pattern, whatever is needed: so many
//! to the small tree, and then one to the main tree ([`RhoConfig::small_per_main`], 2 in IR-ORAM).
//! That is a *round*. Where an access of a kind is not needed when its turn comes, a dummy is made: a
//! random path is read and written back, as in an access that finds nothing. A batch ends with a whole
//! round. Over RAW ORAM each tree evicts after so many of its accesses, dummies among them.
//!
//! In both trees leaves are uniform, independent and never used before. All that storage learns is
//! **how many rounds a batch takes**. That depends on the array, and so on which blocks were written
//! before, on which requests write, and on the position map of the main ORAM. Of `take` and `put_back`
//! it depends on the addresses alone, and `put_back` shows that it is one. Whoever must hide that
//! too makes rounds at a fixed rate: [`RhoOram::idle_round`] is one that nobody asked for.

mod check;
mod config;
mod front;
mod oram;
mod tally;
mod trees;

pub use config::RhoConfig;
pub use oram::{FlatRho, FreecursiveRho, RhoOram};
pub use tally::RhoTally;
pub use trees::TwoTrees;
