//! The entries as they lie in memory.

use std::io::{self, Read, Write};

use super::Table;

impl Table {
    /// For an [`Image`](crate::image::Image).
    pub(crate) fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.bytes.bytes())
    }

    /// For an [`Image`](crate::image::Image). Entries may have any value then.
    pub(crate) fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        from.read_exact(self.bytes.bytes_mut())
    }
}
