//! Images of client maps: their entries. Whether entries are leaves or counters is a parameter and
//! not part of the image.

use std::io::{self, Read, Write};

use super::ClientMap;

impl ClientMap {
    /// Writes an image: see [`Image`](crate::image::Image).
    pub(crate) fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Leaves(leaves) => leaves.write_image(to),
            Self::Counters(counters) => counters.write_image(to),
        }
    }

    /// Reads an image: see [`Image`](crate::image::Image).
    pub(crate) fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        match self {
            Self::Leaves(leaves) => leaves.read_image(from),
            Self::Counters(counters) => counters.read_image(from),
        }
    }
}
