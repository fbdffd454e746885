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
//! It is meant to lie under a last-level cache, whose changed victims are the writes:
//! [`CachedOram::at_access`](crate::CachedOram::at_access).
//!
//! # Each block is in one place
//! A copy in the main tree would be stale as soon as its block is in the small one, and a victim that
//! is put into the main stash without a data access would be there twice. So an insertion takes the
//! block out of the main ORAM, at one data access; and the way back costs position-map accesses only.
//!
//! # What storage sees
//! Two trees, which it can tell apart. So accesses follow a fixed pattern, whatever is needed: so many
//! to the small tree, and then one to the main tree ([`RhoConfig::small_per_main`], 2 in IR-ORAM).
//! That is a *round*. Where an access of a kind is not needed when its turn comes, a dummy is made: a
//! random path is read and written back, as in an access that finds nothing. A batch ends with a whole
//! round.
//!
//! In both trees leaves are uniform, independent and never used before. All that storage learns is
//! **how many rounds a batch takes**. That depends on the array, and so on which blocks were written
//! before, on which requests write, and on the position map of the main ORAM. Whoever must hide that
//! too makes rounds at a fixed rate: [`RhoOram::idle_round`] is one that nobody asked for.

mod config;
mod oram;
mod tally;
mod trees;

pub use config::RhoConfig;
pub use oram::{FlatRho, FreecursiveRho, RhoOram};
pub use tally::RhoTally;
pub use trees::TwoTrees;
