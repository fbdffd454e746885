//! ρ, the relaxed hierarchical ORAM (Nagarajan et al., ASPLOS'19), in the form that IR-ORAM
//! compares itself to (section V): a small tree in front of the main one.
//!
//! Blocks that were written recently are likely to be requested again. They are kept in a small
//! tree with short paths. Its position map is on the client: an *array* of tags, each with a
//! block's address and its leaf in the small tree. So an access there costs one short path and no
//! position-map access.
//!
//! | request | array | accesses |
//! |---|---|---|
//! | any | hit | one access to the small tree, which remaps the block there |
//! | read | miss | a request to the main ORAM, where the block stays |
//! | write, update | miss | the block is *inserted* (see below) |
//!
//! An insertion takes the block out of the main ORAM and puts it into the stash of the small tree.
//! The victim of the array is taken out of the small tree and put into the main stash with a fresh
//! leaf.
//!
//! # Each block is in one place
//! A copy in the main tree would be stale after a write to the block in the small one. A victim put
//! into the main stash without a data access would then exist twice. So an insertion takes the
//! block out of the main ORAM, at the cost of one data access, and the way back costs only
//! position-map accesses.
//!
//! # Under a cache
//! The paper puts ρ under a last-level cache that remaps with a
//! [delay](crate::RemapPolicy::Delayed). A block in that cache is already outside of the ORAM, so
//! inserting it costs no data access.
//!
//! | [`Front`](crate::Front) | array | accesses |
//! |---|---|---|
//! | `take`: a miss of the cache | hit | one to the small tree, which frees the line of the array |
//! | `take` | miss | the block is taken out of the main ORAM |
//! | `put_back`: a victim of the cache | | one to the small tree |
//!
//! `put_back` puts the block into the stash of the small tree. Its small access takes out the
//! victim of the array, which continues as after an insertion, or is a dummy if there is no victim.
//!
//! In the paper, every victim of the cache goes to the small tree, including clean ones, which
//! exist nowhere else. Putting such a victim into the main stash would at once cost the same
//! position-map accesses in the main ORAM as a victim of the array. From the small tree, the block
//! can be requested again before the array evicts it.
//!
//! Under a cache that remaps at accesses ([`CachedOram::at_access`](crate::CachedOram::at_access)),
//! dirty victims are written and thereby inserted; clean blocks are still in the ORAM.
//!
//! # What storage sees
//! Storage sees two trees, and can distinguish them. So accesses follow a fixed pattern:
//! [`RhoConfig::small_per_main`] (2 in IR-ORAM) accesses to the small tree, then one to the main
//! tree. This is a *round*. If the next access of the pattern is not needed, it is a dummy: a
//! random path is read and written back, as in an access that finds nothing. A batch ends with a
//! complete round. Over RAW ORAM, each tree evicts after a fixed number of its accesses, including
//! dummies.
//!
//! In both trees, leaves are uniform, independent and never used before. Storage learns only **the
//! number of rounds in a batch**. It depends on the array, and so on earlier writes, on which
//! requests write, and on the position map of the main ORAM. For `take` and `put_back` it depends
//! only on the addresses, but storage can recognize a `put_back`. To hide this too, make rounds at
//! a fixed rate: [`RhoOram::idle_round`] makes a round without a request.

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
