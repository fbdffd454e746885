//! The positions of all blocks: in client memory, or mostly in the tree.

use alloc::vec::Vec;

use hashbrown::HashMap;
use rand_core::CryptoRng;

use super::{RotatingConfig, invalid};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::posmap::{LivePosMap, Mapping};
use crate::posmap::{MissingParent, NestedPosMap};
use crate::scheme::Move;

/// The position map. Secret.
pub(super) enum Positions {
    /// The whole map is on the client.
    Flat(LivePosMap),
    /// The last level of the map is on the client, all other levels are in the tree.
    Nested(NestedPosMap),
}

impl Positions {
    /// A position map whose part in client memory is `table`.
    pub(super) fn new(config: &RotatingConfig, table: LivePosMap) -> Result<Self, Error> {
        let tree = &config.raw.tree;
        match &config.recursion {
            None => Ok(Self::Flat(table)),
            Some(recursion) => {
                let leaf_level = tree.geometry.leaf_level();
                NestedPosMap::new(recursion, tree.block_bytes, leaf_level, table).map(Self::Nested)
            }
        }
    }

    /// The entries in client memory.
    pub(super) fn table(&self) -> &LivePosMap {
        match self {
            Self::Flat(map) => map,
            Self::Nested(map) => map.table(),
        }
    }

    /// The map, if it is flat. Only a flat map can tell, for every block, which copy is the latest.
    pub(super) fn flat(&self) -> Option<&LivePosMap> {
        match self {
            Self::Flat(map) => Some(map),
            Self::Nested(_) => None,
        }
    }

    /// The mapping of a block: `None` if it has none, [`MissingParent`] if its position is not on
    /// the client. Changes nothing.
    pub(super) fn get(
        &self,
        address: u64,
    ) -> Result<Result<Option<Mapping>, MissingParent>, Error> {
        match self {
            Self::Flat(map) => Ok(Ok(map.get(address))),
            Self::Nested(map) => map.get(address),
        }
    }

    /// Sets the mapping of a block whose position is on the client.
    pub(super) fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), Error> {
        match self {
            Self::Flat(map) => {
                map.set(address, mapping);
                Ok(())
            }
            Self::Nested(map) => map.set(address, mapping),
        }
    }

    /// Whether a block belongs to the position map.
    pub(super) fn is_position_map(&self, address: u64) -> bool {
        matches!(self, Self::Nested(map) if map.is_position_map(address))
    }

    /// Draws a fresh leaf for any block.
    pub(super) fn draw(&self, coins: &mut impl CryptoRng) -> Leaf {
        match self {
            Self::Flat(map) => map.draw(coins),
            Self::Nested(map) => map.draw(coins),
        }
    }

    /// Draws a move for each of `blocks`, in order; `None` is a dummy. A move starts where the
    /// latest earlier move of the same block ends, even if that is one of `planned`. Changes
    /// nothing.
    pub(super) fn draw_moves(
        &self,
        planned: &[Move],
        blocks: impl ExactSizeIterator<Item = Option<u64>>,
        coins: &mut impl CryptoRng,
    ) -> Result<Vec<Move>, Error> {
        let mut moved = planned.iter().map(|step| (step.address, step.to)).collect();
        // Reserve all capacity first: reallocation would leave copies of secrets.
        let mut moves = Vec::with_capacity(blocks.len());
        for address in blocks {
            moves.push(self.draw_move(address, &mut moved, coins)?);
        }
        Ok(moves)
    }

    /// Draws the next move, after the moves in `moved`.
    fn draw_move(
        &self,
        address: Option<u64>,
        moved: &mut HashMap<u64, Leaf>,
        coins: &mut impl CryptoRng,
    ) -> Result<Move, Error> {
        let Some(address) = address else {
            return Ok(Move::dummy(self.draw(coins)));
        };
        let from = match (moved.get(&address), self.get(address)?) {
            (Some(leaf), _) => *leaf,
            (None, Ok(Some(mapping))) => mapping.leaf,
            (None, Ok(None)) => self.draw(coins),
            (None, Err(_)) => return Err(invalid("the block's position is not on the client")),
        };
        let to = self.draw(coins);
        moved.insert(address, to);
        Ok(Move { address, from, to })
    }
}
