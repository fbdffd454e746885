//! PosMap MAC (PMMAC): Freecursive ORAM (Fletcher et al., ASPLOS'15), and Tiny ORAM, section II-B.
//!
//! ```text
//! ┌────────────────────────────────┬──────────┐
//! │ data, sealed under its name    │ tag      │      name = address ‖ GC ‖ IC
//! │ block_bytes                    │ 16 bytes │             40 + 32 + 24 bits, big-endian
//! └────────────────────────────────┴──────────┘
//! ```
//!
//! The seal is AES-128 in Galois/counter mode, with the name as nonce. The count (group counter GC
//! and individual counter IC) comes from the verified position map, so a block opens only if it is
//! the result of the previous access. A block has each count once and is sealed once under it, so
//! no nonce repeats. The paper hashes with SHA3. GCM is as secure with nonces that never repeat,
//! and was the fastest option measured (ADR 7 of the repository).
//!
//! The tag is not truncated. A forger has one attempt, because a failed check ends the ORAM, so 8
//! bytes might suffice. But truncated GCM tags are weaker than their length suggests, and 16 bytes
//! are one AES block of the seal around it.

use alloc::format;

use rand_core::CryptoRng;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};

use crate::bucket::CAPACITY_MAX;
use crate::error::{Error, ErrorKind};
use crate::posmap::compressed::{COUNTER_BITS_MAX, Count, exhausted};
use crate::seal::Key;

/// Bytes that PMMAC adds to each block in the tree.
pub const PMMAC_BYTES: usize = 16;

/// Bits of the group counter in a name. They suffice for 2^56 accesses to a block with the widest
/// individual counters, and for 2^33 with the narrowest.
const GROUP_BITS: u32 = 32;

const NAME_BITS: u32 = CAPACITY_MAX.ilog2() + GROUP_BITS + COUNTER_BITS_MAX;
const _: () = assert!(NAME_BITS as usize == 8 * NONCE_LEN);

/// Seals and opens the blocks of one ORAM. Its key has no other use.
pub(super) struct Pmmac {
    key: LessSafeKey,
}

impl Pmmac {
    pub(super) fn draw(coins: &mut impl CryptoRng) -> Self {
        Self::new(&Key::draw(coins))
    }

    fn new(key: &Key) -> Self {
        let key = UnboundKey::new(&AES_128_GCM, key.bytes()).expect("an AES-128 key has 16 bytes");
        Self { key: LessSafeKey::new(key) }
    }

    /// Seals the data of `block` in place, and writes the tag. Must be called at most once for each
    /// address and count.
    ///
    /// # Errors
    /// [`ErrorKind::CounterExhausted`] if the count does not fit into a name.
    pub(super) fn seal(&self, address: u64, count: Count, block: &mut [u8]) -> Result<(), Error> {
        let (data, tag) = split(block);
        let sealed = self.key.seal_in_place_separate_tag(name(address, count)?, Aad::empty(), data);
        let fresh = sealed.expect("a block is shorter than the 64 GiB that GCM can seal");
        tag.copy_from_slice(fresh.as_ref());
        Ok(())
    }

    /// Opens the data of `block` in place. An absent block is passed as zeros.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if `block` is not what was sealed for `address` and `count`; its data
    /// is then undefined. [`ErrorKind::CounterExhausted`] if the count does not fit into a name.
    pub(super) fn open(&self, address: u64, count: Count, block: &mut [u8]) -> Result<(), Error> {
        let is_absent = block.iter().fold(0, |any, byte| any | byte) == 0;
        let (data, tag) = split(block);
        match (is_absent, count == Count::NEVER_MOVED) {
            (true, true) => return Ok(()),
            (true, false) => return Err(unbelievable("is missing")),
            (false, true) => return Err(unbelievable("was never written, but exists")),
            (false, false) => (),
        }
        let (name, tag) = (name(address, count)?, Tag::from(*tag));
        match self.key.open_in_place_separate_tag(name, Aad::empty(), tag, data, 0..) {
            Ok(_) => Ok(()),
            Err(_) => Err(unbelievable("differs from what was last written")),
        }
    }
}

/// The data of a block, without its tag.
pub(super) fn data_of(block: &mut [u8]) -> &mut [u8] {
    split(block).0
}

fn split(block: &mut [u8]) -> (&mut [u8], &mut [u8; PMMAC_BYTES]) {
    block.split_last_chunk_mut().expect("a block in the tree is longer than its tag")
}

/// The name of a block: the nonce of its seal.
fn name(address: u64, count: Count) -> Result<Nonce, Error> {
    if count.group >> GROUP_BITS != 0 {
        return Err(exhausted());
    }
    let name = u128::from(address) << (GROUP_BITS + COUNTER_BITS_MAX)
        | u128::from(count.group) << COUNTER_BITS_MAX
        | u128::from(count.individual);
    let bytes = name.to_be_bytes();
    let nonce = bytes.last_chunk().expect("a nonce has fewer than 16 bytes");
    Ok(Nonce::assume_unique_for_key(*nonce))
}

/// The error for a requested block that fails the check. It names the defect, never the block.
#[cold]
fn unbelievable(defect: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "a block {defect}: the storage is damaged, was rolled back or was tampered with; \
             believe nothing else it holds, and restore the data to a fresh ORAM"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const COUNT: Count = Count { group: 5, individual: 9 };
    const DATA: [u8; 24] = *b"a block of 24 bytes long";

    fn sealed(pmmac: &Pmmac, address: u64, count: Count) -> Vec<u8> {
        let mut block = [&DATA[..], &[0; PMMAC_BYTES]].concat();
        pmmac.seal(address, count, &mut block).unwrap();
        block
    }

    fn defect(opened: Result<(), Error>) -> ErrorKind {
        opened.unwrap_err().kind()
    }

    #[test]
    fn a_block_opens_only_under_its_address_and_count() {
        let pmmac = Pmmac::new(&Key::from_bytes([7; 16]));
        let block = sealed(&pmmac, 3, COUNT);
        let mut opened = block.clone();
        pmmac.open(3, COUNT, &mut opened).unwrap();
        assert_eq!(data_of(&mut opened), DATA);
        let others = [
            (2, COUNT),
            (3, Count { group: 4, ..COUNT }),
            (3, Count { individual: 8, ..COUNT }),
            (3, Count { individual: 10, ..COUNT }),
            (3, Count::NEVER_MOVED),
        ];
        for (address, count) in others {
            let opened = pmmac.open(address, count, &mut block.clone());
            assert_eq!(defect(opened), ErrorKind::Corrupt, "{address} {count:?}");
        }
        for bit in 0..8 * block.len() {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(defect(pmmac.open(3, COUNT, &mut flipped)), ErrorKind::Corrupt, "bit {bit}");
        }
    }

    #[test]
    fn only_a_block_that_was_never_accessed_may_be_absent() {
        let pmmac = Pmmac::new(&Key::from_bytes([7; 16]));
        let mut absent = [0; 40];
        pmmac.open(3, Count::NEVER_MOVED, &mut absent).unwrap();
        assert_eq!(absent, [0; 40]);
        let error = pmmac.open(3, COUNT, &mut absent).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("missing"));
    }

    #[test]
    fn the_seal_is_gcm_under_the_documented_name() {
        let pmmac = Pmmac::new(&Key::from_bytes(*b"YELLOW SUBMARINE"));
        let count = Count { group: 0x0607_0809, individual: 0x000A_0B0C };
        let block = sealed(&pmmac, 0x01_0203_0405, count);
        assert_eq!(block, GOLDEN);
    }

    /// AES-128-GCM of the data under the nonce `01 02 … 0c`, computed with another library.
    const GOLDEN: [u8; 40] = [
        0xd6, 0x7c, 0x7e, 0xb4, 0x25, 0xd0, 0x52, 0xdf, 0x42, 0xb8, 0x8a, 0xbe, 0xe4, 0x73, 0xa4,
        0x8b, 0x13, 0x1f, 0xc0, 0x63, 0x9d, 0xf6, 0x7d, 0x72, 0x34, 0x50, 0xcc, 0x78, 0xac, 0xec,
        0xaa, 0xdb, 0x36, 0x27, 0x1c, 0xd8, 0x02, 0x9a, 0xe2, 0xcc,
    ];

    #[test]
    fn names_are_distinct_until_the_counter_is_exhausted() {
        let mut names = HashSet::new();
        for address in [0, 1, 255, 256, CAPACITY_MAX - 1] {
            for group in [0, 1, (1 << GROUP_BITS) - 1] {
                for individual in [0, 1, (1 << COUNTER_BITS_MAX) - 1] {
                    let name = name(address, Count { group, individual }).unwrap();
                    assert!(names.insert(*name.as_ref()));
                }
            }
        }
        let pmmac = Pmmac::new(&Key::from_bytes([7; 16]));
        let beyond = Count { group: 1 << GROUP_BITS, individual: 0 };
        let error = pmmac.seal(0, beyond, &mut [1; 40]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CounterExhausted);
        assert_eq!(defect(pmmac.open(0, beyond, &mut [1; 40])), ErrorKind::CounterExhausted);
    }
}
