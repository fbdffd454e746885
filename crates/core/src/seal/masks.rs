//! Masks: the keystream of many runs in one batched AES call.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use zeroize::Zeroize;

use super::CHUNK_BYTES;
use super::key::Key;
use crate::geometry::BucketId;

/// Bits of a counter block that number the chunks of a region.
const CHUNK_BITS: u32 = 22;

/// Bits of a counter block that name the bucket.
const BUCKET_BITS: u32 = 41;

/// The longest region that can be sealed, 64 MiB: one more chunk would repeat a mask.
pub const BODY_BYTES_MAX: usize = CHUNK_BYTES << CHUNK_BITS;

/// Masks of whole runs are made together up to this many chunks (32 KiB, so that they stay in the
/// nearest caches); a path of small blocks is one call.
const BATCH_CHUNKS: usize = 2048;

/// AES engines with wide registers take this many blocks at once, and the rest one by one: a batch
/// is rounded up to it when that is cheaper.
const LANES: usize = 64;

/// A tail up to this length is cheaper one by one.
const TAIL_MAX: usize = 8;

/// What part of a bucket a mask is for. Part of every counter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The addresses of the blocks.
    Header,
    /// Labels and blocks.
    Body,
}

/// A run of bytes of one region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskRun {
    pub(crate) region: Region,
    pub(crate) counter: u64,
    pub(crate) bucket: BucketId,
    first_chunk: u32,
    chunks: usize,
    /// Bytes of the first chunk before the run.
    pub(crate) skip: usize,
    pub(crate) bytes: usize,
}

impl MaskRun {
    /// `bytes` from byte `start` of the region on.
    #[inline]
    pub(crate) fn new(
        region: Region,
        counter: u64,
        bucket: BucketId,
        start: usize,
        bytes: usize,
    ) -> Self {
        debug_assert!(start + bytes <= BODY_BYTES_MAX);
        let skip = start % CHUNK_BYTES;
        Self {
            region,
            counter,
            bucket,
            first_chunk: (start / CHUNK_BYTES) as u32,
            chunks: (skip + bytes).div_ceil(CHUNK_BYTES),
            skip,
            bytes,
        }
    }

    /// Writes the counter blocks of the run: `counter ‖ region ‖ bucket ‖ i`.
    #[inline]
    fn lay_counters(&self, blocks: &mut [Block]) {
        let region = (self.region as u64) << (BUCKET_BITS + CHUNK_BITS);
        let first = region | self.bucket.0 << CHUNK_BITS | u64::from(self.first_chunk);
        let counter = self.counter.to_be_bytes();
        for (i, block) in (0..).zip(blocks) {
            block[..8].copy_from_slice(&counter);
            block[8..].copy_from_slice(&(first + i).to_be_bytes());
        }
    }
}

/// Makes masks, and counts what they cost.
pub(crate) struct Masks {
    /// `None`: every mask is zero.
    cipher: Option<Aes128>,
    scratch: Vec<Block>,
    aes_blocks: u64,
}

impl Masks {
    pub(crate) fn aes128(key: &Key) -> Self {
        let cipher = Aes128::new(&Array::from(*key.bytes()));
        Self {
            cipher: Some(cipher),
            scratch: Vec::new(),
            aes_blocks: 0,
        }
    }

    pub(crate) fn zero() -> Self {
        Self {
            cipher: None,
            scratch: Vec::new(),
            aes_blocks: 0,
        }
    }

    pub(crate) fn aes_blocks(&self) -> u64 {
        self.aes_blocks
    }

    /// Calls `each` with the number of every run and its mask, in order. The mask starts with the
    /// chunk that the run starts in.
    #[inline]
    pub(crate) fn for_each<R>(
        &mut self,
        runs: &[R],
        run_of: impl Fn(&R) -> MaskRun,
        mut each: impl FnMut(usize, &[u8]),
    ) {
        let mut done = 0;
        while done < runs.len() {
            let mut chunks = 0;
            let mut batch = 0;
            for run in &runs[done..] {
                let more = run_of(run).chunks;
                if batch > 0 && chunks + more > BATCH_CHUNKS {
                    break;
                }
                chunks += more;
                batch += 1;
            }
            let batch = &runs[done..done + batch];
            self.make(batch, &run_of, chunks);
            let mut masks = Array::slice_as_flattened(&self.scratch);
            for (i, run) in (done..).zip(batch) {
                let (mask, rest) = masks.split_at(run_of(run).chunks * CHUNK_BYTES);
                each(i, mask);
                masks = rest;
            }
            done += batch.len();
        }
    }

    fn make<R>(&mut self, batch: &[R], run_of: &impl Fn(&R) -> MaskRun, chunks: usize) {
        let padded = if chunks % LANES > TAIL_MAX {
            chunks.next_multiple_of(LANES)
        } else {
            chunks
        };
        if self.scratch.len() < padded {
            self.scratch.resize(padded, Block::default());
        }
        let Some(cipher) = &self.cipher else { return };
        let mut blocks = &mut self.scratch[..];
        for run in batch {
            let run = run_of(run);
            let (own, rest) = blocks.split_at_mut(run.chunks);
            run.lay_counters(own);
            blocks = rest;
        }
        cipher.encrypt_blocks(&mut self.scratch[..padded]);
        self.aes_blocks += chunks as u64;
    }
}

impl Drop for Masks {
    fn drop(&mut self) {
        self.scratch
            .as_mut_slice()
            .iter_mut()
            .for_each(|block| block.0.zeroize());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn mask_of(masks: &mut Masks, run: MaskRun) -> Vec<u8> {
        let mut bytes = Vec::new();
        masks.for_each(
            &[run],
            |run| *run,
            |_, mask| bytes = mask[run.skip..][..run.bytes].to_vec(),
        );
        bytes
    }

    #[test]
    fn a_mask_is_aes_of_the_documented_counter_block() {
        let key = Key::from_bytes(*b"YELLOW SUBMARINE");
        let run = MaskRun::new(Region::Body, 0x0102_0304_0506_0708, BucketId(5), 48, 16);
        let mask = mask_of(&mut Masks::aes128(&key), run);
        let mut block = Block::from([0; 16]);
        block[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        block[8..].copy_from_slice(&(1u64 << 63 | 5 << 22 | 3).to_be_bytes());
        Aes128::new(&Array::from(*key.bytes())).encrypt_block(&mut block);
        assert_eq!(mask, block.as_slice());
    }

    #[test]
    fn batches_give_the_masks_of_single_runs() {
        let key = Key::from_bytes([9; 16]);
        let runs: Vec<_> = (0..300u64)
            .map(|i| {
                let start = (i * 37 % 100) as usize;
                MaskRun::new(
                    Region::Header,
                    i,
                    BucketId(i * i),
                    start,
                    1 + (i * 13 % 400) as usize,
                )
            })
            .collect();
        let mut masks = Masks::aes128(&key);
        let mut seen = 0;
        masks.for_each(
            &runs,
            |run| *run,
            |i, mask| {
                assert_eq!(i, seen);
                seen += 1;
                let alone = mask_of(&mut Masks::aes128(&key), runs[i]);
                assert_eq!(&mask[runs[i].skip..][..runs[i].bytes], alone);
            },
        );
        assert_eq!(seen, runs.len());
    }

    #[test]
    fn chunks_of_different_runs_never_share_a_mask() {
        let mut masks = Masks::aes128(&Key::from_bytes([1; 16]));
        let mut seen = HashSet::new();
        for region in [Region::Header, Region::Body] {
            for counter in [1, 2, u64::MAX] {
                for bucket in [0, 1, 2, (1 << 41) - 2].map(BucketId) {
                    for start in [0, 16, BODY_BYTES_MAX - 16] {
                        let run = MaskRun::new(region, counter, bucket, start, 16);
                        assert!(seen.insert(mask_of(&mut masks, run)), "{run:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn aes_blocks_are_counted_without_padding() {
        let mut masks = Masks::aes128(&Key::from_bytes([1; 16]));
        mask_of(
            &mut masks,
            MaskRun::new(Region::Body, 1, BucketId(0), 8, 16),
        );
        assert_eq!(masks.aes_blocks(), 2);
    }
}
