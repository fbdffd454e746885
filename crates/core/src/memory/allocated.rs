//! Memory regions from the allocator, for systems without mappings.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use super::{NoMemory, Pages, zeros};

/// A region from the allocator, which decides whether untouched pages take memory.
pub(super) struct Memory {
    bytes: Vec<u8>,
    pub(super) pages: Pages,
}

impl Memory {
    pub(super) fn new(bytes: usize) -> Result<Self, NoMemory> {
        let bytes = zeros(bytes.max(1)).ok_or_else(|| NoMemory::because("out of memory"))?;
        Ok(Self { bytes, pages: Pages::Ordinary })
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Memory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
