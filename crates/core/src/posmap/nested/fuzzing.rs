//! A way to the nested position map for the fuzzer.

use alloc::vec::Vec;
use core::ops::Range;

use zeroize::Zeroizing;

use super::{HeldBlock, Missing, NestedPosMap, Recursion};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::posmap::{LivePosMap, Mapping};

/// A map whose position-map blocks the fuzzer hands in.
pub struct Map(NestedPosMap);

/// Where a block is.
pub enum Position {
    /// Mapped to a leaf, or to none.
    Known(Option<Mapping>),
    /// In a position-map block that is not on the client: this one comes first.
    Missing(u64),
}

impl Map {
    /// With no blocks on the client.
    ///
    /// # Errors
    /// When the parameters contradict each other.
    pub fn new(recursion: &Recursion, block_bytes: usize, leaf_level: u8) -> Result<Self, Error> {
        let table =
            LivePosMap::new(recursion.client_entries(block_bytes, leaf_level)?, leaf_level)?;
        NestedPosMap::new(recursion, block_bytes, leaf_level, table).map(Self)
    }

    /// See [`NestedPosMap::get`].
    ///
    /// # Errors
    /// When an entry is none.
    pub fn get(&self, address: u64) -> Result<Position, Error> {
        Ok(match self.0.get(address)? {
            Ok(mapping) => Position::Known(mapping),
            Err(Missing(block)) => Position::Missing(block),
        })
    }

    /// See [`NestedPosMap::set`].
    ///
    /// # Errors
    /// When the position of the block is not on the client.
    pub fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), Error> {
        self.0.set(address, mapping)
    }

    /// Whether a block is one of the map's, and on the client.
    pub fn is_held(&self, address: u64) -> bool {
        self.0.is_position_map(address) && self.0.is_held(address)
    }

    /// Takes in a block that storage holds, as after an access. See [`NestedPosMap::hold`].
    ///
    /// # Errors
    /// When an entry is none.
    pub fn hold(&mut self, address: u64, bytes: &[u8], was_live: bool) -> Result<(), Error> {
        let bytes = Zeroizing::new(bytes.to_vec());
        self.0.hold(HeldBlock { address, leaf: Leaf(0), bytes }, was_live).map(drop)
    }

    /// Restores a block from the client's directory: see [`NestedPosMap::restore_client_block`].
    ///
    /// # Errors
    /// When the client cannot have had it.
    pub fn restore_client_block(
        &mut self,
        address: u64,
        leaf: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.0.restore_client_block(address, Leaf(leaf), bytes)
    }

    /// See [`NestedPosMap::entries_of`].
    ///
    /// # Errors
    /// When an entry is none.
    pub fn entries_of(
        &self,
        address: u64,
        bytes: &[u8],
    ) -> Result<Vec<(u64, Option<Mapping>)>, Error> {
        self.0.entries_of(address, bytes).collect()
    }

    /// See [`NestedPosMap::missing_to_forget`].
    ///
    /// # Errors
    /// When an entry is none.
    pub fn missing_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        self.0.missing_to_forget(range)
    }

    /// See [`NestedPosMap::forget`].
    ///
    /// # Errors
    /// When something is missing, or an entry is none.
    pub fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.0.forget(range)
    }
}
