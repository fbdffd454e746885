//! A cache of addressed blocks in client memory.

#[cfg(feature = "std")]
mod image;

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::memory::zeros;
use crate::wiped::WipedBytes;

/// The record that a cache keeps of a cached block, in addition to the block's bytes.
pub(crate) trait CacheTag: Copy {
    /// The block's address.
    fn address(&self) -> u64;
}

/// A set-associative cache with `ways` lines per set and LRU replacement.
pub(crate) struct BlockCache<T> {
    sets: u64,
    ways: usize,
    lines: Vec<CacheLine<T>>,
    /// The bytes of the blocks, in the order of the lines that hold them.
    bytes: WipedBytes,
    block_bytes: usize,
    /// Number of uses so far: the clock of the LRU order.
    clock: u64,
}

/// A line of the cache: holds one block, or is empty.
#[derive(Clone, Copy)]
struct CacheLine<T> {
    tag: Option<T>,
    last_use: u64,
}

/// The index of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(usize);

impl LineId {
    /// The index, below the number of lines.
    pub(crate) fn number(self) -> u64 {
        self.0 as u64
    }
}

impl<T: CacheTag> BlockCache<T> {
    /// Makes an empty cache for `blocks` blocks of `block_bytes` bytes each, in sets of `ways`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if `blocks` is 0 or not a multiple of `ways`, or if the system
    /// has no memory for the blocks.
    pub(crate) fn new(blocks: usize, ways: usize, block_bytes: usize) -> Result<Self, Error> {
        if blocks == 0 || ways == 0 || !blocks.is_multiple_of(ways) {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "a cache needs a positive multiple of its ways in blocks: {blocks} blocks with \
                     {ways} ways do not work"
                ),
            ));
        }
        let bytes = blocks.checked_mul(block_bytes).and_then(zeros).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "no memory for a cache of {blocks} blocks of {block_bytes} bytes: use a \
                     smaller one"
                ),
            )
        })?;
        Ok(Self {
            sets: (blocks / ways) as u64,
            ways,
            lines: vec![CacheLine { tag: None, last_use: 0 }; blocks],
            bytes: bytes.into(),
            block_bytes,
            clock: 0,
        })
    }

    /// Bytes of client memory for blocks and their tags.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.lines.as_slice())
    }

    /// The line that holds a block, if the block is cached.
    pub(crate) fn find(&self, address: u64) -> Option<LineId> {
        self.set(address).find(|line| self.tag(*line).is_some_and(|tag| tag.address() == address))
    }

    /// Finds the line of a block like [`Self::find`], and marks the block as used.
    pub(crate) fn find_for_use(&mut self, address: u64) -> Option<LineId> {
        let line = self.find(address)?;
        self.clock += 1;
        self.lines[line.0].last_use = self.clock;
        Some(line)
    }

    /// The line that a block should take if it is not in the cache yet. If the line holds another
    /// block, that block is the victim.
    pub(crate) fn line_for(&self, address: u64) -> LineId {
        self.set(address)
            .min_by_key(|line| (self.tag(*line).is_some(), self.lines[line.0].last_use))
            .expect("a set has at least one way")
    }

    /// Marks a line as holding the block with the tag `tag`, and the block as used. The line must
    /// be empty, or its earlier block [released](Self::release). Does not change the line's bytes,
    /// which the caller writes.
    pub(crate) fn fill(&mut self, line: LineId, tag: T) {
        self.clock += 1;
        self.lines[line.0] = CacheLine { tag: Some(tag), last_use: self.clock };
    }

    pub(crate) fn tag(&self, line: LineId) -> Option<T> {
        self.lines[line.0].tag
    }

    /// The tag of the block in a line; `None` if the line is empty.
    pub(crate) fn tag_mut(&mut self, line: LineId) -> Option<&mut T> {
        self.lines[line.0].tag.as_mut()
    }

    /// Removes the block of a line. Its bytes stay until the next block overwrites them.
    pub(crate) fn release(&mut self, line: LineId) {
        self.lines[line.0].tag = None;
    }

    pub(crate) fn block(&self, line: LineId) -> &[u8] {
        &self.bytes[line.0 * self.block_bytes..][..self.block_bytes]
    }

    pub(crate) fn block_mut(&mut self, line: LineId) -> &mut [u8] {
        &mut self.bytes[line.0 * self.block_bytes..][..self.block_bytes]
    }

    /// The tags of all cached blocks, each with the line that holds the block.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (LineId, T)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(|(i, line)| Some((LineId(i), line.tag?)))
    }

    /// The lines that can hold the block `address`.
    fn set(&self, address: u64) -> impl Iterator<Item = LineId> + use<T> {
        let first = (address % self.sets) as usize * self.ways;
        (first..first + self.ways).map(LineId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl CacheTag for u64 {
        fn address(&self) -> u64 {
            *self
        }
    }

    fn put(cache: &mut BlockCache<u64>, address: u64) -> Option<u64> {
        let line = cache.line_for(address);
        let victim = cache.tag(line);
        cache.release(line);
        cache.fill(line, address);
        cache.block_mut(line).fill(address as u8);
        victim
    }

    #[test]
    fn a_direct_mapped_cache_has_one_line_for_each_address() {
        let mut cache = BlockCache::new(4, 1, 16).unwrap();
        assert_eq!([0, 1, 6].map(|address| put(&mut cache, address)), [None; 3]);
        assert_eq!(put(&mut cache, 5), Some(1));
        assert_eq!([1, 2].map(|address| cache.find(address)), [None; 2]);
        let line = cache.find(5).unwrap();
        assert_eq!((cache.block(line), cache.blocks().count()), (&[5; 16][..], 3));
    }

    #[test]
    fn the_least_recently_used_block_is_the_victim() {
        let mut cache = BlockCache::new(6, 3, 16).unwrap();
        assert_eq!([0, 2, 4].map(|address| put(&mut cache, address)), [None; 3]);
        cache.find_for_use(0).unwrap();
        cache.find(2).unwrap();
        assert_eq!(put(&mut cache, 6), Some(2), "`find` does not count as a use");
        assert_eq!(put(&mut cache, 8), Some(4));
        assert_eq!(put(&mut cache, 1), None, "another set");
    }
}
