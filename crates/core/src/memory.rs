//! Large memory regions, and allocation that returns an error if memory is exhausted.

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

/// The smallest page size of the supported systems, in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Whether all bytes are zero. Branches only once per page, so the check runs at memory speed.
pub(crate) fn is_clear(bytes: &[u8]) -> bool {
    bytes.chunks(PAGE_BYTES).all(|page| page.iter().fold(0, |seen, byte| seen | byte) == 0)
}

/// Overwrites all of `bytes` with zeros. Pages of zeros are read and not written, because the
/// system may never have backed them with memory.
pub(crate) fn wipe_pages(bytes: &mut [u8]) {
    bytes.chunks_mut(PAGE_BYTES).filter(|page| !is_clear(page)).for_each(|page| page.fill(0));
    // Keeps the compiler from dropping the stores, although nothing reads the zeros.
    optimization_barrier(&*bytes);
}

/// Loads one byte from every cache line of `bytes`. An observer of the loads then sees every line
/// loaded, whichever bytes the caller uses.
#[inline]
pub(crate) fn touch(bytes: &[u8]) {
    for first in bytes.iter().step_by(CACHE_LINE_BYTES) {
        core::hint::black_box(*first);
    }
    // The last line, if `bytes` does not start at a line boundary.
    core::hint::black_box(*bytes.last().unwrap_or(&0));
}

/// The kind of pages that the system provided for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The system accepted the request for transparent huge pages.
    Huge,
    /// The system provided ordinary pages: random accesses will miss the translation buffers often.
    Ordinary,
}

/// The error if the system has no memory for a region.
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

/// A large zeroed region, with huge pages if the system provides them. With the feature `mmap`, the
/// region is a mapping: pages never touched take no memory, so creating a region takes no time,
/// whatever its size.
pub struct Region {
    memory: backing::Memory,
}

impl Region {
    /// A region of `bytes` zeros.
    ///
    /// # Errors
    /// `NoMemory`, with the system's message if it has one, also if `bytes` exceeds the address
    /// space.
    pub fn new(bytes: u64) -> Result<Self, NoMemory> {
        let length = usize::try_from(bytes).map_err(NoMemory::because)?;
        Ok(Self { memory: backing::Memory::new(length)? })
    }

    /// The kind of pages that the region has.
    pub fn pages(&self) -> Pages {
        self.memory.pages
    }

    /// The whole region.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory
    }

    /// The whole region, writable.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    /// Prefetches the start of a range into the processor's cache. This is a hint, and changes no
    /// result.
    ///
    /// # Panics
    /// If the range is not within the region.
    #[inline]
    pub fn prefetch(&self, range: Range<usize>) {
        crate::hint::prefetch(&self.memory[range]);
    }

    /// Overwrites the region with zeros.
    pub(crate) fn wipe(&mut self) {
        wipe_pages(&mut self.memory);
    }
}

/// `vec![0; count]`, but `None` instead of an abort if the system has no memory.
///
/// First checks that the memory can be reserved, without touching it. So the vector can still use
/// pages that the system zeroes lazily.
pub(crate) fn zeros<T: Copy + Default>(count: usize) -> Option<Vec<T>> {
    Vec::<T>::new().try_reserve_exact(count).ok()?;
    Some(vec![T::default(); count])
}
