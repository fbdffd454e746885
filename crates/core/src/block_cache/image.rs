//! Images of caches. An image has each line and the time of its last use, because LRU chooses
//! victims by these times.

use std::io::{self, Read, Write};

use super::{BlockCache, CacheTag, LineId};
use crate::image::{Image, read_below, read_count, refuse, write_number};

impl<T: CacheTag + Image + Default> Image for BlockCache<T> {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        write_number(to, self.clock)?;
        for (number, line) in self.lines.iter().enumerate() {
            write_number(to, line.last_use)?;
            write_number(to, line.tag.is_some().into())?;
            if let Some(tag) = &line.tag {
                tag.write_image(to)?;
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
                let mut tag = T::default();
                tag.read_image(from)?;
                let may_be_here = self.set(tag.address()).any(|other| other == line);
                if !may_be_here || self.find(tag.address()).is_some() {
                    return Err(refuse("a block in a cache line of another set, or twice"));
                }
                self.lines[line.0].tag = Some(tag);
                from.read_exact(self.block_mut(line))?;
            }
        }
        Ok(())
    }
}
