//! The volume key, from which all other keys are derived.

use std::fmt;

use rand_core::CryptoRng;
use ring::hkdf;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a volume key, and of a key that wraps a volume key.
pub(crate) const KEY_BYTES: usize = 32;

/// The key of a volume. Every other key is derived from it, one per purpose. Secret; wiped from
/// memory when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct VolumeKey([u8; KEY_BYTES]);

impl VolumeKey {
    /// A new random key.
    pub fn draw(coins: &mut impl CryptoRng) -> Self {
        let mut key = Self([0; KEY_BYTES]);
        coins.fill_bytes(&mut key.0);
        key
    }

    /// A key from given bytes.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Self {
        Self(*bytes)
    }

    /// The 32-byte key for one purpose. Keys of different purposes are independent.
    pub fn derive(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        self.derive_bytes(purpose)
    }

    /// `N` bytes of key material for one purpose. Another `N` gives other bytes.
    pub fn derive_bytes<const N: usize>(&self, purpose: &str) -> Zeroizing<[u8; N]> {
        const { assert!(N <= 255 * 32, "HKDF gives 255 hashes at most") };
        let length = (N as u32).to_le_bytes();
        expand(b"", &self.0, &[b"oblivio volume key v1", &length, purpose.as_bytes()])
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VolumeKey(secret)")
    }
}

/// Derives `N` bytes with HKDF-SHA-256.
pub(crate) fn expand<const N: usize>(
    salt: &[u8],
    secret: &[u8],
    info: &[&[u8]],
) -> Zeroizing<[u8; N]> {
    let mut derived = Zeroizing::new([0; N]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(secret)
        .expand(info, Length(N))
        .and_then(|output| output.fill(&mut *derived))
        .expect("the caller asks for 255 hashes at most, and gets the length asked for");
    derived
}

/// The number of output bytes of an expansion.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_lengths_have_keys_of_their_own() {
        let key = VolumeKey::from_bytes(&[7; KEY_BYTES]);
        let a = key.derive("a");
        assert_eq!(a, key.derive("a"));
        assert_ne!(a, key.derive("b"));
        assert_ne!(a, VolumeKey::from_bytes(&[8; KEY_BYTES]).derive("a"));
        assert_ne!(a[..], key.derive_bytes::<64>("a")[..32]);
    }

    #[test]
    fn debug_output_hides_the_key() {
        assert_eq!(format!("{:?}", VolumeKey::from_bytes(&[7; KEY_BYTES])), "VolumeKey(secret)");
    }

    /// Checks the derivation against test case 1 of RFC 5869.
    #[test]
    fn it_is_the_hkdf_of_the_rfc() {
        let (salt, info): (Vec<u8>, Vec<u8>) = ((0..=0x0C).collect(), (0xF0..=0xF9).collect());
        let output = expand::<42>(&salt, &[0x0B; 22], &[&info]);
        assert_eq!((output[..4].to_vec(), output[41]), (vec![0x3C, 0xB2, 0x5F, 0x25], 0x65));
    }
}
