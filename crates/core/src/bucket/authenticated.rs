//! A bucket of parts that are sealed one by one.
//!
//! ```text
//! ┌──────────────────────┬───────────────────┬─────┬─────────┬─────┬───┬───────────┬─────┐
//! │ address of each slot │ leaf of each slot │ tag │ block 0 │ tag │ … │ block Z-1 │ tag │
//! └──────────────────────┴───────────────────┴─────┴─────────┴─────┴───┴───────────┴─────┘
//!  ╰──────────── header ───────────────────────╯    ╰── slot ──────╯
//! ```
//!
//! Nothing stands in clear. The leaf stands beside the address: a copy counts only if the position
//! map agrees with both.

use super::Field;
use crate::geometry::{Geometry, Leaf};
use crate::scheme::TreeConfig;
use crate::seal::TAG_BYTES;
use crate::stash::Entry;
use crate::store::LevelShape;

/// How the buckets of one tree are written. Public.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedFormat {
    capacity: u64,
    pub(crate) block_bytes: usize,
    addresses: Field,
    leaves: Field,
}

impl AuthenticatedFormat {
    /// For a configuration that has been checked.
    pub(crate) fn new(config: &TreeConfig) -> Self {
        Self {
            capacity: config.capacity,
            block_bytes: config.block_bytes,
            addresses: Field::for_values(config.capacity),
            leaves: Field::for_values(config.geometry.leaves() - 1),
        }
    }

    /// Bytes of the two tables of a bucket of `slots` slots.
    pub(crate) fn table_bytes(&self, slots: usize) -> usize {
        slots * (self.addresses.bytes + self.leaves.bytes)
    }

    /// Bytes of a sealed header.
    pub(crate) fn header_bytes(&self, slots: usize) -> usize {
        self.table_bytes(slots) + TAG_BYTES
    }

    /// Where `slot` starts.
    pub(crate) fn slot_offset(&self, slots: usize, slot: usize) -> usize {
        self.header_bytes(slots) + slot * self.slot_bytes()
    }

    /// Bytes of a sealed slot.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.block_bytes + TAG_BYTES
    }

    pub(crate) fn bucket_bytes(&self, slots: usize) -> usize {
        self.slot_offset(slots, slots)
    }

    /// What a store must know of `buckets` buckets with `slots` slots.
    pub(crate) fn shape(&self, buckets: u64, slots: usize) -> LevelShape {
        LevelShape {
            buckets,
            slots: slots as u16,
            header_bytes: self.header_bytes(slots) as u64,
            slots_offset: self.slot_offset(slots, 0) as u64,
            slot_bytes: self.slot_bytes() as u64,
            bucket_bytes: self.bucket_bytes(slots) as u64,
        }
    }

    /// Writes the tables of a bucket.
    pub(crate) fn put_tables(&self, tables: &mut Vec<u8>, bucket: &[Entry]) {
        tables.clear();
        for entry in bucket {
            tables.extend_from_slice(&entry.address.to_le_bytes()[..self.addresses.bytes]);
        }
        for entry in bucket {
            tables.extend_from_slice(&entry.leaf.0.to_le_bytes()[..self.leaves.bytes]);
        }
    }

    /// The address and leaf in `slot` of opened tables; the address is [`Entry::DUMMY_ADDRESS`] for
    /// a dummy. They are authentic, and checked against the geometry all the same.
    pub(crate) fn name(
        &self,
        tables: &[u8],
        slots: usize,
        slot: usize,
        geometry: &Geometry,
    ) -> Option<(u64, Leaf)> {
        let (addresses, leaves) = tables.split_at(slots * self.addresses.bytes);
        let address = self.addresses.read(addresses, slot);
        let leaf = Leaf(self.leaves.read(leaves, slot));
        if address == self.addresses.mask {
            Some((Entry::DUMMY_ADDRESS, leaf))
        } else {
            (address < self.capacity && geometry.contains_leaf(leaf)).then_some((address, leaf))
        }
    }
}
