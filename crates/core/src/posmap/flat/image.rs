//! Images of flat maps. Capacity and leaf level are parameters and not part of the image.

use std::io::{self, Read, Write};

use super::FlatPosMap;
use crate::image::refuse;

impl FlatPosMap {
    /// Writes an image: see [`Image`](crate::image::Image).
    pub(crate) fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        self.table.write_image(to)
    }

    /// Reads an image: see [`Image`](crate::image::Image).
    pub(crate) fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.table.read_image(from)?;
        let mut entries = (0..).map_while(|address| self.table.get(address));
        let leaf_level = self.leaf_level;
        let is_outside =
            |entry: u64| entry.checked_sub(1).is_some_and(|leaf| leaf >> leaf_level != 0);
        match entries.any(is_outside) {
            true => Err(refuse("a leaf outside the tree")),
            false => Ok(()),
        }
    }
}
