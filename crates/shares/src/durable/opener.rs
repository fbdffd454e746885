//! Opens slots with metadata: finds the live block in a slot.

use oblivio_core::BucketId;
use oblivio_core::seal::{BlockSealer, OpenedBlock};
use zeroize::Zeroizing;

use super::labels::Labels;
use super::tree_map::{address_in, is_dummy_of};
use crate::client::{ClientError, Occupant};
use crate::field::{Field, Gf256};
use crate::map_trees::Levels;
use crate::map_trees::map_block::Mapped;
use crate::map_trees::metadata::{Metadata, MetadataFormat};

/// A live block found in a slot, and its map entry.
pub(super) struct LiveBlock {
    pub(super) address: u64,
    pub(super) mapped: Mapped,
    pub(super) block: Zeroizing<Vec<u8>>,
}

/// Opens slots and identifies their blocks.
pub(super) struct Opener<'a> {
    pub(super) levels: &'a Levels,
    pub(super) sealer: &'a BlockSealer,
    pub(super) labels: &'a Labels,
}

impl Opener<'_> {
    /// Finds the live block in a slot; `None` if the slot holds no live block.
    ///
    /// # Errors
    /// A description of the problem, if the metadata is invalid or the block is not what was
    /// written.
    pub(super) fn block_in(
        &self,
        tree: usize,
        bucket: BucketId,
        slot: &[u8],
    ) -> Result<Option<LiveBlock>, String> {
        let (metadata, sealed) = self.split(tree, slot).map_err(|error| error.to_string())?;
        let counts = metadata.filter(|it| !it.is_taken && bucket.is_on_path(it.occupant.leaf));
        let Some(occupant) = counts.map(|metadata| metadata.occupant) else { return Ok(None) };
        let opened = self.open(tree, occupant, sealed);
        let (address, opened) = opened.ok_or("a block is not what was written")?;
        let mapped = Mapped { leaf: occupant.leaf, write: opened.name().number };
        let block = Zeroizing::new(opened.bytes().to_vec());
        Ok(Some(LiveBlock { address, mapped, block }))
    }

    /// Whether a client can have written this slot: it is all zeros, a block with its label, or a
    /// dummy without a label. Any leaf is accepted, because leaves are not sealed.
    pub(super) fn was_written(&self, tree: usize, slot: &[u8]) -> bool {
        slot.iter().all(|byte| *byte == 0)
            || match self.split(tree, slot) {
                Ok((Some(metadata), sealed)) => {
                    self.open(tree, metadata.occupant, sealed).is_some()
                }
                Ok((None, sealed)) => {
                    let opened = self.sealer.open(sealed);
                    opened.is_some_and(|opened| is_dummy_of(tree, opened.name()))
                }
                Err(_) => false,
            }
    }

    /// Splits a slot into its metadata and the sealed block. Adds the separate mark after the slot,
    /// if there is one, to the last byte of the metadata.
    fn split<'s>(
        &self,
        tree: usize,
        slot: &'s [u8],
    ) -> Result<(Option<Metadata>, &'s [u8]), ClientError> {
        let level = self.levels.level(tree);
        let (slot, mark) = slot.split_at(level.slot_elements());
        let (metadata, sealed) = slot.split_at(level.metadata_elements);
        let mut metadata = Zeroizing::new(metadata.to_vec());
        if let (Some(held), Some(mark)) = (metadata.last_mut(), mark.first()) {
            *held = Gf256::add(*held, *mark);
        }
        let format = MetadataFormat::<Gf256>::new(level.tree, level.labels);
        Ok((format.get(&metadata)?, sealed))
    }

    /// Decrypts a sealed block. Returns the block's address and contents; `None` if the seal is
    /// invalid, or names a block with another label.
    fn open(&self, tree: usize, occupant: Occupant, sealed: &[u8]) -> Option<(u64, OpenedBlock)> {
        let opened = self.sealer.open(sealed)?;
        let blocks = self.levels.level(tree).blocks;
        let address = address_in(tree, opened.name()).filter(|it| *it < blocks)?;
        let label = self.labels.of(tree, address) as usize;
        (label == occupant.label).then_some((address, opened))
    }
}
