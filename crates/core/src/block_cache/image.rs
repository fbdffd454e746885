//! Images of caches: every line with the time of its last use, which decides the next victim.

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
                read_below(from, self.clock + 1, "a cache line used after the present")?;
            if read_below(from, 2, "a cache line that is neither empty nor full")? == 1 {
                let mut held = H::default();
                held.read_image(from)?;
                let may_be_here = self.set(held.address()).any(|other| other == line);
                if !may_be_here || self.find(held.address()).is_some() {
                    return Err(refuse("a block in a cache line of another set, or twice"));
                }
                self.lines[line.0].held = Some(held);
                from.read_exact(self.block_mut(line))?;
            }
        }
        Ok(())
    }
}
