//! Images of tables. An image holds the same bytes as the table in memory.

use std::io::{self, Read, Write};

use super::Table;

impl Table {
    /// Writes an image: see [`Image`](crate::image::Image).
    pub(crate) fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.bytes.bytes())
    }

    /// Reads an image: see [`Image`](crate::image::Image). The entries are not validated.
    pub(crate) fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        from.read_exact(self.bytes.bytes_mut())
    }
}
