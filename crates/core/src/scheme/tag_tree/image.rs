//! Images of tag trees: the bytes of all slots as they are in memory, including the gaps between
//! subtrees.

use std::io::{self, Read, Write};

use super::{DUMMY, Slot, TagTree};
use crate::geometry::{BucketId, Leaf};
use crate::image::{Image, refuse};

impl Image for TagTree {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.slots.bytes())
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        from.read_exact(self.slots.bytes_mut())
    }

    fn check_image(&mut self) -> io::Result<()> {
        (0..self.geometry.leaf_level() + 1).try_for_each(|level| self.check_level(level))
    }
}

impl TagTree {
    /// Fails if a block on `level` cannot be there.
    fn check_level(&self, level: u8) -> io::Result<()> {
        let is_kept_on_client = level < self.first_level;
        self.layout.levels[usize::from(level)].indices().try_for_each(|index| {
            let slots = self.slots_of(Leaf(index), usize::from(level));
            if is_kept_on_client && slots.iter().any(|slot| *slot != DUMMY.to_le_bytes()) {
                return Err(refuse("a block in the tree on a level that is kept on the client"));
            }
            let bucket = BucketId::new(level, index);
            slots.iter().try_for_each(|slot| self.check_slot(*slot, bucket))
        })
    }

    fn check_slot(&self, slot: Slot, bucket: BucketId) -> io::Result<()> {
        match self.unpack(slot) {
            Some((address, _)) if address >= self.capacity => {
                Err(refuse("a block in the tree past its capacity"))
            }
            Some((_, leaf)) if !bucket.is_on_path(leaf) => {
                Err(refuse("a block in the tree off its path"))
            }
            _ => Ok(()),
        }
    }
}
