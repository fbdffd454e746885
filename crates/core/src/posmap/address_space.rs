//! The addresses of data and position-map blocks that share one tree.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::{Error, ErrorKind};

/// One range of addresses for the blocks of all levels: data on level 0, then the levels of the
/// position map. The positions of the last level's blocks are on the client. The *chain* of a data
/// block consists of the block itself and, on each level above, the position-map block for it.
///
/// ```text
/// ┌────────────────────┬──────────────┬─────────┐
/// │ level 0: data      │ level 1      │ level 2 │    the block of level i for data block a
/// └────────────────────┴──────────────┴─────────┘    is start_i + a / X^i
/// ```
///
/// A *group* consists of all children of one position-map block. Each level but the last has
/// addresses for complete groups, so that resetting the last group costs the same as any other.
#[derive(Clone, Debug)]
pub(crate) struct AddressSpace {
    capacity: u64,
    fan_out: u64,
    /// The first address of each level.
    starts: Vec<u64>,
    /// The number of addresses of all levels together.
    blocks: u64,
    /// Number of blocks of the last level.
    client_entries: u64,
}

impl AddressSpace {
    pub(crate) fn new(capacity: u64, fan_out: u64, client_entries_max: u64) -> Result<Self, Error> {
        let invalid = |message| Err(Error::new(ErrorKind::InvalidConfig, message));
        if client_entries_max == 0 {
            return invalid(
                "the client must keep at least one entry: raise client_entries_max".to_owned(),
            );
        }
        let mut starts = vec![0];
        let (mut level_blocks, mut start) = (capacity, 0u64);
        while level_blocks > client_entries_max {
            let groups = level_blocks.div_ceil(fan_out);
            let Some(end) = groups.checked_mul(fan_out).and_then(|all| start.checked_add(all))
            else {
                return invalid(format!("{capacity} blocks and their map exceed 2^64 addresses"));
            };
            start = end;
            starts.push(start);
            level_blocks = groups;
        }
        match start.checked_add(level_blocks) {
            Some(blocks) => {
                Ok(Self { capacity, fan_out, starts, blocks, client_entries: level_blocks })
            }
            None => invalid(format!("{capacity} blocks and their map exceed 2^64 addresses")),
        }
    }

    /// The number of levels of the position map.
    pub(crate) fn depth(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(crate) fn client_entries(&self) -> u64 {
        self.client_entries
    }

    /// The number within `level` of the block on the chain of data block `data`.
    pub(crate) fn number(&self, level: usize, data: u64) -> u64 {
        (0..level).fold(data, |number, _| number / self.fan_out)
    }

    /// The address of the block of `level` on the chain of data block `data`.
    pub(crate) fn address(&self, level: usize, data: u64) -> u64 {
        self.starts[level] + self.number(level, data)
    }

    /// The index of a block among the children of its parent. The block is on `level` of the chain
    /// of `data`.
    pub(crate) fn child(&self, level: usize, data: u64) -> usize {
        (self.number(level, data) % self.fan_out) as usize
    }

    /// The addresses of a block's group: all children of its parent. The block is on `level` of the
    /// chain of `data`.
    pub(crate) fn group(&self, level: usize, data: u64) -> Range<u64> {
        let first = self.starts[level] + self.number(level + 1, data) * self.fan_out;
        first..first + self.fan_out
    }

    /// The parent of the block `address`, and the block's index among the parent's children. If the
    /// position of `address` is in the client's table, returns `Err` with the index of its entry.
    pub(crate) fn parent(&self, address: u64) -> Result<(u64, usize), u64> {
        let level = self.level(address);
        let number = address - self.starts[level];
        match self.starts.get(level + 1) {
            Some(start) => Ok((start + number / self.fan_out, (number % self.fan_out) as usize)),
            None => Err(number),
        }
    }

    /// The level of an address.
    pub(crate) fn level(&self, address: u64) -> usize {
        self.starts.partition_point(|start| *start <= address) - 1
    }

    /// The addresses of the blocks of a level.
    pub(crate) fn level_addresses(&self, level: usize) -> Range<u64> {
        self.starts[level]..self.starts[level] + self.blocks_of(level)
    }

    /// The number of a block within its level.
    pub(crate) fn number_of(&self, address: u64) -> u64 {
        address - self.starts[self.level(address)]
    }

    /// The address of block `number` of level `level`.
    pub(crate) fn block(&self, level: usize, number: u64) -> u64 {
        self.starts[level] + number
    }

    /// Whether an address belongs to a block, rather than to the padding of its level's last group.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address < self.blocks && self.number_of(address) < self.blocks_of(self.level(address))
    }

    /// The numbers of the parents of a range of blocks. `numbers` counts blocks on the level below
    /// the parents.
    pub(crate) fn parents(&self, numbers: &Range<u64>) -> Range<u64> {
        let first = numbers.start / self.fan_out;
        let end = if numbers.is_empty() { first } else { numbers.end.div_ceil(self.fan_out) };
        first..end
    }

    /// The numbers on `level` of the blocks whose positions are in block `parent` of the level
    /// above.
    pub(crate) fn children(&self, level: usize, parent: u64) -> Range<u64> {
        let first = parent * self.fan_out;
        first..(first + self.fan_out).min(self.blocks_of(level))
    }

    /// The number of blocks of a level.
    fn blocks_of(&self, level: usize) -> u64 {
        (0..level).fold(self.capacity, |blocks, _| blocks.div_ceil(self.fan_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_one_address_and_its_parent_knows_it() {
        for (capacity, fan_out, client_entries_max) in
            [(1, 2, 1), (7, 2, 1), (100, 3, 4), (64, 8, 1), (1000, 32, 1), (9, 32, 9)]
        {
            let space = AddressSpace::new(capacity, fan_out, client_entries_max).unwrap();
            assert!(space.client_entries() <= client_entries_max);
            for data in 0..capacity {
                for level in 0..=space.depth() {
                    let address = space.address(level, data);
                    assert!(address < space.blocks());
                    if level == space.depth() {
                        assert_eq!(space.parent(address), Err(space.number(level, data)));
                        continue;
                    }
                    let parent = space.address(level + 1, data);
                    let child = space.child(level, data);
                    assert_eq!(space.parent(address), Ok((parent, child)));
                    let numbers = space.children(level, space.number(level + 1, data));
                    assert!(numbers.contains(&space.number_of(address)));
                    assert_eq!(
                        space.parents(&numbers),
                        space.number_of(parent)..space.number_of(parent) + 1
                    );
                    assert!(space.contains(address) && space.level(address) == level);
                    assert_eq!(space.block(level, space.number_of(address)), address);
                    let group = space.group(level, data);
                    assert_eq!(group.start + child as u64, address);
                    assert!(group.end <= space.starts[level + 1]);
                }
            }
        }
    }
}
