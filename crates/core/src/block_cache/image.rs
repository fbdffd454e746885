//! The lines of a cache, empty ones too: when each was last used decides which goes first.

use std::io::{self, Read, Write};

use super::{BlockCache, LineId, Named};
use crate::image::{Image, read_below, read_count, refuse, write_number};

impl<H: Named + Image + Default> Image for BlockCache<H> {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        write_number(to, self.clock)?;
        for (number, line) in self.lines.iter().enumerate() {
            write_number(to, line.last_use)?;
            write_number(to, line.held.is_some().into())?;
            if let Some(held) = &line.held {
                held.write_image(to)?;
                to.write_all(self.block(LineId(number)))?;
            }
        }
        Ok(())
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.clock = read_count(from)?;
        for line in (0..self.lines.len()).map(LineId) {
            self.lines[line.0].last_use =
                read_below(from, self.clock + 1, "a use of a cache that is to come")?;
            if read_below(from, 2, "a line of a cache that is neither empty nor full")? == 1 {
                let mut held = H::default();
                held.read_image(from)?;
                let may_be_here = self.set(held.address()).any(|other| other == line);
                if !may_be_here || self.find(held.address()).is_some() {
                    return Err(refuse("a block in a line of a cache that is not its own"));
                }
                self.lines[line.0].held = Some(held);
                from.read_exact(self.block_mut(line))?;
            }
        }
        Ok(())
    }
}
