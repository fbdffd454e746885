//! Blocks on the client, each with a name: a cache, whatever it is in front of.

#[cfg(feature = "std")]
mod image;

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::memory::zeros;
use crate::wiped::WipedBytes;

/// What a cache notes of a block that is in it.
pub(crate) trait Named: Copy {
    /// Its address.
    fn address(&self) -> u64;
}

/// A set-associative cache: an address has `ways` places, and the one unused for longest goes first.
pub(crate) struct BlockCache<H> {
    sets: u64,
    ways: usize,
    lines: Vec<Line<H>>,
    /// The bytes of the blocks, in the order of `lines`.
    bytes: WipedBytes,
    block_bytes: usize,
    /// Uses so far.
    clock: u64,
}

/// A place of the cache. It may be empty.
#[derive(Clone, Copy)]
struct Line<H> {
    held: Option<H>,
    last_use: u64,
}

/// Which place of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineId(usize);

impl LineId {
    /// Its number, below the blocks of the cache.
    pub(crate) fn number(self) -> u64 {
        self.0 as u64
    }
}

impl<H: Named> BlockCache<H> {
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when `blocks` is 0 or no multiple of `ways`, or the system has no
    /// memory for them.
    pub(crate) fn new(blocks: usize, ways: usize, block_bytes: usize) -> Result<Self, Error> {
        if blocks == 0 || ways == 0 || !blocks.is_multiple_of(ways) {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "a cache has at least one block, and a multiple of its ways: {blocks} with \
                     {ways} ways is none"
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
            lines: vec![Line { held: None, last_use: 0 }; blocks],
            bytes: bytes.into(),
            block_bytes,
            clock: 0,
        })
    }

    /// Client memory for blocks and their names.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.lines.as_slice())
    }

    /// Where a block is, if it is here.
    pub(crate) fn find(&self, address: u64) -> Option<LineId> {
        self.set(address)
            .find(|line| self.held(*line).is_some_and(|held| held.address() == address))
    }

    /// As [`Self::find`], for a block that is used.
    pub(crate) fn find_for_use(&mut self, address: u64) -> Option<LineId> {
        let line = self.find(address)?;
        self.clock += 1;
        self.lines[line.0].last_use = self.clock;
        Some(line)
    }

    /// The line that a block which is not here would take. Whatever it holds is the victim.
    pub(crate) fn line_for(&self, address: u64) -> LineId {
        self.set(address)
            .min_by_key(|line| (self.held(*line).is_some(), self.lines[line.0].last_use))
            .expect("a set has at least one way")
    }

    /// Fills a line whose block [has been taken out](Self::release).
    pub(crate) fn fill(&mut self, line: LineId, held: H) {
        self.clock += 1;
        self.lines[line.0] = Line { held: Some(held), last_use: self.clock };
    }

    pub(crate) fn held(&self, line: LineId) -> Option<H> {
        self.lines[line.0].held
    }

    /// What is noted of a block that is here.
    pub(crate) fn held_mut(&mut self, line: LineId) -> Option<&mut H> {
        self.lines[line.0].held.as_mut()
    }

    /// Forgets the block of a line; its bytes stay until another's replace them.
    pub(crate) fn release(&mut self, line: LineId) {
        self.lines[line.0].held = None;
    }

    pub(crate) fn block(&self, line: LineId) -> &[u8] {
        &self.bytes[line.0 * self.block_bytes..][..self.block_bytes]
    }

    pub(crate) fn block_mut(&mut self, line: LineId) -> &mut [u8] {
        &mut self.bytes[line.0 * self.block_bytes..][..self.block_bytes]
    }

    /// Every block that is here.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (LineId, H)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(|(i, line)| Some((LineId(i), line.held?)))
    }

    /// The lines that may hold `address`.
    fn set(&self, address: u64) -> impl Iterator<Item = LineId> + use<H> {
        let first = (address % self.sets) as usize * self.ways;
        (first..first + self.ways).map(LineId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Named for u64 {
        fn address(&self) -> u64 {
            *self
        }
    }

    fn put(cache: &mut BlockCache<u64>, address: u64) -> Option<u64> {
        let line = cache.line_for(address);
        let victim = cache.held(line);
        cache.release(line);
        cache.fill(line, address);
        cache.block_mut(line).fill(address as u8);
        victim
    }

    #[test]
    fn a_direct_mapped_one_has_one_place_for_each_address() {
        let mut cache = BlockCache::new(4, 1, 16).unwrap();
        assert_eq!([0, 1, 6].map(|address| put(&mut cache, address)), [None; 3]);
        assert_eq!(put(&mut cache, 5), Some(1));
        assert_eq!([1, 2].map(|address| cache.find(address)), [None; 2]);
        let line = cache.find(5).unwrap();
        assert_eq!((cache.block(line), cache.blocks().count()), (&[5; 16][..], 3));
    }

    #[test]
    fn the_block_unused_for_longest_goes_first() {
        let mut cache = BlockCache::new(6, 3, 16).unwrap();
        assert_eq!([0, 2, 4].map(|address| put(&mut cache, address)), [None; 3]);
        cache.find_for_use(0).unwrap();
        cache.find(2).unwrap();
        assert_eq!(put(&mut cache, 6), Some(2), "a mere look is no use");
        assert_eq!(put(&mut cache, 8), Some(4));
        assert_eq!(put(&mut cache, 1), None, "that is another set");
    }
}
