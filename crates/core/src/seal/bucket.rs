//! The authenticated seal of a bucket, with one tag for the whole bucket.
//!
//! ```text
//! head    ┌───────┬─────┬──────────────┐     slots  ┌─────────┬───┬───────────┐
//!         │ nonce │ tag │ sealed table │            │ block 0 │ … │ block Z-1 │  sealed one by one
//!         └───────┴─────┴──────────────┘            └─────────┴───┴───────────┘
//!          24 bytes, 32 bytes                        only blocks: whole pages, if blocks are
//! ```
//!
//! - The **tag** is AEGIS-256X4-MAC over the name of the bucket, the nonce and everything sealed.
//!   The name contains the level and the eviction that wrote the bucket. A client derives it from
//!   public counters and never reads it from storage. So a bucket is exactly what that eviction
//!   wrote, or it is refused as a whole: flipped bits, another bucket's bytes, and older bytes of
//!   the same bucket are detected.
//! - **Verification comes first, enforced by types.** Only a [`VerifiedBucket`] can be opened. An
//!   access verifies all buckets of its path and opens one slot, so whether it fails does not
//!   depend on which slot it opens.
//! - Table and blocks are sealed with the key stream of AEGIS-256X4, each part under the nonce and
//!   its own number. A slot can be opened without the others.
//! - The **nonce** is synthetic: a MAC, under a key of its own, over the name and everything
//!   sealed. If a running client is cloned, both clones seal the same eviction under the same key,
//!   but different contents get different nonces. So a key stream is used twice only for equal
//!   contents.
//!
//! ADR 9 of the repository describes the measurements and the discarded alternatives.

use alloc::vec::Vec;

use aegis::aegis256x4::{Aegis256X4, Aegis256X4Mac};
use zeroize::Zeroizing;

use super::Blanks;

pub(super) const NONCE_BYTES: usize = 24;
pub(super) const TAG_BYTES: usize = 32;

/// Bytes that the seal adds to the table of a bucket.
pub const SEAL_BYTES: usize = NONCE_BYTES + TAG_BYTES;

/// Bytes of a key of AEGIS-256X4, of the cipher's own nonces, and of a name.
const KEY_BYTES: usize = 32;
const CIPHER_NONCE_BYTES: usize = 32;
const NAME_BYTES: usize = 16;

/// Bytes of all keys of a bucket seal.
pub(super) const KEYS_BYTES: usize = 3 * KEY_BYTES;

/// The identity of a bucket, known to the client. Public. Under one set of keys, each name is
/// sealed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketName {
    /// The number of the eviction that writes the bucket.
    pub(crate) eviction: u64,
    pub(crate) level: u8,
    pub(crate) kind: BucketKind,
}

/// The kind of a sealed bucket: blocks, or a page of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketKind {
    /// A bucket of blocks of the tree.
    Blocks,
    /// A page of marks of taken slots, with its index among the pages that the eviction sweeps.
    Page(u16),
}

impl BucketName {
    fn bytes(self) -> [u8; NAME_BYTES] {
        let (kind, number) = match self.kind {
            BucketKind::Blocks => (0, 0),
            BucketKind::Page(number) => (1, number),
        };
        let mut bytes = [0; NAME_BYTES];
        bytes[..8].copy_from_slice(&self.eviction.to_be_bytes());
        bytes[8] = self.level;
        bytes[9] = kind;
        bytes[10..12].copy_from_slice(&number.to_be_bytes());
        bytes
    }
}

/// The indices of the pieces of a write that hold a sealed bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketPieces {
    /// The index of the piece with the head.
    pub(crate) head: usize,
    /// The index of the piece with the slots. `None` for a page, which has no slots.
    pub(crate) slots: Option<usize>,
}

/// The keys of a bucket seal: for tags, for nonces, and for the cipher. Secret; wiped when dropped.
#[derive(Clone)]
pub(super) struct BucketKeys(Zeroizing<[u8; KEYS_BYTES]>);

impl BucketKeys {
    pub(super) fn new(keys: Zeroizing<[u8; KEYS_BYTES]>) -> Self {
        Self(keys)
    }

    fn key(&self, number: usize) -> &[u8; KEY_BYTES] {
        &self.0.as_chunks().0[number]
    }

    pub(super) fn tag_mac(&self) -> Aegis256X4Mac<TAG_BYTES> {
        Aegis256X4Mac::new(self.key(0))
    }

    pub(super) fn nonce_mac(&self) -> Aegis256X4Mac<TAG_BYTES> {
        Aegis256X4Mac::new(self.key(1))
    }

    /// Seals or opens `bytes`: XORs the key stream of a part into them.
    pub(super) fn mask(&self, nonce: &[u8; NONCE_BYTES], part: SealedPart, bytes: &mut [u8]) {
        let mut cipher_nonce = [0; CIPHER_NONCE_BYTES];
        cipher_nonce[..NONCE_BYTES].copy_from_slice(nonce);
        cipher_nonce[NONCE_BYTES..][..2].copy_from_slice(&part.number().to_be_bytes());
        Aegis256X4::<TAG_BYTES>::new(self.key(2), &cipher_nonce).stream_xor_in_place(bytes);
    }

    /// Seals a bucket with this table and these blocks. `scratch` is a work buffer, so that
    /// plaintext is never stored in a blank.
    pub(super) fn seal<'p>(
        &self,
        name: BucketName,
        table: &[u8],
        blocks: impl Iterator<Item = &'p [u8]> + Clone,
        (blanks, pieces): (&mut Blanks<'_>, BucketPieces),
        scratch: &mut Zeroizing<Vec<u8>>,
    ) {
        let mut nonce_mac = self.nonce_mac();
        nonce_mac.update(&name.bytes());
        nonce_mac.update(table);
        blocks.clone().for_each(|block| nonce_mac.update(block));
        let drawn = nonce_mac.finalize();
        let nonce: &[u8; NONCE_BYTES] = drawn.first_chunk().expect("a MAC is longer than a nonce");

        let mut tag = self.tag_mac();
        tag.update(&name.bytes());
        tag.update(nonce);
        let mut put = |part, plain: &[u8], piece, offset| {
            scratch.clear();
            scratch.extend_from_slice(plain);
            self.mask(nonce, part, scratch);
            tag.update(scratch);
            blanks.copy_sealed(piece, offset, scratch);
        };
        put(SealedPart::Table, table, pieces.head, SEAL_BYTES);
        if let Some(piece) = pieces.slots {
            let mut offset = 0;
            for (slot, block) in (0..).zip(blocks) {
                put(SealedPart::Slot(slot), block, piece, offset);
                offset += block.len();
            }
        }
        blanks.copy_sealed(pieces.head, 0, nonce);
        blanks.copy_sealed(pieces.head, NONCE_BYTES, &tag.finalize());
    }

    /// Verifies that the bucket was sealed under the name `name`. `None` if it was not.
    pub(super) fn verify<'f>(
        &self,
        name: BucketName,
        head: &'f [u8],
        slots: &'f [u8],
    ) -> Option<VerifiedBucket<'_, 'f>> {
        let (nonce, rest) = head.split_first_chunk()?;
        let (tag, table) = rest.split_first_chunk()?;
        let mut mac = self.tag_mac();
        mac.update(&name.bytes());
        mac.update(nonce);
        mac.update(table);
        mac.update(slots);
        mac.verify(tag).ok()?;
        Some(VerifiedBucket { keys: self, nonce, table, slots })
    }
}

/// A part of a bucket that can be opened separately.
#[derive(Clone, Copy)]
pub(super) enum SealedPart {
    Table,
    Slot(u16),
}

impl SealedPart {
    fn number(self) -> u16 {
        match self {
            Self::Table => 0,
            // A bucket has at most 255 slots.
            Self::Slot(slot) => slot + 1,
        }
    }
}

/// An authentic bucket. Sealed bytes that are not verified cannot be opened.
pub(crate) struct VerifiedBucket<'k, 'f> {
    keys: &'k BucketKeys,
    nonce: &'f [u8; NONCE_BYTES],
    table: &'f [u8],
    slots: &'f [u8],
}

impl VerifiedBucket<'_, '_> {
    /// Opens the table of the bucket, and replaces the contents of `table` with it.
    pub(crate) fn open_table(&self, table: &mut Vec<u8>) {
        table.clear();
        table.extend_from_slice(self.table);
        self.keys.mask(self.nonce, SealedPart::Table, table);
    }

    /// Opens the block in `slot`. All blocks have the length of `block`.
    ///
    /// # Panics
    /// If the bucket has no such slot. The caller checks the shape of a bucket before its seal.
    pub(crate) fn open_slot(&self, slot: usize, block: &mut [u8]) {
        block.copy_from_slice(&self.slots[slot * block.len()..][..block.len()]);
        self.keys.mask(self.nonce, SealedPart::Slot(slot as u16), block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::Span;
    use sha2::{Digest, Sha256};
    use std::collections::HashSet;

    const GOLDEN: [u8; 8] = [60, 207, 147, 216, 154, 165, 168, 98];
    const TABLE: &[u8] = b"the table";
    const BLOCKS: [[u8; 40]; 6] = [[1; 40], [2; 40], [0xFF; 40], [4; 40], [5; 40], [6; 40]];
    const NAME: BucketName = BucketName { eviction: 70_000, level: 9, kind: BucketKind::Blocks };

    fn keys(fill: u8) -> BucketKeys {
        let mut keys = Zeroizing::new([fill; KEYS_BYTES]);
        keys[KEY_BYTES..2 * KEY_BYTES].fill(fill + 1);
        keys[2 * KEY_BYTES..].fill(fill + 2);
        BucketKeys::new(keys)
    }

    /// A sealed bucket: its head and its slots.
    fn sealed(keys: &BucketKeys, name: BucketName, blocks: &[[u8; 40]; 6]) -> (Vec<u8>, Vec<u8>) {
        sealed_with(keys, name, TABLE, blocks)
    }

    fn sealed_with(
        keys: &BucketKeys,
        name: BucketName,
        table: &[u8],
        blocks: &[[u8; 40]; 6],
    ) -> (Vec<u8>, Vec<u8>) {
        let head_bytes = SEAL_BYTES + table.len();
        let mut bytes = vec![0; head_bytes + 240];
        let spans = [Span { start: 0, bytes: head_bytes }, Span { start: head_bytes, bytes: 240 }];
        let mut blanks = Blanks::new(&mut bytes, &spans);
        let pieces = BucketPieces { head: 0, slots: Some(1) };
        let blocks = blocks.iter().map(|block| &block[..]);
        keys.seal(name, table, blocks, (&mut blanks, pieces), &mut Zeroizing::default());
        let _ = blanks.sealed();
        let slots = bytes.split_off(head_bytes);
        (bytes, slots)
    }

    #[test]
    fn a_sealed_bucket_opens_unchanged() {
        let keys = keys(1);
        let (head, slots) = sealed(&keys, NAME, &BLOCKS);
        let bucket = keys.verify(NAME, &head, &slots).unwrap();
        let mut table = Vec::new();
        bucket.open_table(&mut table);
        assert_eq!(table, TABLE);
        for (slot, expected) in BLOCKS.iter().enumerate() {
            let mut block = [7; 40];
            bucket.open_slot(slot, &mut block);
            assert_eq!(block, *expected);
        }
    }

    /// Tests that the seal is the same on every processor and as in `docs/format.md` of the
    /// repository.
    #[test]
    fn the_seal_has_not_changed() {
        let (head, slots) = sealed(&keys(1), NAME, &BLOCKS);
        let digest = Sha256::digest([head, slots].concat());
        assert_eq!(digest[..8], GOLDEN);
    }

    #[test]
    fn a_bucket_verifies_only_under_its_own_name() {
        let own = keys(1);
        let (head, slots) = sealed(&own, NAME, &BLOCKS);
        for other in [
            BucketName { eviction: 70_001, ..NAME },
            BucketName { eviction: 70_000 + (1 << 32), ..NAME },
            BucketName { level: 8, ..NAME },
            BucketName { kind: BucketKind::Page(0), ..NAME },
        ] {
            assert!(own.verify(other, &head, &slots).is_none(), "{other:?}");
        }
        assert!(keys(2).verify(NAME, &head, &slots).is_none());
        let whole = [&head[..], &slots].concat();
        for byte in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[byte] ^= 0x10;
            let (head, slots) = flipped.split_at(head.len());
            assert!(own.verify(NAME, head, slots).is_none(), "byte {byte}");
        }
        for bytes in 0..whole.len() {
            let (head, slots) = whole[..bytes].split_at(head.len().min(bytes));
            assert!(own.verify(NAME, head, slots).is_none(), "cut to {bytes} bytes");
        }
        // Two slots exchanged.
        let swapped = [&slots[40..80], &slots[..40], &slots[80..]].concat();
        assert!(own.verify(NAME, &head, &swapped).is_none());
    }

    /// Simulates a cloned machine: two clients seal different contents under the same name and
    /// keys.
    #[test]
    fn one_name_sealed_twice_with_other_contents_shares_no_key_stream() {
        let keys = keys(1);
        let mut others = BLOCKS;
        others[2] = [0xFE; 40];
        let (head, slots) = sealed(&keys, NAME, &BLOCKS);
        let (other_head, other_slots) = sealed(&keys, NAME, &others);
        let shared = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a == b).count();
        assert!(shared(&head[..SEAL_BYTES], &other_head[..SEAL_BYTES]) < 8);
        assert!(shared(&slots[..80], &other_slots[..80]) < 8, "equal blocks");
        let difference: HashSet<u8> =
            slots[80..120].iter().zip(&other_slots[80..120]).map(|(a, b)| a ^ b).collect();
        assert!(difference.len() > 20, "the XOR of two blocks that differ by 1: {difference:?}");
        assert_eq!(sealed(&keys, NAME, &BLOCKS), (head, slots), "equal contents are sealed alike");
    }

    #[test]
    fn nonces_differ_with_the_name_the_table_and_every_block() {
        let keys = keys(1);
        let nonce_of = |name, table: &[u8], blocks: &[[u8; 40]; 6]| {
            let (head, _) = sealed_with(&keys, name, table, blocks);
            head[..NONCE_BYTES].to_vec()
        };
        let mut nonces = HashSet::from([nonce_of(NAME, TABLE, &BLOCKS)]);
        let next = BucketName { eviction: NAME.eviction + 1, ..NAME };
        assert!(nonces.insert(nonce_of(next, TABLE, &BLOCKS)));
        assert!(nonces.insert(nonce_of(NAME, b"the fable", &BLOCKS)));
        for slot in 0..BLOCKS.len() {
            let mut blocks = BLOCKS;
            blocks[slot][39] ^= 1;
            assert!(nonces.insert(nonce_of(NAME, TABLE, &blocks)), "slot {slot}");
        }
    }

    #[test]
    fn the_parts_of_a_bucket_have_distinct_key_streams() {
        let keys = keys(1);
        let (head, slots) = sealed(&keys, NAME, &[[0; 40]; 6]);
        let streams: HashSet<_> = slots.chunks(8).collect();
        assert_eq!(streams.len(), 30);
        let table: Vec<u8> = head[SEAL_BYTES..].iter().zip(TABLE).map(|(a, b)| a ^ b).collect();
        assert!(!slots.windows(8).any(|window| table.starts_with(window)));
    }

    #[test]
    fn names_are_distinct() {
        let mut names = HashSet::new();
        for eviction in [0, 1, 255, 256, u64::MAX] {
            for level in [0, 1, 40] {
                for kind in [BucketKind::Blocks, BucketKind::Page(0), BucketKind::Page(257)] {
                    assert!(names.insert(BucketName { eviction, level, kind }.bytes()));
                }
            }
        }
    }
}
