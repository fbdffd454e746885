//! The blocks of a volume, behind a write-back cache.

use std::ops::Range;

use oblivio_core::store::BucketStore;
use oblivio_core::{Access, Op};
use zeroize::Zeroizing;

use super::cache::Cache;
use super::span::whole_blocks;
use crate::error::VolumeError;
use crate::volume::Volume;

/// What workers have in common: a volume, and what is at hand of it.
pub(super) struct Blocks<S> {
    pub(super) volume: Volume<S>,
    pub(super) cache: Cache,
    pub(super) block_bytes: usize,
    /// Of the disk.
    pub(super) bytes: u64,
}

impl<S: BucketStore> Blocks<S> {
    pub(super) fn new(volume: Volume<S>) -> Self {
        let block_bytes = volume.block_bytes();
        let bytes = volume.blocks() * block_bytes as u64;
        Self { volume, cache: Cache::new(), block_bytes, bytes }
    }

    /// Makes accesses, in this order: reads blocks into the cache, writes those to storage that have
    /// been dirty for longest, and reads others into nowhere.
    pub(super) fn exchange(
        &mut self,
        read: &[u64],
        write_back: usize,
        dummies: &[u64],
    ) -> Result<(), VolumeError> {
        let mut data: Vec<_> =
            read.iter().map(|_| Zeroizing::new(vec![0; self.block_bytes])).collect();
        let reads = read.iter().zip(&mut data);
        let reads = reads.map(|(block, data)| Access { address: *block, op: Op::Read(data) });
        let dirty = self.cache.oldest_dirty(write_back);
        let written: Vec<_> = dirty.iter().map(|(block, _)| *block).collect();
        let writes = dirty.into_iter();
        let writes = writes.map(|(block, data)| Access { address: block, op: Op::Write(data) });
        let mut nowhere = Zeroizing::new(vec![0; dummies.len() * self.block_bytes]);
        let nowhere = nowhere.chunks_exact_mut(self.block_bytes);
        let dummies = dummies.iter().zip(nowhere);
        let dummies = dummies.map(|(block, data)| Access { address: *block, op: Op::Read(data) });
        let mut batch: Vec<_> = reads.chain(writes).chain(dummies).collect();
        self.volume.access(&mut batch)?;
        drop(batch);
        for (block, data) in read.iter().zip(data) {
            self.cache.insert_clean(*block, data);
        }
        self.cache.mark_clean(&written);
        Ok(())
    }

    /// Forgets the blocks that lie wholly in a range of bytes, and returns what is left of it.
    pub(super) fn forget(&mut self, range: Range<u64>) -> Result<[Range<u64>; 2], VolumeError> {
        let (whole, edges) = whole_blocks(range, self.block_bytes as u64);
        if !whole.is_empty() {
            self.forget_blocks(whole)?;
        }
        Ok(edges)
    }

    pub(super) fn forget_blocks(&mut self, blocks: Range<u64>) -> Result<(), VolumeError> {
        self.cache.remove_range(blocks.clone());
        self.volume.forget(blocks)
    }
}
