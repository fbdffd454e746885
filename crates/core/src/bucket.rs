//! A bucket as bytes, before the seal.
//!
//! ```text
//! ┌─────────┬──────────────────────┬──────────────────────┬─────────┬───┬───────────┐
//! │ counter │ address of each slot │ leaf of each slot    │ block 0 │ … │ block Z-1 │
//! │ 8 bytes │ padded to 16 bytes   │ padded to 16 bytes   │         │   │           │
//! └─────────┴──────────────────────┴──────────────────────┴─────────┴───┴───────────┘
//!  in clear   Region::Header          Region::Body
//!  ╰────────── header ───────────╯ ╰──────────────── body ─────────────────────────╯
//! ```
//!
//! Addresses and leaves are little-endian and as narrow as the tree allows in whole bytes ("roughly
//! L bits", Tiny ORAM, section II-A), so that the header of a bucket of a million blocks is one AES
//! block. An address of all ones is ⊥: a dummy. The leaf stands with the block and not with the
//! address because an access-only access of RAW ORAM needs addresses alone (section IV-D).

use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::seal::{BODY_BYTES_MAX, CHUNK_BYTES, COUNTER_BYTES};
use crate::store::{LevelShape, TreeShape};

/// The smallest block, in bytes.
pub const BLOCK_BYTES_MIN: usize = 16;

/// The largest block, in bytes.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The most blocks an ORAM can hold: as many as the deepest tree has leaves.
pub const CAPACITY_MAX: u64 = 1 << 40;

/// Bytes past the end of a field table that a decoder may look at: fields are read eight bytes at a
/// time.
pub(crate) const TABLE_SLACK_BYTES: usize = 8;

/// How the buckets of one tree are written. Public.
#[derive(Clone, Debug)]
pub(crate) struct BucketFormat {
    geometry: Geometry,
    capacity: u64,
    block_bytes: usize,
    addresses: Field,
    leaves: Field,
}

/// A table with an entry of `bytes` bytes for each slot.
#[derive(Clone, Copy, Debug)]
struct Field {
    bytes: usize,
    /// The all-ones value, which stands for ⊥.
    mask: u64,
}

impl Field {
    /// Wide enough for `0..values`, and for ⊥.
    fn for_values(values: u64) -> Self {
        let bytes = (1..8).find(|bytes| values < 1 << (8 * bytes)).unwrap_or(8);
        Self {
            bytes,
            mask: u64::MAX >> (64 - 8 * bytes),
        }
    }

    fn table_bytes(self, slots: usize) -> usize {
        (slots * self.bytes).next_multiple_of(CHUNK_BYTES)
    }

    #[inline]
    fn get(self, table: &[u8], slot: usize) -> u64 {
        let mut entry = [0; 8];
        entry.copy_from_slice(&table[slot * self.bytes..][..8]);
        u64::from_le_bytes(entry) & self.mask
    }

    #[inline]
    fn put(self, table: &mut [u8], slot: usize, value: u64) {
        table[slot * self.bytes..][..self.bytes]
            .copy_from_slice(&value.to_le_bytes()[..self.bytes]);
    }
}

impl BucketFormat {
    /// Buckets of `geometry` for `capacity` blocks of `block_bytes`.
    pub(crate) fn new(
        geometry: Geometry,
        capacity: u64,
        block_bytes: usize,
    ) -> Result<Self, Error> {
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidConfig, message));
        if !(1..=CAPACITY_MAX).contains(&capacity) {
            return invalid(format!(
                "an ORAM holds 1 to {CAPACITY_MAX} blocks, not {capacity}"
            ));
        }
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return invalid(format!(
                "a block has {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes, not {block_bytes}"
            ));
        }
        if geometry.tree_slots() < capacity {
            return invalid(format!(
                "a tree of {} slots cannot hold {capacity} blocks: use more levels or slots",
                geometry.tree_slots()
            ));
        }
        let format = Self {
            addresses: Field::for_values(capacity),
            leaves: Field::for_values(geometry.leaves() - 1),
            geometry,
            capacity,
            block_bytes,
        };
        for level in 0..format.geometry.levels() {
            if format.body_bytes(level) > BODY_BYTES_MAX {
                return invalid(format!(
                    "a bucket of {} blocks of {block_bytes} bytes exceeds {BODY_BYTES_MAX} bytes: \
                     use fewer slots or a smaller block",
                    format.geometry.slots(level)
                ));
            }
        }
        Ok(format)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Bytes of the table of addresses.
    #[inline]
    pub(crate) fn address_table_bytes(&self, level: usize) -> usize {
        self.addresses.table_bytes(self.geometry.slots(level))
    }

    /// Bytes of the table of leaves, with which the body starts.
    #[inline]
    pub(crate) fn leaf_table_bytes(&self, level: usize) -> usize {
        self.leaves.table_bytes(self.geometry.slots(level))
    }

    /// Bytes of the largest table of any level, and slack to decode it.
    pub(crate) fn table_room(&self) -> usize {
        (0..self.geometry.levels())
            .map(|level| {
                self.address_table_bytes(level)
                    .max(self.leaf_table_bytes(level))
            })
            .max()
            .unwrap_or(0)
            + TABLE_SLACK_BYTES
    }

    /// Where the body starts.
    #[inline]
    pub(crate) fn body_offset(&self, level: usize) -> usize {
        COUNTER_BYTES + self.address_table_bytes(level)
    }

    /// Bytes of the body.
    #[inline]
    pub(crate) fn body_bytes(&self, level: usize) -> usize {
        self.slot_in_body(level, self.geometry.slots(level))
    }

    /// Where the block of `slot` starts in the body.
    #[inline]
    pub(crate) fn slot_in_body(&self, level: usize, slot: usize) -> usize {
        self.leaf_table_bytes(level) + slot * self.block_bytes
    }

    /// What a store must know.
    pub(crate) fn shape(&self) -> TreeShape {
        let levels = (0..self.geometry.levels())
            .map(|level| LevelShape {
                slots: self.geometry.slots(level) as u16,
                header_bytes: self.body_offset(level) as u64,
                slots_offset: (self.body_offset(level) + self.leaf_table_bytes(level)) as u64,
                slot_bytes: self.block_bytes as u64,
                bucket_bytes: (self.body_offset(level) + self.body_bytes(level)) as u64,
            })
            .collect();
        TreeShape::new(levels)
    }

    /// The address in `slot` of an opened table, or `None` for a dummy. The table is followed by
    /// [`TABLE_SLACK_BYTES`] of anything.
    #[inline]
    pub(crate) fn address(&self, table: &[u8], slot: usize) -> Result<Option<u64>, Error> {
        match self.addresses.get(table, slot) {
            dummy if dummy == self.addresses.mask => Ok(None),
            address if address < self.capacity => Ok(Some(address)),
            _ => Err(corrupt("an address past the end")),
        }
    }

    /// The leaf in `slot` of an opened table of `bucket`, which must lie on its path.
    #[inline]
    pub(crate) fn leaf(&self, table: &[u8], slot: usize, bucket: BucketId) -> Result<Leaf, Error> {
        let leaf = Leaf(self.leaves.get(table, slot));
        if self.geometry.contains_leaf(leaf) && bucket.is_on_path(leaf) {
            Ok(leaf)
        } else {
            Err(corrupt("a leaf whose path does not pass the bucket"))
        }
    }

    /// Writes an address, or ⊥.
    #[inline]
    pub(crate) fn put_address(&self, table: &mut [u8], slot: usize, address: Option<u64>) {
        self.addresses
            .put(table, slot, address.unwrap_or(self.addresses.mask));
    }

    /// Writes a leaf.
    #[inline]
    pub(crate) fn put_leaf(&self, table: &mut [u8], slot: usize, leaf: Leaf) {
        self.leaves.put(table, slot, leaf.0);
    }
}

/// The error for bytes that no honest write produced. It names the defect, never a value.
#[cold]
pub(crate) fn corrupt(defect: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("a bucket holds {defect}: the storage is damaged or was tampered with"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn format(capacity: u64, z: u16, block_bytes: usize) -> Result<BucketFormat, Error> {
        BucketFormat::new(Geometry::uniform(10, z)?, capacity, block_bytes)
    }

    #[test]
    fn a_header_of_a_million_blocks_is_one_aes_block() {
        let geometry = Geometry::uniform(19, 5).unwrap();
        let format = BucketFormat::new(geometry, 1 << 20, 64).unwrap();
        assert_eq!(
            (format.address_table_bytes(7), format.leaf_table_bytes(7)),
            (16, 16)
        );
        assert_eq!(
            format.shape().levels()[7].bucket_bytes,
            8 + 16 + 16 + 5 * 64
        );
    }

    #[test]
    fn out_of_range_parameters_are_refused() {
        for (capacity, z, block_bytes) in [
            (0, 4, 64),
            (CAPACITY_MAX + 1, 4, 64),
            (u64::MAX, 4, 64),
            (100, 4, BLOCK_BYTES_MIN - 1),
            (100, 4, BLOCK_BYTES_MAX + 1),
            (100, 65, BLOCK_BYTES_MAX),
            (2047 * 4 + 1, 4, 64),
        ] {
            let error = format(capacity, z, block_bytes).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::InvalidConfig,
                "{capacity} {z} {block_bytes}"
            );
        }
        assert!(format(2047 * 4, 4, 64).is_ok());
        assert!(format(1, 63, BLOCK_BYTES_MAX).is_ok());
    }

    #[test]
    fn all_ones_is_never_an_address() {
        for capacity in [254, 255, 256, 65_535, 65_536] {
            let format =
                BucketFormat::new(Geometry::uniform(14, 4).unwrap(), capacity, 16).unwrap();
            let mut table = vec![0; format.table_room()];
            format.put_address(&mut table, 0, Some(capacity - 1));
            assert_eq!(format.address(&table, 0).unwrap(), Some(capacity - 1));
        }
    }

    proptest! {
        #[test]
        fn tables_hold_what_was_put(
            entries in prop::collection::vec((prop::option::of(0u64..1000), 0u64..1024), 6),
        ) {
            let format = format(1000, 6, 64).unwrap();
            let mut addresses = vec![0; format.table_room()];
            let mut leaves = vec![0; format.table_room()];
            for (slot, (address, leaf)) in entries.iter().enumerate() {
                format.put_address(&mut addresses, slot, *address);
                format.put_leaf(&mut leaves, slot, Leaf(*leaf));
            }
            for (slot, (address, leaf)) in entries.iter().enumerate() {
                prop_assert_eq!(format.address(&addresses, slot).unwrap(), *address);
                prop_assert_eq!(format.leaf(&leaves, slot, BucketId::ROOT).unwrap(), Leaf(*leaf));
            }
        }

        #[test]
        fn foreign_bytes_are_valid_or_refused_never_a_panic(
            table in prop::collection::vec(any::<u8>(), 100),
            slot in 0usize..6,
            bucket in 0u64..2047,
        ) {
            let format = format(1000, 6, 64).unwrap();
            match format.address(&table, slot) {
                Ok(address) => prop_assert!(address.is_none_or(|a| a < 1000)),
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
            match format.leaf(&table, slot, BucketId(bucket)) {
                Ok(leaf) => prop_assert!(leaf.0 < 1024 && BucketId(bucket).is_on_path(leaf)),
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
        }
    }
}
