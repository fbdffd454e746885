//! The PosMap Lookaside Buffer (PLB): position-map blocks on the client (Freecursive ORAM).
//!
//! The PLB is *exclusive*: a block in it is not in the ORAM. A block in the ORAM would be moved by
//! each access to it, but a block in the PLB is used without accesses.

#[cfg(feature = "std")]
mod image;

pub(crate) use crate::block_cache::LineId;

use super::leaf_prf::Position;
use crate::block_cache::{BlockCache, CacheTag};

pub(crate) type Plb = BlockCache<PlbEntry>;

/// A block in the PLB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlbEntry {
    pub(crate) address: u64,
    /// The position to which the block is mapped. Storage has not yet seen an access to the block
    /// on this path.
    pub(crate) position: Position,
}

impl CacheTag for PlbEntry {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Plb {
    /// Sets the position of the block of a line, if the line holds one.
    pub(crate) fn remap(&mut self, line: LineId, position: Position) {
        if let Some(entry) = self.tag_mut(line) {
            entry.position = position;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Leaf;
    use crate::posmap::compressed::Count;

    fn at(leaf: u64) -> Position {
        Position { leaf: Leaf(leaf), count: Count::of_moves(leaf) }
    }

    #[test]
    fn a_block_is_remapped_in_place() {
        let mut plb = Plb::new(2, 2, 16).unwrap();
        let line = plb.line_for(3);
        plb.fill(line, PlbEntry { address: 3, position: at(3) });
        plb.remap(line, at(9));
        let entry: Vec<_> = plb.blocks().map(|(_, entry)| entry).collect();
        assert_eq!(entry, [PlbEntry { address: 3, position: at(9) }]);
    }
}
