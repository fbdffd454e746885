//! Secret bytes that grow.

use std::ops::{Deref, DerefMut};

use zeroize::Zeroizing;

/// Bytes that are wiped from memory wherever they have been. A `Vec` that grows moves, and leaves a copy
/// behind that nobody wipes.
#[derive(Default)]
pub struct WipedBytes(Zeroizing<Vec<u8>>);

impl WipedBytes {
    /// Forgets the bytes, and keeps their room, which is wiped with the rest.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a byte.
    pub fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    /// Adds bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let room = needed.max(2 * self.0.capacity());
            let mut larger = Zeroizing::new(Vec::with_capacity(room));
            larger.extend_from_slice(&self.0);
            // The smaller one is wiped here.
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
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
