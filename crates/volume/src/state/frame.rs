//! The frame before each record of a state file, which can be found without the records before it.
//!
//! ```text
//! frame:  length │ number │ synced │ tag
//! ```
//!
//! A frame states the number of its record and how many records were durable when it was written.
//! It has its own tag. So an intact frame vouches for earlier records even if they cannot be read
//! and their ends are unknown.

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

/// Bytes of a tag.
pub(super) const TAG_BYTES: usize = 16;

const CLAIM_BYTES: usize = 4 + 8 + 8;

/// Bytes of a frame.
pub(super) const FRAME_BYTES: usize = CLAIM_BYTES + TAG_BYTES;

/// The purpose of a nonce, which makes it unique together with the number of the record.
#[derive(Clone, Copy)]
pub(super) enum NonceUse {
    Record = 0,
    Frame = 1,
}

/// The nonce of a part of a record.
pub(super) fn nonce(number: u64, purpose: NonceUse) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    nonce[8..].copy_from_slice(&(purpose as u32).to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Bytes of the record, without its tag.
    pub(super) length: u32,
    /// Number of records before this one.
    pub(super) number: u64,
    /// Number of records that were durable when this frame was written.
    pub(super) synced: u64,
}

impl Frame {
    /// The fields of the frame as bytes. They are the associated data of the frame and its record.
    pub(super) fn claim(&self) -> [u8; CLAIM_BYTES] {
        let mut claim = [0; CLAIM_BYTES];
        claim[..4].copy_from_slice(&self.length.to_le_bytes());
        claim[4..12].copy_from_slice(&self.number.to_le_bytes());
        claim[12..].copy_from_slice(&self.synced.to_le_bytes());
        claim
    }

    /// Seals the frame to bytes.
    pub(super) fn seal(&self, key: &LessSafeKey) -> [u8; FRAME_BYTES] {
        let claim = self.claim();
        let tag = key
            .seal_in_place_separate_tag(
                nonce(self.number, NonceUse::Frame),
                Aad::from(claim),
                &mut [],
            )
            .expect("GCM can seal an empty input");
        let mut bytes = [0; FRAME_BYTES];
        bytes[..CLAIM_BYTES].copy_from_slice(&claim);
        bytes[CLAIM_BYTES..].copy_from_slice(tag.as_ref());
        bytes
    }

    /// Decodes bytes as a frame, without authentication.
    pub(super) fn unauthenticated(bytes: &[u8; FRAME_BYTES]) -> Self {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let length = u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        Self { length, number: number(4), synced: number(12) }
    }

    /// The frame in `bytes`, if it is authentic.
    pub(super) fn open(bytes: &[u8; FRAME_BYTES], key: &LessSafeKey) -> Option<Self> {
        let frame = Self::unauthenticated(bytes);
        let (claim, tag) = bytes.split_at(CLAIM_BYTES);
        let mut tag = <[u8; TAG_BYTES]>::try_from(tag).ok()?;
        let nonce = nonce(frame.number, NonceUse::Frame);
        key.open_in_place(nonce, Aad::from(claim), &mut tag).ok()?;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::aead::{AES_256_GCM, UnboundKey};

    #[test]
    fn a_frame_opens_as_it_was_sealed_and_no_other_way() {
        let key = |fill| LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[fill; 32]).unwrap());
        let frame = Frame { length: 7, number: 1 << 40, synced: 3 };
        let bytes = frame.seal(&key(1));
        assert_eq!(Frame::open(&bytes, &key(1)), Some(frame));
        assert_eq!(Frame::open(&bytes, &key(2)), None);
        for bit in 0..8 * FRAME_BYTES {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Frame::open(&changed, &key(1)), None, "bit {bit}");
        }
    }
}
