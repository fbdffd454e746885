//! The position map (PosMap): the path to which each block is mapped.
//!
//! - [`FlatPosMap`] and [`LivePosMap`] are in client memory, with one leaf per entry. The second
//!   also records which blocks exist.
//! - `nested` is in the tree itself, and its blocks hold leaves: for rotating RAW ORAM. See
//!   [`Recursion`].
//! - `compressed`, `leaf_prf`, `plb` and `client_map` are the parts of Freecursive ORAM's map,
//!   whose blocks hold counters. [`FreecursiveOram`](crate::FreecursiveOram) combines them.

pub(crate) mod address_space;
pub(crate) mod client_map;
pub(crate) mod compressed;
mod flat;
pub(crate) mod leaf_prf;
mod live;
mod nested;
pub(crate) mod plb;
mod table;

pub use flat::FlatPosMap;
pub use live::{LivePosMap, Mapping};
pub use nested::Recursion;
#[cfg(fuzzing)]
pub use nested::fuzzing as nested_fuzzing;
pub(crate) use nested::{MissingParent, NestedPosMap, PlbBlock};
pub(crate) use table::Table;

use rand_core::CryptoRng;

use crate::geometry::Leaf;

/// A fresh, uniformly random leaf.
#[inline]
pub(crate) fn draw_leaf(coins: &mut (impl CryptoRng + ?Sized), leaf_level: u8) -> Leaf {
    Leaf(coins.next_u64() & ((1 << leaf_level) - 1))
}
