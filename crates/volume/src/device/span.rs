//! Splits byte ranges into blocks.

use std::ops::Range;

/// The part of a byte range that lies in one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockPart {
    pub(crate) block: u64,
    /// The position of these bytes within the block.
    pub(crate) within: Range<usize>,
    /// The offset of these bytes from the start of the range.
    pub(crate) at: usize,
}

impl BlockPart {
    pub(crate) fn is_whole(&self, block_bytes: usize) -> bool {
        self.within.len() == block_bytes
    }

    /// The bytes of the range that lie in this block.
    pub(crate) fn range(&self) -> Range<usize> {
        self.at..self.at + self.within.len()
    }
}

/// Splits `bytes` bytes from `offset` on into blocks.
pub(crate) fn parts(
    offset: u64,
    bytes: usize,
    block_bytes: usize,
) -> impl Iterator<Item = BlockPart> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < bytes).then(|| {
            let position = offset + at as u64;
            let start = (position % block_bytes as u64) as usize;
            let length = (block_bytes - start).min(bytes - at);
            let block = position / block_bytes as u64;
            let part = BlockPart { block, within: start..start + length, at };
            at += length;
            part
        })
    })
}

/// The blocks that lie wholly in a byte range, and the byte ranges before and after them.
pub(crate) fn whole_blocks(range: Range<u64>, block_bytes: u64) -> (Range<u64>, [Range<u64>; 2]) {
    let first = range.start.div_ceil(block_bytes);
    let end = range.end / block_bytes;
    if first >= end {
        return (0..0, [range.clone(), range.end..range.end]);
    }
    let edges = [range.start..first * block_bytes, end * block_bytes..range.end];
    (first..end, edges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_range(offset in 0u64..1000, bytes in 0usize..1000, block in 1usize..100) {
            let covered: Vec<u64> = parts(offset, bytes, block)
                .flat_map(|part| {
                    assert!(part.within.end <= block);
                    let start = part.block * block as u64;
                    part.within.map(move |i| start + i as u64)
                })
                .collect();
            prop_assert_eq!(covered, (offset..offset + bytes as u64).collect::<Vec<_>>());
        }

        #[test]
        fn whole_blocks_and_edges_are_the_range(
            start in 0u64..500,
            bytes in 0u64..500,
            block in 1u64..60,
        ) {
            let (whole, [before, after]) = whole_blocks(start..start + bytes, block);
            let covered: Vec<_> = before
                .clone()
                .chain(whole.start * block..whole.end * block)
                .chain(after.clone())
                .collect();
            prop_assert_eq!(covered, (start..start + bytes).collect::<Vec<_>>());
            prop_assert!(before.end - before.start < 2 * block && after.end - after.start < block);
        }
    }
}
