//! The seal: AES-128 in counter mode, and the only way for bytes into storage.
//!
//! Every byte of a bucket that says anything is XORed with a mask
//!
//! ```text
//! AES_K( counter ‖ region ‖ bucket ‖ i )          64 + 1 + 41 + 22 bits, big-endian
//! ```
//!
//! where `i` numbers the 16-byte chunks of the region (Tiny ORAM, section IV-D). A bucket has two
//! regions, because RAW ORAM rewrites the header without the rest:
//!
//! | region | holds | counter in Path ORAM | counter in RAW ORAM |
//! |---|---|---|---|
//! | [`Region::Header`] | addresses (⊥ for dummies) | stored, fresh for each write | `IV2`: stored, fresh for each write |
//! | [`Region::Body`] | leaf labels and blocks | the same stored one | `IV1`: derived from the eviction count, stored nowhere |
//!
//! Fresh counters come from one [`WriteCounter`] of the client, never from what storage returned: a
//! store that lies about a counter gets garbage, not a keystream used twice. `K` is derived for
//! each tree from the session key, so that buckets of the same name in two trees share no mask.
//!
//! Masks are made for a whole path in one batched AES call.

pub(crate) mod counter;
mod key;
mod masks;
mod xor;

pub use counter::WriteCounter;
pub use key::Key;
pub use masks::{BODY_BYTES_MAX, Region};
pub(crate) use masks::{MaskRun, Masks};

use crate::geometry::BucketId;
use crate::store::{Blanks, Frames, TreeId};
use xor::xor;

/// Bytes of the counter that stands in clear at the start of every bucket.
pub(crate) const COUNTER_BYTES: usize = 8;

/// Bytes of one AES block, the unit of masks.
pub(crate) const CHUNK_BYTES: usize = 16;

/// Pieces that the seal has filled: the proof that a [`crate::store::BucketStore`] asks for.
pub struct Sealed<'a>(Frames<'a>);

impl<'a> Sealed<'a> {
    /// What storage gets: ciphertext and counters. Public.
    pub fn frames(&self) -> Frames<'a> {
        self.0
    }
}

/// Hides what a simulation writes from nobody.
///
/// There is no way to this value but through a constructor that says what it means.
#[derive(Clone, Copy, Debug)]
pub struct NoSecrecy(());

impl NoSecrecy {
    /// For simulations and tests on data that is no secret: blocks and addresses go to storage in
    /// clear.
    pub fn this_is_a_simulation_without_secrets() -> Self {
        Self(())
    }
}

/// Seals and opens the buckets of one tree.
pub struct Sealer {
    masks: Masks,
}

/// One region of one piece of a trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedRun {
    pub(crate) mask: MaskRun,
    /// Which piece of the trip.
    pub(crate) piece: usize,
    /// Where in that piece the run starts.
    pub(crate) offset: usize,
}

impl SealedRun {
    /// The header of `bucket`, in a piece that starts with it.
    #[inline]
    pub(crate) fn header(piece: usize, bucket: BucketId, counter: u64, bytes: usize) -> Self {
        let mask = MaskRun::new(Region::Header, counter, bucket, 0, bytes);
        Self {
            mask,
            piece,
            offset: COUNTER_BYTES,
        }
    }

    /// `bytes` of the body of `bucket`, from byte `start` of the body on, in a piece that holds the
    /// whole bucket.
    #[inline]
    pub(crate) fn body(
        piece: usize,
        bucket: BucketId,
        counter: u64,
        body_offset: usize,
        start: usize,
        bytes: usize,
    ) -> Self {
        let mask = MaskRun::new(Region::Body, counter, bucket, start, bytes);
        Self {
            mask,
            piece,
            offset: body_offset + start,
        }
    }
}

impl Sealer {
    /// AES-128 under the key that `key` gives to `tree`.
    pub fn aes128(key: &Key, tree: TreeId) -> Self {
        Self {
            masks: Masks::aes128(&key.for_tree(tree)),
        }
    }

    /// No encryption at all. Addresses, labels and data go to storage in clear.
    pub fn null(_: NoSecrecy) -> Self {
        Self {
            masks: Masks::zero(),
        }
    }

    /// AES blocks computed so far for sealing and opening. Public: it depends on the number of
    /// accesses alone.
    pub fn aes_blocks(&self) -> u64 {
        self.masks.aes_blocks()
    }

    /// Opens `runs` of `frames`, and calls `each` with the number of the run and its reader.
    #[inline]
    pub(crate) fn open(
        &mut self,
        frames: Frames<'_>,
        runs: &[SealedRun],
        mut each: impl FnMut(usize, Opened<'_>),
    ) {
        self.masks.for_each(
            runs,
            |run| run.mask,
            |i, mask| {
                let run = &runs[i];
                let end = run.offset + run.mask.bytes;
                let sealed = &frames.get(run.piece)[run.offset..end];
                each(
                    i,
                    Opened {
                        sealed,
                        mask: &mask[run.mask.skip..],
                    },
                );
            },
        );
    }

    /// Fills `blanks`: `each` is called with the number of each run and a writer for it. What it
    /// does not write becomes sealed zeros. Headers get their counter in front.
    #[inline]
    pub(crate) fn seal<'a>(
        &mut self,
        mut blanks: Blanks<'a>,
        runs: &[SealedRun],
        mut each: impl FnMut(usize, &mut Sealing<'_>),
    ) -> Sealed<'a> {
        self.masks.for_each(
            runs,
            |run| run.mask,
            |i, mask| {
                let run = &runs[i];
                let piece = blanks.get_mut(run.piece);
                if run.mask.region == Region::Header {
                    piece[..COUNTER_BYTES].copy_from_slice(&run.mask.counter.to_be_bytes());
                }
                let end = run.offset + run.mask.bytes;
                let mut sealing = Sealing {
                    blank: &mut piece[run.offset..end],
                    mask: &mask[run.mask.skip..],
                };
                each(i, &mut sealing);
                let rest = sealing.blank.len();
                sealing.zeros(rest);
            },
        );
        Sealed(blanks.into_frames())
    }
}

/// The counter that stands in clear at the start of a bucket. Untrusted.
#[inline]
pub(crate) fn stored_counter(bucket: &[u8]) -> u64 {
    let mut counter = [0; COUNTER_BYTES];
    counter.copy_from_slice(&bucket[..COUNTER_BYTES]);
    u64::from_be_bytes(counter)
}

/// A run being opened, read from its start on.
pub(crate) struct Opened<'a> {
    sealed: &'a [u8],
    mask: &'a [u8],
}

impl Opened<'_> {
    /// Opens the next bytes into `plain`.
    #[inline]
    pub(crate) fn read(&mut self, plain: &mut [u8]) {
        let bytes = plain.len();
        xor(plain, &self.sealed[..bytes], &self.mask[..bytes]);
        self.skip(bytes);
    }

    /// Passes over the next bytes.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.sealed = &self.sealed[bytes..];
        self.mask = &self.mask[bytes..];
    }
}

/// A run being sealed, written from its start on. Plaintext never touches the blank.
pub(crate) struct Sealing<'a> {
    blank: &'a mut [u8],
    mask: &'a [u8],
}

impl Sealing<'_> {
    /// Seals `plain` into the next bytes.
    #[inline]
    pub(crate) fn write(&mut self, plain: &[u8]) {
        let (blank, mask) = self.advance(plain.len());
        xor(blank, plain, mask);
    }

    /// Seals zeros into the next bytes.
    #[inline]
    pub(crate) fn zeros(&mut self, bytes: usize) {
        let (blank, mask) = self.advance(bytes);
        blank.copy_from_slice(mask);
    }

    #[inline]
    fn advance(&mut self, bytes: usize) -> (&mut [u8], &[u8]) {
        let (blank, rest) = std::mem::take(&mut self.blank).split_at_mut(bytes);
        let (mask, mask_rest) = self.mask.split_at(bytes);
        self.blank = rest;
        self.mask = mask_rest;
        (blank, mask)
    }
}

#[cfg(test)]
mod tests;
