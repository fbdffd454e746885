//! A table of numbers in client memory.

#[cfg(feature = "std")]
mod image;

use alloc::format;
use alloc::string::ToString;
use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::memory::{PAGE_BYTES, Region, is_clear};

/// A table of numbers in client memory, little-endian, each in 4 bytes if all values fit, otherwise
/// in 8. A fresh table consists of zeros, which take no memory with the feature `mmap`. Secret;
/// wiped when dropped.
pub(crate) struct Table {
    bytes: Region,
    width: Width,
}

/// The width of an entry: 4 or 8 bytes.
#[derive(Clone, Copy)]
enum Width {
    Narrow,
    Wide,
}

impl Table {
    /// A table of `entries` zeros, wide enough for values of `value_bits` bits.
    pub(crate) fn new(entries: u64, value_bits: u8) -> Result<Self, Error> {
        let (width, entry_bytes) = if u32::from(value_bits) <= u32::BITS {
            (Width::Narrow, size_of::<u32>())
        } else {
            (Width::Wide, size_of::<u64>())
        };
        let bytes = match entries.checked_mul(entry_bytes as u64).map(Region::new) {
            Some(Ok(bytes)) => bytes,
            Some(Err(cause)) => return Err(no_memory(entries, &cause.to_string())),
            None => return Err(no_memory(entries, "more than 2^64 bytes")),
        };
        Ok(Self { bytes, width })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.bytes().len()
    }

    /// Entry `i`, if it exists.
    #[inline]
    pub(crate) fn get(&self, i: u64) -> Option<u64> {
        let (bytes, i) = (self.bytes.bytes(), i as usize);
        match self.width {
            Width::Narrow => {
                bytes.as_chunks().0.get(i).map(|entry| u64::from(u32::from_le_bytes(*entry)))
            }
            Width::Wide => bytes.as_chunks().0.get(i).map(|entry| u64::from_le_bytes(*entry)),
        }
    }

    /// Sets entry `i` to `value`.
    ///
    /// # Panics
    /// If the entry does not exist.
    #[inline]
    pub(crate) fn set(&mut self, i: u64, value: u64) {
        let (bytes, i) = (self.bytes.bytes_mut(), i as usize);
        match self.width {
            Width::Narrow => bytes.as_chunks_mut().0[i] = (value as u32).to_le_bytes(),
            Width::Wide => bytes.as_chunks_mut().0[i] = value.to_le_bytes(),
        }
    }

    /// Zeroes a range of entries. Pages of zeros are read and not written, so they still take no
    /// memory.
    pub(crate) fn clear(&mut self, range: Range<u64>) {
        let range = self.bytes_of(range);
        for page in self.bytes.bytes_mut()[range].chunks_mut(PAGE_BYTES) {
            if !is_clear(page) {
                page.fill(0);
            }
        }
    }

    /// Whether all entries of a range are zeros.
    pub(crate) fn is_clear(&self, range: Range<u64>) -> bool {
        is_clear(&self.bytes.bytes()[self.bytes_of(range)])
    }

    fn bytes_of(&self, range: Range<u64>) -> Range<usize> {
        let entry_bytes = match self.width {
            Width::Narrow => size_of::<u32>(),
            Width::Wide => size_of::<u64>(),
        };
        range.start as usize * entry_bytes..range.end as usize * entry_bytes
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.bytes.wipe();
    }
}

fn no_memory(entries: u64, cause: &str) -> Error {
    Error::new(
        ErrorKind::InvalidConfig,
        format!(
            "no memory for a flat position map of {entries} entries ({cause}): use a smaller \
             capacity"
        ),
    )
}
