//! The PosMap Lookaside Buffer (PLB): position-map blocks on the client (Freecursive ORAM).
//!
//! It is *exclusive*: a block in it is not in the ORAM. It has to be, because a block in the ORAM is
//! moved by each access to it, and this one is used without any.

pub(super) use crate::block_cache::LineId;

use crate::block_cache::{BlockCache, Named};
use crate::geometry::Leaf;

pub(super) type Plb = BlockCache<Held>;

/// A block in the PLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) address: u64,
    /// Where it is mapped to: no path that storage has seen for it.
    pub(super) leaf: Leaf,
}

impl Named for Held {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Plb {
    /// Maps a block, if it is here.
    pub(super) fn remap(&mut self, address: u64, leaf: Leaf) {
        let held = self.find(address).and_then(|line| self.held_mut(line));
        if let Some(held) = held {
            held.leaf = leaf;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_remapped_where_it_is() {
        let mut plb = Plb::new(2, 2, 16).unwrap();
        let line = plb.line_for(3);
        plb.fill(line, Held { address: 3, leaf: Leaf(3) });
        plb.remap(3, Leaf(9));
        plb.remap(4, Leaf(9));
        let held: Vec<_> = plb.blocks().map(|(_, held)| held).collect();
        assert_eq!(held, [Held { address: 3, leaf: Leaf(9) }]);
    }
}
