//! Masks: the key stream of many runs, computed in one batched AES call.

use alloc::vec::Vec;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use zeroize::Zeroize;

use super::CHUNK_BYTES;
use super::key::Key;
use crate::geometry::BucketId;

/// Number of bits of a counter block that hold the index of the chunk in its region.
const CHUNK_BITS: u32 = 22;

/// Number of bits of a counter block that hold the bucket.
const BUCKET_BITS: u32 = 41;

/// The longest region that can be sealed, 64 MiB: one more chunk would repeat a mask.
pub const BODY_BYTES_MAX: usize = CHUNK_BYTES << CHUNK_BITS;

/// Bytes of masks to compute in one batch: larger batches exceed the nearest caches. A path of
/// small blocks is below this size.
pub(crate) const BATCH_BYTES: usize = 32 << 10;

/// Number of AES blocks that code with wide registers processes at once. It processes the remaining
/// blocks one by one, so a batch is rounded up to a multiple of this number if that is cheaper.
const LANES: usize = 64;

/// A tail of at most this many blocks is cheaper to process one by one than as a padded batch.
const TAIL_MAX: usize = 8;

/// The part of a bucket to which a mask applies. Every counter block contains the number of its
/// region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The header: addresses of the blocks.
    Header,
    /// The body: leaf labels and blocks.
    Body,
}

/// Consecutive chunks of a region for which masks are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskRun {
    counter: u64,
    /// The part `region ‖ bucket ‖ i` of the counter block of the first chunk.
    first: u64,
    chunks: usize,
}

impl MaskRun {
    /// The run of all chunks that contain the bytes `start..start + bytes` of the region.
    #[inline]
    pub(crate) fn new(
        region: Region,
        counter: u64,
        bucket: BucketId,
        start: usize,
        bytes: usize,
    ) -> Self {
        debug_assert!(start + bytes <= BODY_BYTES_MAX);
        let first_chunk = start / CHUNK_BYTES;
        Self {
            counter,
            first: (region as u64) << (BUCKET_BITS + CHUNK_BITS)
                | bucket.0 << CHUNK_BITS
                | first_chunk as u64,
            chunks: (start + bytes).div_ceil(CHUNK_BYTES) - first_chunk,
        }
    }

    /// The same run extended to `chunks` chunks, whose extra masks are unused.
    pub(crate) fn widen_to(self, chunks: usize) -> Self {
        Self { chunks: self.chunks.max(chunks), ..self }
    }

    /// Writes the counter blocks of the run: `counter ‖ region ‖ bucket ‖ i`.
    #[inline]
    fn lay_counters(&self, blocks: &mut [Block]) {
        let counter = u128::from(self.counter) << 64;
        for (name, block) in (self.first..).zip(blocks) {
            block.0 = (counter | u128::from(name)).to_be_bytes();
        }
    }
}

/// Computes masks, and counts the AES blocks.
pub(crate) struct Masks {
    /// The cipher that computes masks. If `None`, every mask is zero.
    cipher: Option<Aes128>,
    scratch: Vec<Block>,
    aes_blocks: u64,
}

impl Masks {
    pub(crate) fn aes128(key: &Key) -> Self {
        let cipher = Aes128::new(&Array::from(*key.bytes()));
        Self { cipher: Some(cipher), scratch: Vec::new(), aes_blocks: 0 }
    }

    pub(crate) fn zero() -> Self {
        Self { cipher: None, scratch: Vec::new(), aes_blocks: 0 }
    }

    pub(crate) fn aes_blocks(&self) -> u64 {
        self.aes_blocks
    }

    /// Starts a batch of masks.
    #[inline]
    pub(crate) fn batch(&mut self) -> MaskBatch<'_> {
        MaskBatch { masks: self, chunks: 0 }
    }

    #[cold]
    fn grow(&mut self, chunks: usize) {
        self.scratch.resize(chunks.next_multiple_of(LANES), Block::default());
    }
}

/// Runs whose masks are computed in one call.
pub(crate) struct MaskBatch<'a> {
    masks: &'a mut Masks,
    chunks: usize,
}

impl<'a> MaskBatch<'a> {
    /// Adds a run.
    #[inline]
    pub(crate) fn add(&mut self, run: MaskRun) {
        let start = self.chunks;
        self.chunks += run.chunks;
        if self.chunks > self.masks.scratch.len() {
            self.masks.grow(self.chunks);
        }
        if self.masks.cipher.is_some() {
            run.lay_counters(&mut self.masks.scratch[start..self.chunks]);
        }
    }

    /// Computes the masks, for reading in the order in which the runs were added.
    #[inline]
    pub(crate) fn make(self) -> MaskReader<'a> {
        let Self { masks, chunks } = self;
        if let Some(cipher) = &masks.cipher {
            let tail_is_long = chunks % LANES > TAIL_MAX;
            let padded = if tail_is_long { chunks.next_multiple_of(LANES) } else { chunks };
            cipher.encrypt_blocks(&mut masks.scratch[..padded]);
            masks.aes_blocks += chunks as u64;
        }
        MaskReader { masks: Array::slice_as_flattened(&masks.scratch[..chunks]) }
    }
}

impl Drop for Masks {
    fn drop(&mut self) {
        self.scratch.iter_mut().for_each(|block| block.0.zeroize());
    }
}

/// Reads the masks of a batch, run by run. A copy of the reader continues from the same run.
#[derive(Clone, Copy)]
pub(crate) struct MaskReader<'a> {
    masks: &'a [u8],
}

impl<'a> MaskReader<'a> {
    /// Splits the unread masks in two halves, and returns a reader for each half.
    #[inline]
    pub(crate) fn halves(self) -> [Self; 2] {
        let (first, second) = self.masks.split_at(self.masks.len() / 2);
        [first, second].map(|masks| Self { masks })
    }

    /// The mask of the next run, which starts at byte `start` of its region and has `bytes` bytes.
    #[inline]
    pub(crate) fn take(&mut self, start: usize, bytes: usize) -> &'a [u8] {
        let skip = start % CHUNK_BYTES;
        let (run, rest) = self.masks.split_at((skip + bytes).next_multiple_of(CHUNK_BYTES));
        self.masks = rest;
        &run[skip..skip + bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn mask(masks: &mut Masks, region: Region, counter: u64, bucket: u64, start: usize) -> Vec<u8> {
        let run = MaskRun::new(region, counter, BucketId(bucket), start, 16);
        make(masks, &[run]).take(start, 16).to_vec()
    }

    fn make<'a>(masks: &'a mut Masks, runs: &[MaskRun]) -> MaskReader<'a> {
        let mut batch = masks.batch();
        runs.iter().for_each(|run| batch.add(*run));
        batch.make()
    }

    #[test]
    fn a_mask_is_aes_of_the_documented_counter_block() {
        let key = Key::from_bytes(*b"YELLOW SUBMARINE");
        let mask = mask(&mut Masks::aes128(&key), Region::Body, 0x0102_0304_0506_0708, 5, 48);
        let mut block = Block::from([0; 16]);
        block[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        block[8..].copy_from_slice(&(1u64 << 63 | 5 << 22 | 3).to_be_bytes());
        Aes128::new(&Array::from(*key.bytes())).encrypt_block(&mut block);
        assert_eq!(mask, block.as_slice());
    }

    #[test]
    fn batches_give_the_masks_of_single_runs() {
        let key = Key::from_bytes([9; 16]);
        let ranges = (0..300usize).map(|i| (i * 37 % 100, 1 + i * 13 % 400));
        let runs: Vec<_> = ranges
            .clone()
            .zip(0u64..)
            .map(|((start, bytes), i)| {
                MaskRun::new(Region::Header, i, BucketId(i * i), start, bytes)
            })
            .collect();
        let mut together = Masks::aes128(&key);
        let mut together = make(&mut together, &runs);
        for ((start, bytes), run) in ranges.zip(&runs) {
            let mut alone = Masks::aes128(&key);
            assert_eq!(together.take(start, bytes), make(&mut alone, &[*run]).take(start, bytes));
        }
    }

    #[test]
    fn chunks_of_different_runs_never_share_a_mask() {
        let mut masks = Masks::aes128(&Key::from_bytes([1; 16]));
        let mut seen = HashSet::new();
        for region in [Region::Header, Region::Body] {
            for counter in [1, 2, u64::MAX] {
                for bucket in [0, 1, 2, (1 << 41) - 2] {
                    for start in [0, 16, BODY_BYTES_MAX - 16] {
                        let fresh = seen.insert(mask(&mut masks, region, counter, bucket, start));
                        assert!(fresh, "{region:?} {counter} {bucket} {start}");
                    }
                }
            }
        }
    }

    #[test]
    fn aes_blocks_are_counted_without_padding() {
        let mut masks = Masks::aes128(&Key::from_bytes([1; 16]));
        let run = MaskRun::new(Region::Body, 1, BucketId(0), 8, 16);
        make(&mut masks, &[run]);
        assert_eq!(masks.aes_blocks(), 2);
        make(&mut masks, &[run; 11]);
        assert_eq!(masks.aes_blocks(), 24);
    }
}
