//! Memory that may not be there, and the pages it comes in.

#[cfg_attr(feature = "mmap", path = "memory/mapped.rs")]
#[cfg_attr(not(feature = "mmap"), path = "memory/allocated.rs")]
mod backing;

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use zeroize::optimization_barrier;

use crate::hint::CACHE_LINE_BYTES;

/// The smallest page of the systems we know.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Whether there are only zeros. Page by page, and without a branch within: as fast as memory.
pub(crate) fn is_clear(bytes: &[u8]) -> bool {
    bytes.chunks(PAGE_BYTES).all(|page| page.iter().fold(0, |seen, byte| seen | byte) == 0)
}

/// Leaves nothing but zeros. Pages that hold nothing are read and not written: the system never gave memory for most of a
/// large region.
pub(crate) fn wipe_pages(bytes: &mut [u8]) {
    bytes.chunks_mut(PAGE_BYTES).filter(|page| !is_clear(page)).for_each(|page| page.fill(0));
    // The zeros may not be read again, and have to be written all the same.
    optimization_barrier(&*bytes);
}

/// Loads a byte of every cache line of `bytes`: whoever watches sees all of it being read.
#[inline]
pub(crate) fn touch(bytes: &[u8]) {
    for first in bytes.iter().step_by(CACHE_LINE_BYTES) {
        core::hint::black_box(*first);
    }
    // They need not begin where a line does.
    core::hint::black_box(*bytes.last().unwrap_or(&0));
}

/// What pages the system gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The system accepted the request for transparent huge pages.
    Huge,
    /// Ordinary pages: random accesses will miss the translation buffers often.
    Ordinary,
}

/// There is no memory for a region.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct NoMemory {
    cause: String,
}

impl NoMemory {
    fn because(cause: impl fmt::Display) -> Self {
        Self { cause: cause.to_string() }
    }
}

/// A large zeroed region with huge pages where the system gives them. Pages never touched take no
/// memory, so a new region of any size is made at once.
pub struct Region {
    memory: backing::Memory,
}

impl Region {
    /// `bytes` zeros.
    ///
    /// # Errors
    /// What the system says when it has none.
    pub fn new(bytes: u64) -> Result<Self, NoMemory> {
        let length = usize::try_from(bytes).map_err(NoMemory::because)?;
        Ok(Self { memory: backing::Memory::new(length)? })
    }

    /// What pages it is made of.
    pub fn pages(&self) -> Pages {
        self.memory.pages
    }

    /// All of it.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory
    }

    /// All of it.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// Asks the processor to bring the start of a range into its cache. A hint: it changes no result.
    ///
    /// # Panics
    /// When the range is not within the region.
    #[inline]
    pub fn prefetch(&self, range: Range<usize>) {
        crate::hint::prefetch(&self.memory[range]);
    }

    /// Leaves nothing but zeros.
    pub(crate) fn wipe(&mut self) {
        wipe_pages(&mut self.memory);
    }
}

/// `vec![0; count]`, but `None` where that would abort the process.
///
/// The probe reserves without touching, so that the lazily zeroed pages of the system still serve
/// the vector itself.
pub(crate) fn zeros<T: Copy + Default>(count: usize) -> Option<Vec<T>> {
    Vec::<T>::new().try_reserve_exact(count).ok()?;
    Some(vec![T::default(); count])
}
