//! One of the trees that servers keep for an array: of the data, or of the position map.

use oblivio_core::seal::BLOCK_SEAL_BYTES;

use crate::message::{ServerKey, Setup};
use crate::sharing::Parties;
use crate::tree::Tree;

/// One of the trees that each server keeps its shares in.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareTree {
    /// 0 is that of the data.
    pub(super) number: u8,
    pub(super) parties: Parties,
    pub(super) tree: Tree,
    /// Bytes of a slot.
    pub(super) slot_bytes: usize,
    /// So many of them say whose block it is.
    pub(super) metadata_bytes: usize,
}

impl ShareTree {
    /// What the server of this number is to be.
    pub(super) fn setup(&self, number: u8, keys: Vec<ServerKey>) -> Setup {
        let Self { parties, tree, slot_bytes, metadata_bytes, .. } = *self;
        Setup { number, parties, tree, block_bytes: slot_bytes, metadata_bytes, keys }
    }

    /// Bytes of a slot as it is fetched and put, with its mark if it has one.
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
