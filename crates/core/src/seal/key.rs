//! The session key, and the keys of trees that are derived from it.

use core::fmt;

use hkdf::Hkdf;
use rand_core::CryptoRng;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::pieces::TreeId;

/// Bytes of an AES-128 key.
pub(crate) const KEY_BYTES: usize = 16;

/// The session key `K` of Tiny ORAM (Table I). Secret; wiped from memory when dropped.
///
/// A key must never seal two different ORAMs, nor one ORAM twice from its start: masks would
/// repeat. Draw a fresh one for each ORAM.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// Draws a fresh key.
    pub fn draw(coins: &mut impl CryptoRng) -> Self {
        let mut key = Self([0; KEY_BYTES]);
        coins.fill_bytes(&mut key.0);
        key
    }

    /// The key that consists of given bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The key of one tree: HKDF-SHA-256 over the tree's number.
    pub(crate) fn for_tree(&self, tree: TreeId) -> Self {
        let mut info = *b"oblivio tree seal v1 ..";
        let number_at = info.len() - 2;
        info[number_at..].copy_from_slice(&tree.0.to_be_bytes());
        let mut derived = Self([0; KEY_BYTES]);
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(&info, &mut derived.0)
            .expect("HKDF can output 255 hashes, more than 16 bytes");
        derived
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_different_keys_and_none_is_printed() {
        let key = Key::from_bytes([7; KEY_BYTES]);
        assert_ne!(key.for_tree(TreeId(0)).0, key.for_tree(TreeId(1)).0);
        assert_ne!(key.for_tree(TreeId(0)).0, key.0);
        assert_eq!(format!("{key:?}"), "Key(secret)");
    }
}
