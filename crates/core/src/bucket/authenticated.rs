//! A bucket that is verified as a whole. The store keeps its head in one tree and its slots in
//! another.
//!
//! ```text
//! head   ┌──────┬──────────────────────┬───────────────────┐   slots  ┌─────────┬───┬───────────┐
//!        │ seal │ address of each slot │ leaf of each slot │          │ block 0 │ … │ block Z-1 │
//!        └──────┴──────────────────────┴───────────────────┘          └─────────┴───┴───────────┘
//!                ╰──────────── table ─────────────────────╯
//! ```
//!
//! Table and blocks are encrypted. The leaf is stored next to the address because a copy counts
//! only if the position map agrees with both. The slots have a tree of their own so that blocks of
//! whole pages are page-aligned in storage.

use alloc::vec::Vec;

use super::Field;
use crate::geometry::{Geometry, Leaf};
use crate::pieces::LevelShape;
use crate::seal::SEAL_BYTES;
use crate::stash::Entry;

/// The format of the buckets of one tree. Public.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedFormat {
    capacity: u64,
    pub(crate) block_bytes: usize,
    addresses: Field,
    leaves: Field,
}

impl AuthenticatedFormat {
    /// The format for `capacity` blocks of `block_bytes` bytes in a tree of `geometry`. The caller
    /// has checked all three.
    pub(crate) fn new(capacity: u64, block_bytes: usize, geometry: &Geometry) -> Self {
        Self {
            capacity,
            block_bytes,
            addresses: Field::for_values(capacity),
            leaves: Field::for_values(geometry.leaves() - 1),
        }
    }

    /// Bytes of the table of a bucket of `slots` slots.
    pub(crate) fn table_bytes(&self, slots: usize) -> usize {
        slots * (self.addresses.bytes + self.leaves.bytes)
    }

    /// Bytes of the head of a bucket of `slots` slots.
    pub(crate) fn head_bytes(&self, slots: usize) -> usize {
        SEAL_BYTES + self.table_bytes(slots)
    }

    /// Bytes of all slots of a bucket.
    pub(crate) fn slots_bytes(&self, slots: usize) -> usize {
        slots * self.block_bytes
    }

    /// The shape of a level that holds the heads of `buckets` buckets of `slots` slots.
    pub(crate) fn heads_shape(&self, buckets: u64, slots: usize) -> LevelShape {
        LevelShape::of_heads(buckets, self.head_bytes(slots))
    }

    /// The shape of a level that holds the slots of `buckets` buckets.
    pub(crate) fn slots_shape(&self, buckets: u64, slots: usize) -> LevelShape {
        LevelShape {
            buckets,
            slots: slots as u16,
            header_bytes: 0,
            slots_offset: 0,
            slot_bytes: self.block_bytes as u64,
            bucket_bytes: self.slots_bytes(slots) as u64,
        }
    }

    /// Replaces the contents of `table` with the table of a bucket that holds the entries `bucket`.
    pub(crate) fn put_table(&self, table: &mut Vec<u8>, bucket: &[Entry]) {
        table.clear();
        for entry in bucket {
            table.extend_from_slice(&entry.address.to_le_bytes()[..self.addresses.bytes]);
        }
        for entry in bucket {
            table.extend_from_slice(&entry.leaf.0.to_le_bytes()[..self.leaves.bytes]);
        }
    }

    /// The address and leaf in `slot` of an opened table. The address of a dummy is
    /// [`Entry::DUMMY_ADDRESS`]. `None` if the address is past the capacity, or the leaf of a block
    /// is not in the tree: both are checked even though the table is authentic.
    pub(crate) fn name(
        &self,
        table: &[u8],
        slots: usize,
        slot: usize,
        geometry: &Geometry,
    ) -> Option<(u64, Leaf)> {
        let (addresses, leaves) = table.split_at(slots * self.addresses.bytes);
        let address = self.addresses.read(addresses, slot);
        let leaf = Leaf(self.leaves.read(leaves, slot));
        if address == self.addresses.mask {
            Some((Entry::DUMMY_ADDRESS, leaf))
        } else {
            (address < self.capacity && geometry.contains_leaf(leaf)).then_some((address, leaf))
        }
    }
}
