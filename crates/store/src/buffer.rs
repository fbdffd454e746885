//! Memory for direct I/O. The memory starts at a page boundary, and each piece in it starts at a
//! sector boundary.

use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use crate::container::SECTOR_BYTES;

/// Rounds `bytes` up to whole sectors.
pub(crate) fn whole_sectors(bytes: usize) -> usize {
    bytes.next_multiple_of(SECTOR_BYTES as usize)
}

/// Zeroed, page-aligned memory. Untouched pages use no physical memory.
pub(crate) struct Buffer {
    memory: MmapMut,
}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        Ok(Self { memory: MmapMut::map_anon(bytes.max(1))? })
    }

    /// Grows the buffer to at least `bytes` bytes. The first `used` bytes keep their contents.
    pub(crate) fn grow(&mut self, bytes: usize, used: usize) -> io::Result<()> {
        if bytes > self.memory.len() {
            let mut larger = Self::new(bytes.saturating_add(bytes / 2))?;
            larger[..used].copy_from_slice(&self[..used]);
            *self = larger;
        }
        Ok(())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}
