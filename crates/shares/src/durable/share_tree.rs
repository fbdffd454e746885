//! A tree of an array: the data tree, or a tree of the position map. Each server holds a share of
//! it.

use oblivio_core::seal::BLOCK_SEAL_BYTES;

use crate::message::{ServerKey, Setup};
use crate::sharing::Parties;
use crate::tree::Tree;

/// A tree of which each server stores a share.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareTree {
    /// The number of the tree; 0 is the data.
    pub(super) number: u8,
    pub(super) parties: Parties,
    pub(super) tree: Tree,
    /// Bytes of a slot in this tree, including its metadata.
    pub(super) slot_bytes: usize,
    /// Bytes of the metadata at the beginning of a slot; 0 if slots have no metadata.
    pub(super) metadata_bytes: usize,
}

impl ShareTree {
    /// The setup of server `number` in this tree.
    pub(super) fn setup(&self, number: u8, keys: Vec<ServerKey>) -> Setup {
        let Self { parties, tree, slot_bytes, metadata_bytes, .. } = *self;
        Setup { number, parties, tree, block_bytes: slot_bytes, metadata_bytes, keys }
    }

    /// Bytes of a slot in a fetch or put. If slots have metadata, this includes the separate mark.
    pub(super) fn fetched_bytes(&self) -> usize {
        self.slot_bytes + usize::from(self.metadata_bytes > 0)
    }

    /// Bytes of a block, without its seal.
    pub(super) fn data_bytes(&self) -> usize {
        self.slot_bytes - self.metadata_bytes - BLOCK_SEAL_BYTES
    }

    /// Bytes of the metadata of one path.
    pub(super) fn path_metadata_bytes(&self) -> usize {
        self.tree.path_slots() * self.metadata_bytes
    }

    pub(super) fn buckets(&self) -> u64 {
        2 * self.tree.leaves() - 1
    }

    /// Bytes of the matrices of an eviction.
    pub(super) fn matrix_bytes(&self) -> u64 {
        let slots = self.tree.slots() as u64;
        (u64::from(self.tree.height()) + 1) * 2 * slots * slots
    }
}
