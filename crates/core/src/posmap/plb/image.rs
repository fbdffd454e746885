//! Images of blocks in the PLB.

use std::io::{self, Read, Write};

use super::PlbEntry;
use crate::geometry::Leaf;
use crate::image::{Image, read_below, read_number, write_number};
use crate::posmap::compressed::{COUNTER_BITS_MAX, Count};
use crate::posmap::leaf_prf::Position;

/// An image of a block in the PLB. Reading accepts any leaf, because the cache does not know the
/// tree.
impl Image for PlbEntry {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        let Position { leaf, count: Count { group, individual } } = self.position;
        [self.address, leaf.0, group, individual.into()]
            .into_iter()
            .try_for_each(|number| write_number(to, number))
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.address = read_number(from)?;
        let leaf = Leaf(read_number(from)?);
        let group = read_number(from)?;
        let individual =
            read_below(from, 1 << COUNTER_BITS_MAX, "a counter past its maximum")? as u32;
        self.position = Position { leaf, count: Count { group, individual } };
        Ok(())
    }
}
