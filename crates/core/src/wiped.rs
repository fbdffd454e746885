//! Secret bytes that grow, or that there are many of.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut};

use zeroize::optimization_barrier;

use crate::memory::wipe_pages;

/// Bytes that are wiped from memory wherever they have been. A `Vec` that grows moves, and leaves a copy
/// behind that nobody wipes; and a `Zeroizing<Vec<u8>>` is wiped byte by byte, which is slow in builds for tests.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WipedBytes(Vec<u8>);

impl WipedBytes {
    /// Nothing yet, with room for so many.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// So many zeros.
    pub fn zeros(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    /// Forgets the bytes, and keeps their room, which is wiped with the rest.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets what comes after the first so many, and keeps their room.
    pub fn truncate(&mut self, bytes: usize) {
        self.0.truncate(bytes);
    }

    /// Adds a byte.
    pub fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    /// Adds bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Adds so many zeros.
    pub fn extend_with_zeros(&mut self, bytes: usize) {
        self.make_room(bytes);
        self.0.resize(self.0.len() + bytes, 0);
    }

    /// Has room for so many bytes more.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.0.len() + bytes;
        if needed > self.0.capacity() {
            let room = needed.max(2 * self.0.capacity());
            let mut larger = Self::with_capacity(room);
            larger.0.extend_from_slice(&self.0);
            // The smaller one is wiped here.
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
        // The zeros are not read again, and have to be written all the same.
        optimization_barrier(&*self.0);
    }
}

/// Puts zeros wherever there is room: what lies behind the bytes was theirs, too.
fn wipe(bytes: &mut Vec<u8>) {
    let room = bytes.capacity();
    bytes.clear();
    bytes.resize(room, 0);
}

/// Very many bytes, of which most may never be used. Pages that hold zeros are read and not wiped: the system may never have
/// given memory for them. How long that takes says how much was used, so it is for what lives as long as its client.
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
    /// Without what they say.
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
    fn all_of_the_room_is_wiped() {
        let mut bytes = vec![7; 100];
        let (place, room) = (bytes.as_ptr(), bytes.capacity());
        bytes.truncate(40);
        wipe(&mut bytes);
        assert_eq!((bytes.as_ptr(), bytes.len()), (place, room));
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn every_page_that_holds_something_is_wiped() {
        const PAGES: usize = 3;
        for place in [0, 1, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES + 7, PAGES * PAGE_BYTES + 5]
        {
            let mut bytes = vec![0; PAGES * PAGE_BYTES + 6];
            bytes[place] = 1;
            wipe_pages(&mut bytes);
            assert!(is_clear(&bytes), "{place}");
        }
    }

    /// Looks at the memory of this process where the bytes were, before and after.
    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_left_in_memory_where_the_bytes_were() {
        use std::fs::File;
        use std::os::unix::fs::FileExt;

        const SECRET: [u8; 64] =
            *b"None of this may be left in memory once it was dropped or moved!";
        let memory = File::open("/proc/self/mem").unwrap();
        let is_there = |place: usize| {
            let mut bytes = [0; 4000];
            // What was given back to the system cannot be read.
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
        assert!(!is_there(place), "it was dropped");

        let (mut cut, place) = filled();
        cut.truncate(1);
        drop(cut);
        assert!(!is_there(place), "it was cut off, and dropped");

        let (mut grown, place) = filled();
        grown.push(7);
        assert!(grown.as_ptr() as usize != place && !is_there(place), "it has grown");
    }

    #[test]
    fn it_holds_what_a_vec_would() {
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
