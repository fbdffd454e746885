//! The seal of a single block whose location in storage may change.
//!
//! ```text
//! ┌───────┬─────┬─────────────────────────────────────────────┐
//! │ nonce │ tag │ sealed: address, number, bytes of the block │
//! └───────┴─────┴─────────────────────────────────────────────┘
//!  24 bytes, 32 bytes
//! ```
//!
//! A bucket is sealed under the name of its place. But servers move the blocks of an S³ORAM without
//! knowing which blocks they move. So a sealed block contains its name: its address and the number
//! of the write that sealed it. The reader compares both with the expected values, and so detects
//! older versions and other blocks.
//!
//! Tag, key stream and synthetic nonce are computed as for [a bucket](super::bucket), under
//! separate keys. If two blocks are sealed under one number, for example by a copy of the client or
//! after its directory was restored, they share a key stream only if they are equal.

use alloc::vec::Vec;

use aegis::aegis256x4::Aegis256X4Mac;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::bucket::{BucketKeys, KEYS_BYTES, NONCE_BYTES, SealedPart, TAG_BYTES};
use super::era::MasterKey;

/// Bytes of a name.
const NAME_BYTES: usize = 16;

/// Bytes of a seed, and of the key from which it is derived.
const SEED_BYTES: usize = 32;

/// Bytes that the seal adds to a block.
pub const BLOCK_SEAL_BYTES: usize = NONCE_BYTES + TAG_BYTES + NAME_BYTES;

/// The identity and version of a block. Secret: storage never sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockName {
    /// The address of the block.
    pub address: u64,
    /// The number of the access that wrote the block; 0 for a block that was loaded initially. The
    /// writes of one access to several trees share a number, so only address and number together
    /// identify a version.
    pub number: u64,
}

impl BlockName {
    fn bytes(self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

/// Seals and opens single blocks. The keys are wiped when the sealer is dropped.
pub struct BlockSealer {
    keys: BucketKeys,
    /// The key of the MAC that computes seeds.
    seed_key: Zeroizing<[u8; SEED_BYTES]>,
}

/// An opened block, which is authentic.
pub struct OpenedBlock {
    name: BlockName,
    /// The name, followed by the contents.
    plain: Zeroizing<Vec<u8>>,
}

impl OpenedBlock {
    /// The block's name.
    pub fn name(&self) -> BlockName {
        self.name
    }

    /// The block's contents.
    pub fn bytes(&self) -> &[u8] {
        &self.plain[NAME_BYTES..]
    }
}

/// A seed that is computed from a secret key and the concatenation of `parts`. Equal inputs give
/// equal seeds. Without the key, seeds of different parts cannot be distinguished from random ones.
pub fn derive_seed(key: &[u8; SEED_BYTES], parts: &[&[u8]]) -> Zeroizing<[u8; SEED_BYTES]> {
    let mut mac = Aegis256X4Mac::<SEED_BYTES>::new(key);
    parts.iter().for_each(|part| mac.update(part));
    Zeroizing::new(mac.finalize())
}

impl BlockSealer {
    /// A sealer with keys derived from `master`. Every array must have a different master key.
    pub fn new(master: &MasterKey) -> Self {
        let mut derived = Zeroizing::new([0; KEYS_BYTES]);
        let mut seed_key = Zeroizing::new([0; SEED_BYTES]);
        let hkdf = Hkdf::<Sha256>::new(None, master.bytes());
        for (info, key) in [
            (&b"oblivio block seal v1"[..], &mut derived[..]),
            (b"oblivio block seed v1", &mut seed_key[..]),
        ] {
            hkdf.expand(info, key).expect("HKDF can output 255 hashes, more than 96 bytes");
        }
        Self { keys: BucketKeys::new(derived), seed_key }
    }

    /// A seed for a random generator: a keyed PRF of the bytes `of`, for example of a sealed block.
    /// Equal bytes give equal seeds, so a repeated write produces identical bytes. Without the key,
    /// the seed cannot be distinguished from a random one.
    pub fn seed(&self, of: &[u8]) -> Zeroizing<[u8; SEED_BYTES]> {
        derive_seed(&self.seed_key, &[of])
    }

    /// Seals a block. The result is [`BLOCK_SEAL_BYTES`] longer than the block.
    pub fn seal(&self, name: BlockName, block: &[u8]) -> Vec<u8> {
        let mut plain = Zeroizing::new(Vec::with_capacity(NAME_BYTES + block.len()));
        plain.extend_from_slice(&name.bytes());
        plain.extend_from_slice(block);
        let mut nonce_mac = self.keys.nonce_mac();
        nonce_mac.update(&plain);
        let drawn = nonce_mac.finalize();
        let nonce: &[u8; NONCE_BYTES] = drawn.first_chunk().expect("a MAC is longer than a nonce");
        self.keys.mask(nonce, SealedPart::Table, &mut plain);
        let mut sealed = Vec::with_capacity(BLOCK_SEAL_BYTES + block.len());
        sealed.extend_from_slice(nonce);
        sealed.extend_from_slice(&self.tag(nonce, &plain).finalize());
        sealed.extend_from_slice(&plain);
        sealed
    }

    /// Opens a sealed block; `None` if it is not authentic.
    pub fn open(&self, sealed: &[u8]) -> Option<OpenedBlock> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let (tag, masked) = rest.split_first_chunk::<TAG_BYTES>()?;
        self.tag(nonce, masked).verify(tag).ok()?;
        let mut plain = Zeroizing::new(masked.to_vec());
        self.keys.mask(nonce, SealedPart::Table, &mut plain);
        let (address, rest) = plain.split_first_chunk()?;
        let (number, _) = rest.split_first_chunk()?;
        let [address, number] = [address, number].map(|it| u64::from_le_bytes(*it));
        Some(OpenedBlock { name: BlockName { address, number }, plain })
    }

    fn tag(&self, nonce: &[u8; NONCE_BYTES], masked: &[u8]) -> Aegis256X4Mac<TAG_BYTES> {
        let mut mac = self.keys.tag_mac();
        mac.update(nonce);
        mac.update(masked);
        mac
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const GOLDEN: [u8; 8] = [166, 205, 237, 7, 5, 115, 42, 151];
    const NAME: BlockName = BlockName { address: 7, number: 1 << 40 };

    fn sealer(fill: u8) -> BlockSealer {
        BlockSealer::new(&MasterKey::from_bytes([fill; 32]))
    }

    #[test]
    fn a_sealed_block_opens_with_its_name() {
        let sealed = sealer(1).seal(NAME, b"what it holds");
        assert_eq!(sealed.len(), BLOCK_SEAL_BYTES + 13);
        let opened = sealer(1).open(&sealed).unwrap();
        assert_eq!((opened.name(), opened.bytes()), (NAME, &b"what it holds"[..]));
    }

    /// Tests that the seal is the same on every processor and as in `docs/format.md` of the
    /// repository.
    #[test]
    fn the_seal_has_not_changed() {
        use sha2::Digest;
        let digest = Sha256::digest(sealer(1).seal(NAME, &[9; 100]));
        assert_eq!(digest[..8], GOLDEN);
    }

    #[test]
    fn nothing_else_opens() {
        let sealed = sealer(1).seal(NAME, b"what it holds");
        assert!(sealer(2).open(&sealed).is_none(), "under another key");
        for byte in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[byte] ^= 0x10;
            assert!(sealer(1).open(&flipped).is_none(), "byte {byte}");
            assert!(sealer(1).open(&sealed[..byte]).is_none(), "cut to {byte} bytes");
        }
        assert!(sealer(1).open(&[0; 200]).is_none(), "zeros");
    }

    #[test]
    fn nonces_and_seeds_differ_with_the_name_and_the_block() {
        let mut seen = HashSet::new();
        for name in [NAME, BlockName { address: 8, ..NAME }, BlockName { number: 8, ..NAME }] {
            for block in [[1; 40], [2; 40]] {
                let sealed = sealer(1).seal(name, &block);
                assert!(seen.insert(sealed[..NONCE_BYTES].to_vec()));
                assert_eq!(sealer(1).seal(name, &block), sealed, "equal blocks are sealed alike");
                let seed = sealer(1).seed(&sealed);
                assert!(seen.insert(seed.to_vec()));
                assert_eq!(sealer(1).seed(&sealed), seed);
                assert_ne!(sealer(2).seed(&sealed), seed);
            }
        }
    }
}
