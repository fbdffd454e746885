//! An interface to the nested position map for the fuzzer.

use alloc::vec::Vec;
use core::ops::Range;

use zeroize::Zeroizing;

use super::{MissingParent, NestedPosMap, PlbBlock, Recursion};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::posmap::{LivePosMap, Mapping};

/// A position map into which the fuzzer can insert position-map blocks with any bytes.
pub struct Map(NestedPosMap);

/// The result of looking up the position of a block.
pub enum Position {
    /// The mapping, if the block has one.
    Known(Option<Mapping>),
    /// The mapping is in a position-map block that is not on the client. Fetch the block with this
    /// address first.
    Missing(u64),
}

impl Map {
    /// A map with no position-map block on the client.
    ///
    /// # Errors
    /// If the parameters are inconsistent.
    pub fn new(recursion: &Recursion, block_bytes: usize, leaf_level: u8) -> Result<Self, Error> {
        let table =
            LivePosMap::new(recursion.client_entries(block_bytes, leaf_level)?, leaf_level)?;
        NestedPosMap::new(recursion, block_bytes, leaf_level, table).map(Self)
    }

    /// The position of a block: see [`NestedPosMap::get`].
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn get(&self, address: u64) -> Result<Position, Error> {
        Ok(match self.0.get(address)? {
            Ok(mapping) => Position::Known(mapping),
            Err(MissingParent(block)) => Position::Missing(block),
        })
    }

    /// Sets the position of a block: see [`NestedPosMap::set`].
    ///
    /// # Errors
    /// If the position of the block is not on the client.
    pub fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), Error> {
        self.0.set(address, mapping)
    }

    /// Whether an address belongs to a position-map block that is in the PLB.
    pub fn is_in_plb(&self, address: u64) -> bool {
        self.0.is_position_map(address) && self.0.is_in_plb(address)
    }

    /// Adds a block from storage to the client, as after an access: see [`NestedPosMap::insert`].
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn insert(&mut self, address: u64, bytes: &[u8], was_live: bool) -> Result<(), Error> {
        let bytes = Zeroizing::new(bytes.to_vec());
        self.0.insert(PlbBlock { address, leaf: Leaf(0), bytes }, was_live).map(drop)
    }

    /// Restores a block of a saved client state: see [`NestedPosMap::restore_client_block`].
    ///
    /// # Errors
    /// If the client cannot have had the block.
    pub fn restore_client_block(
        &mut self,
        address: u64,
        leaf: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.0.restore_client_block(address, Leaf(leaf), bytes)
    }

    /// The entries of a position-map block: see [`NestedPosMap::entries_of`].
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn entries_of(
        &self,
        address: u64,
        bytes: &[u8],
    ) -> Result<Vec<(u64, Option<Mapping>)>, Error> {
        self.0.entries_of(address, bytes).collect()
    }

    /// The position-map blocks to fetch before [`Self::forget`]: see
    /// [`NestedPosMap::missing_to_forget`].
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn missing_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        self.0.missing_to_forget(range)
    }

    /// Marks the blocks of a range as not live: see [`NestedPosMap::forget`].
    ///
    /// # Errors
    /// If a block is missing or an entry is invalid.
    pub fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.0.forget(range)
    }
}
