//! The position map (PosMap): which path each block is mapped to.

mod flat;
mod live;
mod table;

pub use flat::FlatPosMap;
pub use live::{LivePosMap, Mapping};
pub(crate) use table::Table;

use rand_core::CryptoRng;

use crate::geometry::Leaf;

/// A fresh, uniformly random leaf.
#[inline]
pub(crate) fn draw_leaf(coins: &mut impl CryptoRng, leaf_level: u8) -> Leaf {
    Leaf(coins.next_u64() & ((1 << leaf_level) - 1))
}
