//! Buffers for secret bytes that are wiped when dropped.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use zeroize::optimization_barrier;

use crate::memory::wipe_pages;

/// A buffer that wipes all memory that it has used. When a plain `Vec` grows, it leaves an unwiped
/// copy of its contents. A `Zeroizing<Vec<u8>>` is wiped byte by byte, which is slow in test
/// builds.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WipedBytes(Vec<u8>);

impl WipedBytes {
    /// An empty buffer with a capacity of `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// A buffer of `bytes` zeros.
    pub fn zeros(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    /// Removes all bytes. Their memory is wiped when the buffer is dropped.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes all bytes after the first `bytes`. Their memory is wiped when the buffer is dropped.
    pub fn truncate(&mut self, bytes: usize) {
        self.0.truncate(bytes);
    }

    /// Appends a byte.
    pub fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Appends `bytes` zeros.
    pub fn extend_with_zeros(&mut self, bytes: usize) {
        self.make_room(bytes);
        self.0.resize(self.0.len() + bytes, 0);
    }

    /// Reserves capacity for `bytes` more bytes.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.0.len() + bytes;
        if needed > self.0.capacity() {
            let room = needed.max(2 * self.0.capacity());
            let mut larger = Self::with_capacity(room);
            larger.0.extend_from_slice(&self.0);
            // The old buffer is wiped here.
            *self = larger;
        }
    }
}

impl From<&[u8]> for WipedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<Vec<u8>> for WipedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Drop for WipedBytes {
    fn drop(&mut self) {
        wipe(&mut self.0);
        // Keeps the compiler from dropping the stores, although nothing reads the zeros.
        optimization_barrier(&*self.0);
    }
}

/// Overwrites the whole capacity with zeros, because removed bytes may be past the current length.
fn wipe(bytes: &mut Vec<u8>) {
    let room = bytes.capacity();
    bytes.clear();
    bytes.resize(room, 0);
}

/// A large buffer, most of which may never be used. When it is wiped, pages of zeros are read and
/// not written, because the system may never have backed them with memory. The time of wiping
/// reveals how much was used. So use it only for buffers that exist as long as their client.
pub(crate) struct SparseWipedBytes(Vec<u8>);

impl From<Vec<u8>> for SparseWipedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Drop for SparseWipedBytes {
    fn drop(&mut self) {
        wipe_pages(&mut self.0);
    }
}

impl Deref for SparseWipedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for SparseWipedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl fmt::Debug for WipedBytes {
    /// Formats the buffer without its contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secret bytes", self.0.len())
    }
}

impl Deref for WipedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for WipedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{PAGE_BYTES, is_clear};

    #[test]
    fn the_whole_capacity_is_wiped() {
        let mut bytes = vec![7; 100];
        let (place, room) = (bytes.as_ptr(), bytes.capacity());
        bytes.truncate(40);
        wipe(&mut bytes);
        assert_eq!((bytes.as_ptr(), bytes.len()), (place, room));
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn every_nonzero_page_is_wiped() {
        const PAGES: usize = 3;
        for place in [0, 1, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES + 7, PAGES * PAGE_BYTES + 5]
        {
            let mut bytes = vec![0; PAGES * PAGE_BYTES + 6];
            bytes[place] = 1;
            wipe_pages(&mut bytes);
            assert!(is_clear(&bytes), "{place}");
        }
    }

    /// Reads this process's memory at the buffer's address. The secret must be gone after a drop, a
    /// truncation followed by a drop, and a move to a larger buffer.
    #[cfg(target_os = "linux")]
    #[test]
    fn no_secret_is_left_in_freed_memory() {
        use std::fs::File;
        use std::os::unix::fs::FileExt;

        const SECRET: [u8; 64] =
            *b"None of this may be left in memory once it was dropped or moved!";
        let memory = File::open("/proc/self/mem").unwrap();
        let is_there = |place: usize| {
            let mut bytes = [0; 4000];
            // Memory that was returned to the system cannot be read.
            memory.read_exact_at(&mut bytes, place as u64).is_ok()
                && bytes.windows(8).any(|bytes| SECRET.windows(8).any(|secret| bytes == secret))
        };
        let filled = || {
            let mut bytes = WipedBytes::with_capacity(4096);
            (0..64).for_each(|_| bytes.extend_from_slice(&SECRET));
            let place = bytes.as_ptr() as usize;
            assert!(is_there(place));
            (bytes, place)
        };
        let (dropped, place) = filled();
        drop(dropped);
        assert!(!is_there(place), "after a drop");

        let (mut cut, place) = filled();
        cut.truncate(1);
        drop(cut);
        assert!(!is_there(place), "after a truncation and a drop");

        let (mut grown, place) = filled();
        grown.push(7);
        assert!(
            grown.as_ptr() as usize != place && !is_there(place),
            "after a move to a larger buffer"
        );
    }

    #[test]
    fn its_contents_equal_a_vec() {
        let (mut wiped, mut plain) = (WipedBytes::default(), Vec::new());
        for length in [0, 1, 7, 8, 9, 1000, 3] {
            let bytes = vec![length as u8; length];
            wiped.extend_from_slice(&bytes);
            wiped.push(5);
            plain.extend_from_slice(&bytes);
            plain.push(5);
            assert_eq!(wiped[..], plain[..]);
        }
        wiped.clear();
        wiped.push(1);
        assert_eq!(wiped[..], [1]);
    }
}
