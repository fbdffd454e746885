//! A position map in the tree itself that records which blocks exist: for rotating RAW ORAM.
//!
//! As in Freecursive ORAM, data and position map share one tree and one range of addresses, and
//! position-map blocks in use stay on the client. Unlike in Freecursive ORAM, a position-map block
//! holds leaves instead of counters, so no counter can overflow and force other blocks to move.
//! Blocks of a disk are large: a position-map block of 4 KiB holds 1024 leaves of 4 bytes, so a
//! level of the map has about a thousandth of the blocks of the level below.
//!
//! ```text
//! entry (of a block or of the table): 0, or (leaf ‖ live) + 1; 4 bytes below 2^31 leaves, else 8
//! ```
//!
//! *Live* has two meanings. A data block that is mapped but not live reads as zeros. A position-map
//! block that is mapped but not live must be emptied before use: nothing below it is live. So a
//! large range can be deleted without reading its blocks.

#[cfg(fuzzing)]
pub mod fuzzing;
mod lru_plb;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use lru_plb::LruPlb;
pub(crate) use lru_plb::PlbBlock;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::address_space::AddressSpace;
use super::{LivePosMap, Mapping, draw_leaf};
use crate::error::{Error, ErrorKind};
use crate::geometry::Leaf;

/// The parameters that split a position map between the client and the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recursion {
    /// Number of data blocks (N). The tree's capacity also includes position-map blocks.
    pub data_blocks: u64,
    /// Maximum number of entries of the position map in client memory, at least 1. An entry takes 4
    /// bytes, or 8 in trees of `2^31` leaves or more.
    pub client_entries_max: u64,
    /// Maximum number of position-map blocks on the client (the PLB): at least the number of levels
    /// of the map plus 1.
    pub plb_blocks: usize,
}

impl Recursion {
    /// Number of addresses that the tree needs if its leaves are on `leaf_level`. Public.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent.
    pub fn tree_blocks(&self, block_bytes: usize, leaf_level: u8) -> Result<u64, Error> {
        Ok(self.space(block_bytes, leaf_level)?.blocks())
    }

    /// Levels of the position map in the tree. Public.
    ///
    /// # Errors
    /// See [`Self::tree_blocks`].
    pub fn depth(&self, block_bytes: usize, leaf_level: u8) -> Result<usize, Error> {
        Ok(self.space(block_bytes, leaf_level)?.depth())
    }

    /// Entries of the position map in client memory. Public.
    ///
    /// # Errors
    /// See [`Self::tree_blocks`].
    pub fn client_entries(&self, block_bytes: usize, leaf_level: u8) -> Result<u64, Error> {
        Ok(self.space(block_bytes, leaf_level)?.client_entries())
    }

    fn space(&self, block_bytes: usize, leaf_level: u8) -> Result<AddressSpace, Error> {
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidConfig, message));
        let fan_out = (block_bytes / EntryFormat::new(leaf_level).bytes) as u64;
        if fan_out < 2 {
            return invalid(format!(
                "a block of {block_bytes} bytes cannot hold two entries of a position map"
            ));
        }
        let space = AddressSpace::new(self.data_blocks, fan_out, self.client_entries_max)?;
        if self.plb_blocks <= space.depth() {
            return invalid(format!(
                "the client keeps {} blocks of a position map of {} levels: it must keep at least \
                 one more than the levels",
                self.plb_blocks,
                space.depth()
            ));
        }
        Ok(space)
    }
}

/// The encoding of entries.
#[derive(Clone, Copy)]
struct EntryFormat {
    bytes: usize,
    leaf_level: u8,
}

impl EntryFormat {
    fn new(leaf_level: u8) -> Self {
        Self { bytes: if leaf_level < 31 { 4 } else { 8 }, leaf_level }
    }

    /// The mapping of child `child` of a position-map block.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for an entry that this program did not write.
    fn get(self, block: &[u8], child: usize) -> Result<Option<Mapping>, Error> {
        let mut entry = [0; 8];
        entry[..self.bytes].copy_from_slice(&block[child * self.bytes..][..self.bytes]);
        let mapping = Mapping::from_entry(u64::from_le_bytes(entry));
        if mapping.is_some_and(|mapping| mapping.leaf.0 >> self.leaf_level != 0) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a block of the position map contains an invalid leaf: the volume was damaged or \
                 written by another program",
            ));
        }
        Ok(mapping)
    }

    fn set(self, block: &mut [u8], child: usize, mapping: Mapping) {
        let entry = mapping.entry().to_le_bytes();
        block[child * self.bytes..][..self.bytes].copy_from_slice(&entry[..self.bytes]);
    }

    /// Marks the blocks of the entries `children` as not live.
    fn empty(self, block: &mut [u8], children: Range<usize>) -> Result<(), Error> {
        for child in children {
            if let Some(mapping) = self.get(block, child)? {
                self.set(block, child, Mapping { live: false, ..mapping });
            }
        }
        Ok(())
    }
}

/// The position map. Secret; wiped when dropped.
pub(crate) struct NestedPosMap {
    space: AddressSpace,
    entries: EntryFormat,
    /// The entries of the last level.
    table: LivePosMap,
    plb: LruPlb,
    data_blocks: u64,
}

/// The error if the position of a block cannot be looked up, because a position-map block of its
/// chain is not on the client. Holds the address of the highest missing block of the chain, which
/// must be fetched first.
pub(crate) struct MissingParent(pub(crate) u64);

impl NestedPosMap {
    /// The map whose last level is `table`, without blocks on the client.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent.
    pub(crate) fn new(
        recursion: &Recursion,
        block_bytes: usize,
        leaf_level: u8,
        table: LivePosMap,
    ) -> Result<Self, Error> {
        let space = recursion.space(block_bytes, leaf_level)?;
        assert_eq!(table.capacity(), space.client_entries(), "the table fits the map's last level");
        Ok(Self {
            space,
            entries: EntryFormat::new(leaf_level),
            table,
            plb: LruPlb::new(recursion.plb_blocks),
            data_blocks: recursion.data_blocks,
        })
    }

    /// The entries on the client.
    pub(crate) fn table(&self) -> &LivePosMap {
        &self.table
    }

    pub(crate) fn depth(&self) -> usize {
        self.space.depth()
    }

    /// The number of requests whose position-map blocks always fit together into a PLB of
    /// `plb_blocks` blocks.
    pub(crate) fn window(&self, plb_blocks: usize) -> usize {
        plb_blocks / (self.space.depth() + 1)
    }

    /// Whether `address` belongs to a position-map block.
    pub(crate) fn is_position_map(&self, address: u64) -> bool {
        address >= self.data_blocks && self.space.contains(address) && self.space.level(address) > 0
    }

    /// The position-map blocks on the client, least recently used first.
    pub(crate) fn plb_blocks(&self) -> impl Iterator<Item = &PlbBlock> {
        self.plb.iter()
    }

    /// The mapping of a block: `None` if it has none, [`MissingParent`] if its position is not on
    /// the client. Does not change the LRU order.
    pub(crate) fn get(
        &self,
        address: u64,
    ) -> Result<Result<Option<Mapping>, MissingParent>, Error> {
        let (parent, child) = match self.space.parent(address) {
            Err(entry) => return Ok(Ok(self.table.get(entry))),
            Ok(parent) => parent,
        };
        match self.plb.get(parent) {
            Some(block) => self.entries.get(&block.bytes, child).map(Ok),
            None => Ok(Err(match self.get(parent)? {
                Err(missing) => missing,
                Ok(_) => MissingParent(parent),
            })),
        }
    }

    /// Maps a block whose position is on the client.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the position is not on the client.
    pub(crate) fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), Error> {
        match self.space.parent(address) {
            Err(entry) => self.table.set(entry, mapping),
            Ok((parent, child)) => {
                let block = self.plb.bytes_mut(parent).ok_or_else(not_on_client)?;
                self.entries.set(block, child, mapping);
            }
        }
        Ok(())
    }

    /// Marks the block that holds the position of `address` as most recently used.
    pub(crate) fn touch_parent(&mut self, address: u64) {
        if let Ok((parent, _)) = self.space.parent(address) {
            self.plb.touch(parent);
        }
    }

    /// Whether a position-map block is in the PLB.
    pub(crate) fn is_in_plb(&self, address: u64) -> bool {
        self.plb.get(address).is_some()
    }

    /// Adds a position-map block to the client. If the block was not live, first marks all its
    /// children as not live. Returns the block that is evicted for it, if any.
    pub(crate) fn insert(
        &mut self,
        mut block: PlbBlock,
        was_live: bool,
    ) -> Result<Option<PlbBlock>, Error> {
        if !was_live {
            let children = block.bytes.len() / self.entries.bytes;
            self.entries.empty(&mut block.bytes, 0..children)?;
        }
        Ok(self.plb.insert(block))
    }

    /// Restores a block to the client. Blocks must be restored in the order of
    /// [`Self::plb_blocks`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the block cannot have been on the client.
    pub(crate) fn restore_client_block(
        &mut self,
        address: u64,
        leaf: Leaf,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let fits = self.is_position_map(address)
            && leaf.0 >> self.entries.leaf_level == 0
            && !self.is_in_plb(address);
        let block = PlbBlock { address, leaf, bytes: Zeroizing::new(bytes.to_vec()) };
        if fits && self.plb.insert(block).is_none() {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::InvalidRequest,
                "the block cannot have been part of this client's position map",
            ))
        }
    }

    /// The position-map blocks to fetch next, before [`Self::forget`]. [`Self::forget`] needs the
    /// position-map blocks whose entries `range` covers only in part, and the parents of
    /// position-map blocks on the client. For each of these blocks that is mapped and not on the
    /// client, this function returns the highest missing block of its chain. If the result is
    /// empty, [`Self::forget`] can proceed.
    pub(crate) fn missing_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        let mut missing = BTreeSet::new();
        let mut numbers = range;
        for level in 0..self.space.depth() {
            let needed = self.partly_covered(level, &numbers).into_iter();
            for parent in needed.chain(self.parents_of_held(level, &numbers)) {
                let block = self.space.block(level + 1, parent);
                if self.is_in_plb(block) {
                    continue;
                }
                match self.get(block)? {
                    Ok(None) => false,
                    Ok(Some(_)) => missing.insert(block),
                    Err(MissingParent(above)) => missing.insert(above),
                };
            }
            numbers = self.wholly_covered(level, &numbers);
        }
        Ok(missing.into_iter().collect())
    }

    /// Marks the blocks of a range as not live. Position-map blocks on the client record this in
    /// each entry of the range. A position-map block in the tree whose entries are all in the range
    /// is itself marked as not live.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if a block is [missing](Self::missing_to_forget) on the
    /// client; nothing was changed.
    pub(crate) fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        if !self.missing_to_forget(range.clone())?.is_empty() {
            return Err(not_on_client());
        }
        let mut numbers = range;
        for level in 0..self.space.depth() {
            for parent in self.plb_blocks_on(level + 1, &self.space.parents(&numbers)) {
                let siblings = self.space.children(level, parent);
                let covered = numbers.start.max(siblings.start)..numbers.end.min(siblings.end);
                for number in covered {
                    let address = self.space.block(level, number);
                    if let Ok(Some(mapping)) = self.get(address)?
                        && !self.is_in_plb(address)
                    {
                        self.set(address, Mapping { live: false, ..mapping })?;
                    }
                }
            }
            numbers = self.wholly_covered(level, &numbers);
        }
        for entry in numbers {
            if let Some(mapping) = self.table.get(entry)
                && !self.is_in_plb(self.address_of_entry(entry))
            {
                self.table.set(entry, Mapping { live: false, ..mapping });
            }
        }
        Ok(())
    }

    /// The numbers in `numbers` whose position-map blocks of `level` are in the PLB.
    fn plb_blocks_on(&self, level: usize, numbers: &Range<u64>) -> Vec<u64> {
        let on_level = self.plb.iter().filter(|block| self.space.level(block.address) == level);
        let held = on_level.map(|block| self.space.number_of(block.address));
        held.filter(|number| numbers.contains(number)).collect()
    }

    /// The parents, by number, of those blocks among `numbers` of `level` that are in the PLB.
    fn parents_of_held(&self, level: usize, numbers: &Range<u64>) -> Vec<u64> {
        let held = self.plb_blocks_on(level, numbers).into_iter();
        held.map(|number| self.space.parents(&(number..number + 1)).start).collect()
    }

    /// The parents, by number, of the blocks `numbers` of `level`, if they also have children
    /// outside of `numbers`. At most the first and the last parent have such children.
    fn partly_covered(&self, level: usize, numbers: &Range<u64>) -> Vec<u64> {
        let parents = self.space.parents(numbers);
        let ends = [parents.start, parents.end.saturating_sub(1)];
        let is_partly = |parent: &u64| {
            let children = self.space.children(level, *parent);
            parents.contains(parent)
                && (children.start < numbers.start || numbers.end < children.end)
        };
        ends.into_iter().filter(is_partly).collect()
    }

    /// The numbers of the parents whose children are all among the blocks `numbers` of `level`.
    fn wholly_covered(&self, level: usize, numbers: &Range<u64>) -> Range<u64> {
        let parents = self.space.parents(numbers);
        let partly = self.partly_covered(level, numbers);
        let start = parents.start + u64::from(partly.contains(&parents.start));
        let end =
            parents.end - u64::from(parents.end > start && partly.contains(&(parents.end - 1)));
        start..end.max(start)
    }

    /// The entries of a position-map block: the address of each child, and its mapping.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for an entry that this program did not write.
    pub(crate) fn entries_of<'b>(
        &'b self,
        address: u64,
        bytes: &'b [u8],
    ) -> impl Iterator<Item = Result<(u64, Option<Mapping>), Error>> + 'b {
        let level = self.space.level(address) - 1;
        let children = self.space.children(level, self.space.number_of(address));
        children.enumerate().map(move |(child, number)| {
            Ok((self.space.block(level, number), self.entries.get(bytes, child)?))
        })
    }

    /// The address of the block for entry `entry` of the table.
    pub(crate) fn address_of_entry(&self, entry: u64) -> u64 {
        self.space.block(self.space.depth(), entry)
    }

    /// The position-map block that holds a block's position. `None` if the position is in client
    /// memory.
    pub(crate) fn parent(&self, address: u64) -> Option<u64> {
        self.space.parent(address).ok().map(|(parent, _)| parent)
    }

    /// Draws a fresh, uniformly random leaf.
    pub(crate) fn draw(&self, coins: &mut impl CryptoRng) -> Leaf {
        draw_leaf(coins, self.entries.leaf_level)
    }
}

fn not_on_client() -> Error {
    Error::new(
        ErrorKind::InvalidRequest,
        "the position of the block is not on the client: fetch its position-map block first",
    )
}
