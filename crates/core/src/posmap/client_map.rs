//! The positions of the blocks on the position map's last level, in client memory. The recursion of
//! Freecursive ORAM ends here.

#[cfg(feature = "std")]
mod image;

use rand_core::CryptoRng;

use super::compressed::{Count, exhausted};
use super::leaf_prf::{LeafPrf, Position};
use super::{FlatPosMap, Table};
use crate::error::Error;
use crate::geometry::Leaf;

/// The positions of all blocks on the position map's last level, one entry per block. Secret; wiped
/// when dropped.
pub(crate) enum ClientMap {
    /// Drawn leaves. An entry takes 4 bytes in trees below `2^32` leaves, otherwise 8.
    Leaves(FlatPosMap),
    /// The number of moves of each block, which is the root of trust of PMMAC. An entry takes 8
    /// bytes.
    Counters(Table),
}

impl ClientMap {
    /// The map of leaves, for ORAMs without PMMAC.
    pub(crate) fn of_leaves(entries: u64, leaf_level: u8) -> Result<Self, Error> {
        Ok(Self::Leaves(FlatPosMap::new(entries, leaf_level)?))
    }

    /// The map of counters, for ORAMs with PMMAC.
    pub(crate) fn of_counters(entries: u64) -> Result<Self, Error> {
        Ok(Self::Counters(Table::new(entries, u64::BITS as u8)?))
    }

    /// Bytes of client memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Leaves(leaves) => leaves.bytes(),
            Self::Counters(counters) => counters.bytes(),
        }
    }

    /// The position of the block `address`. `None` if its leaf has not been drawn yet.
    pub(crate) fn get(&self, entry: u64, address: u64, prf: &LeafPrf) -> Option<Position> {
        match self {
            Self::Leaves(leaves) => leaves.get(entry).map(drawn),
            Self::Counters(counters) => {
                let moves = counters.get(entry)?;
                Some(prf.position(address, Count::of_moves(moves)))
            }
        }
    }

    /// The position of the block `address`. Draws its leaf if it has none.
    pub(crate) fn look_up(
        &mut self,
        entry: u64,
        address: u64,
        prf: &LeafPrf,
        coins: &mut impl CryptoRng,
    ) -> Position {
        match self {
            Self::Leaves(leaves) => drawn(leaves.look_up(entry, coins)),
            Self::Counters(counters) => {
                let moves = counters
                    .get(entry)
                    .expect("the table has an entry for each block of the last level");
                prf.position(address, Count::of_moves(moves))
            }
        }
    }

    /// Step 1 of an access to the block `address`: returns its current and its new position. Fails
    /// if the block's counter is exhausted.
    pub(crate) fn look_up_and_remap(
        &mut self,
        entry: u64,
        address: u64,
        prf: &LeafPrf,
        coins: &mut impl CryptoRng,
    ) -> Result<(Position, Position), Error> {
        match self {
            Self::Leaves(leaves) => {
                let (from, to) = leaves.look_up_and_remap(entry, coins);
                Ok((drawn(from), drawn(to)))
            }
            Self::Counters(counters) => {
                let moves = counters
                    .get(entry)
                    .expect("the table has an entry for each block of the last level");
                let next = moves.checked_add(1).ok_or_else(exhausted)?;
                counters.set(entry, next);
                let [from, to] = [moves, next].map(Count::of_moves);
                Ok((prf.position(address, from), prf.position(address, to)))
            }
        }
    }
}

/// A position with the leaf `leaf`. Its count is meaningless, because the leaf was drawn.
fn drawn(leaf: Leaf) -> Position {
    Position { leaf, count: Count::NEVER_MOVED }
}
