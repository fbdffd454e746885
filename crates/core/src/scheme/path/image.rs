//! Images of an unencrypted Path ORAM: the blocks on the client, then the tree.

use std::io::{self, Read, Write};

use super::{PathScheme, TagTree};
use crate::image::Image;

/// An image without the statistics of the stash, which start again at zero.
impl Image for PathScheme<TagTree> {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        self.client.write_image(to)?;
        self.io.write_image(to)
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.client.read_image(from)?;
        self.io.read_image(from)
    }

    fn check_image(&mut self) -> io::Result<()> {
        self.io.check_image()
    }
}
