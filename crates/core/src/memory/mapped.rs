//! Memory regions from anonymous mappings.

use core::ops::{Deref, DerefMut};

use memmap2::MmapMut;

use super::{NoMemory, Pages};

/// A region from an anonymous mapping. Pages never touched take no memory.
pub(super) struct Memory {
    bytes: MmapMut,
    pub(super) pages: Pages,
}

impl Memory {
    pub(super) fn new(bytes: usize) -> Result<Self, NoMemory> {
        let bytes = MmapMut::map_anon(bytes.max(1)).map_err(NoMemory::because)?;
        let pages = request_huge_pages(&bytes);
        Ok(Self { bytes, pages })
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

#[cfg(target_os = "linux")]
fn request_huge_pages(bytes: &MmapMut) -> Pages {
    match bytes.advise(memmap2::Advice::HugePage) {
        Ok(()) => Pages::Huge,
        Err(_) => Pages::Ordinary,
    }
}

#[cfg(not(target_os = "linux"))]
fn request_huge_pages(_: &MmapMut) -> Pages {
    Pages::Ordinary
}
