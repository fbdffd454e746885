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
//! Addresses and leaves are little-endian and take the fewest whole bytes that the tree allows
//! ("roughly L bits", Tiny ORAM, section II-A). So in a tree of a million blocks, the addresses of
//! five slots fit into one AES block. An address of all ones is ⊥, a dummy. The leaves are in the
//! body because an access-only access of RAW ORAM needs only the addresses (section IV-D).

mod authenticated;
mod field;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

pub(crate) use authenticated::AuthenticatedFormat;
pub(crate) use field::Search;
use field::{Field, search, search_wide};
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::pieces::{LevelShape, TreeShape};
use crate::seal::{BODY_BYTES_MAX, COUNTER_BYTES};
use crate::stash::Entry;

/// The smallest block, in bytes. Simulations may use blocks without bytes: see
/// [`TreeConfig::block_bytes`](crate::TreeConfig::block_bytes).
pub const BLOCK_BYTES_MIN: usize = 16;

/// The largest block, in bytes.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// The maximum number of blocks in an ORAM: the number of leaves of the deepest tree.
pub const CAPACITY_MAX: u64 = 1 << 40;

/// Bytes past the end of a table that a decoder may read, because it reads entries eight bytes at a
/// time.
pub(crate) const TABLE_SLACK_BYTES: usize = 8;

/// The format of the buckets of one tree. Public.
#[derive(Clone, Debug)]
pub(crate) struct BucketFormat {
    geometry: Geometry,
    capacity: u64,
    block_bytes: usize,
    addresses: Field,
    leaves: Field,
    levels: Box<[LevelFormat]>,
}

/// The sizes of a bucket on one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelFormat {
    pub(crate) level: u8,
    pub(crate) slots: usize,
    /// Bytes of the table of addresses: the sealed part of the header.
    pub(crate) address_table_bytes: usize,
    /// Bytes of the table of leaves, at the start of the body.
    pub(crate) leaf_table_bytes: usize,
    /// Offset of the body in the bucket.
    pub(crate) body_offset: usize,
    pub(crate) body_bytes: usize,
}

impl LevelFormat {
    fn new(level: u8, slots: usize, addresses: Field, leaves: Field, block_bytes: usize) -> Self {
        let address_table_bytes = addresses.table_bytes(slots);
        let leaf_table_bytes = leaves.table_bytes(slots);
        Self {
            level,
            slots,
            address_table_bytes,
            leaf_table_bytes,
            body_offset: COUNTER_BYTES + address_table_bytes,
            body_bytes: leaf_table_bytes + slots * block_bytes,
        }
    }

    pub(crate) fn bucket_bytes(&self) -> usize {
        self.body_offset + self.body_bytes
    }
}

impl BucketFormat {
    /// The format for a tree of `geometry` with `capacity` blocks of `block_bytes`.
    pub(crate) fn new(
        geometry: Geometry,
        capacity: u64,
        block_bytes: usize,
    ) -> Result<Self, Error> {
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidConfig, message));
        if !(1..=CAPACITY_MAX).contains(&capacity) {
            return invalid(format!("capacity {capacity} is not in 1..={CAPACITY_MAX} blocks"));
        }
        let has_no_blocks = block_bytes == 0;
        if !has_no_blocks && !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return invalid(format!(
                "block size {block_bytes} is not in {BLOCK_BYTES_MIN}..={BLOCK_BYTES_MAX} bytes \
                 (0 is allowed in simulations only)"
            ));
        }
        if geometry.tree_slots() < capacity {
            return invalid(format!(
                "a tree of {} slots cannot hold {capacity} blocks: use more levels or slots",
                geometry.tree_slots()
            ));
        }
        let addresses = Field::for_values(capacity);
        let leaves = Field::for_values(geometry.leaves() - 1);
        let levels: Box<[_]> = (0..=geometry.leaf_level())
            .map(|level| {
                let slots = geometry.slots(usize::from(level));
                LevelFormat::new(level, slots, addresses, leaves, block_bytes)
            })
            .collect();
        if let Some(level) = levels.iter().find(|level| level.body_bytes > BODY_BYTES_MAX) {
            return invalid(format!(
                "a bucket of {} blocks of {block_bytes} bytes exceeds {BODY_BYTES_MAX} bytes: use \
                 fewer slots or a smaller block",
                level.slots
            ));
        }
        Ok(Self { geometry, capacity, block_bytes, addresses, leaves, levels })
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// The sizes of buckets on each level, from the root down.
    #[inline]
    pub(crate) fn levels(&self) -> &[LevelFormat] {
        &self.levels
    }

    /// Buffers for the tables of a path: one table per bucket, large enough for any level.
    pub(crate) fn table_room(&self) -> Tables {
        let table = |level: &LevelFormat| level.address_table_bytes.max(level.leaf_table_bytes);
        let stride = self.levels.iter().map(table).max().unwrap_or(0) + TABLE_SLACK_BYTES;
        Tables { bytes: Zeroizing::new(vec![0; stride * self.levels.len()]), stride }
    }

    /// The shape of the tree for a store.
    pub(crate) fn shape(&self) -> TreeShape {
        let shape = |level: &LevelFormat| LevelShape {
            buckets: 1 << level.level,
            slots: level.slots as u16,
            header_bytes: level.body_offset as u64,
            slots_offset: (level.body_offset + level.leaf_table_bytes) as u64,
            slot_bytes: self.block_bytes as u64,
            bucket_bytes: level.bucket_bytes() as u64,
        };
        TreeShape::new(self.levels.iter().map(shape).collect())
    }

    /// Searches an opened table of `slots` entries for `address`, and checks that each entry is ⊥
    /// or an address below the capacity. At least [`TABLE_SLACK_BYTES`] must follow the table.
    #[inline]
    pub(crate) fn search(&self, table: &[u8], slots: usize, address: u64) -> Search {
        let Field { bytes, mask } = self.addresses;
        let invalid = self.capacity..mask;
        match bytes {
            1 => search::<1>(table, slots, address, invalid),
            2 => search::<2>(table, slots, address, invalid),
            3 => search::<3>(table, slots, address, invalid),
            4 => search::<4>(table, slots, address, invalid),
            _ => search_wide(table, slots, bytes, address, invalid),
        }
    }

    /// The addresses and leaves in opened tables of `slots` entries each; [`Entry::DUMMY_ADDRESS`]
    /// for ⊥. Not validated: see [`Self::may_hold`]. At least [`TABLE_SLACK_BYTES`] must follow
    /// each table.
    #[inline]
    pub(crate) fn tags(
        &self,
        addresses: &[u8],
        leaves: &[u8],
        slots: usize,
    ) -> impl Iterator<Item = (u64, Leaf)> {
        let Self { addresses: field, .. } = self;
        let dummy = field.mask;
        let addresses = field
            .values(addresses, slots)
            .map(move |address| if address == dummy { Entry::DUMMY_ADDRESS } else { address });
        addresses.zip(self.leaves.values(leaves, slots).map(Leaf))
    }

    /// The address in `slot` of an opened table: the reference for [`Self::search`] and
    /// [`Self::tags`].
    #[cfg(test)]
    fn address(&self, table: &[u8], slot: usize) -> u64 {
        match self.addresses.read(table, slot) {
            dummy if dummy == self.addresses.mask => Entry::DUMMY_ADDRESS,
            address => address,
        }
    }

    /// The leaf in `slot` of an opened table: the reference for [`Self::tags`].
    #[cfg(test)]
    fn leaf(&self, table: &[u8], slot: usize) -> Leaf {
        Leaf(self.leaves.read(table, slot))
    }

    /// Whether an honest client could have put the block `address`, mapped to `leaf`, into
    /// `bucket`.
    #[inline]
    pub(crate) fn may_hold(&self, bucket: BucketId, address: u64, leaf: Leaf) -> bool {
        (address < self.capacity) & self.geometry.contains_leaf(leaf) & bucket.is_on_path(leaf)
    }

    /// Writes the addresses of the blocks in `bucket`.
    #[inline]
    pub(crate) fn put_addresses(&self, table: &mut [u8], level: &LevelFormat, bucket: &[Entry]) {
        let addresses = bucket.iter().map(|entry| entry.address);
        self.addresses.put_all(table, level.address_table_bytes, addresses);
    }

    /// Writes the addresses of an empty bucket.
    pub(crate) fn put_dummies(&self, table: &mut [u8], level: &LevelFormat) {
        let addresses = core::iter::repeat_n(Entry::DUMMY_ADDRESS, level.slots);
        self.addresses.put_all(table, level.address_table_bytes, addresses);
    }

    /// Writes the leaves of the blocks in `bucket`; a dummy's leaf is 0.
    #[inline]
    pub(crate) fn put_leaves(&self, table: &mut [u8], level: &LevelFormat, bucket: &[Entry]) {
        let leaves = bucket.iter().map(|entry| entry.leaf.0);
        self.leaves.put_all(table, level.leaf_table_bytes, leaves);
    }

    /// Makes `slot` a dummy.
    pub(crate) fn remove(&self, table: &mut [u8], slot: usize) {
        self.addresses.put(table, slot, self.addresses.mask);
    }
}

/// Opened tables, one per bucket of a trip. Secret; wiped when dropped.
pub(crate) struct Tables {
    bytes: Zeroizing<Vec<u8>>,
    stride: usize,
}

impl Tables {
    /// The table of bucket `i` and the slack after it.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        &self.bytes[i * self.stride..][..self.stride]
    }

    /// The table of bucket `i` and the slack after it, for writing.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: usize) -> &mut [u8] {
        &mut self.bytes[i * self.stride..][..self.stride]
    }
}

/// The error for bytes that no honest write produced. The message names the defect, never a value.
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
    use crate::stash::BlockArena;
    use proptest::prelude::*;

    fn format(capacity: u64, z: u16, block_bytes: usize) -> Result<BucketFormat, Error> {
        BucketFormat::new(Geometry::uniform(10, z)?, capacity, block_bytes)
    }

    fn entry(address: u64, leaf: u64) -> Entry {
        let place = BlockArena::new(0, 0, 16).unwrap().zero();
        Entry { address, leaf: Leaf(leaf), place }
    }

    #[test]
    fn a_header_of_a_million_blocks_is_one_aes_block() {
        let geometry = Geometry::uniform(19, 5).unwrap();
        let format = BucketFormat::new(geometry, 1 << 20, 64).unwrap();
        let level = format.levels()[7];
        assert_eq!((level.address_table_bytes, level.leaf_table_bytes), (16, 16));
        assert_eq!(format.shape().levels()[7].bucket_bytes, 8 + 16 + 16 + 5 * 64);
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
            assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{capacity} {z} {block_bytes}");
        }
        assert!(format(2047 * 4, 4, 64).is_ok());
        assert!(format(1, 63, BLOCK_BYTES_MAX).is_ok());
    }

    #[test]
    fn all_ones_is_never_an_address() {
        for capacity in [254, 255, 256, 65_535, 65_536] {
            let geometry = Geometry::uniform(15, 2).unwrap();
            let format = BucketFormat::new(geometry, capacity, 16).unwrap();
            let mut tables = format.table_room();
            let bucket = [entry(capacity - 1, 0), entry(Entry::DUMMY_ADDRESS, 0)];
            format.put_addresses(tables.get_mut(0), &format.levels()[0], &bucket);
            assert_eq!(format.address(tables.get(0), 0), capacity - 1);
            assert_eq!(format.address(tables.get(0), 1), Entry::DUMMY_ADDRESS);
        }
    }

    #[test]
    fn only_blocks_that_belong_there_may_be_there() {
        let format = format(1000, 6, 64).unwrap();
        let bucket = BucketId::on_path(Leaf(5), 3);
        assert!(format.may_hold(bucket, 999, Leaf(5)));
        assert!(format.may_hold(bucket, 0, Leaf(5 + 8)));
        assert!(!format.may_hold(bucket, 1000, Leaf(5)), "an address past the end");
        assert!(!format.may_hold(bucket, 0, Leaf(4)), "another path");
        assert!(!format.may_hold(bucket, 0, Leaf(5 + 1024)), "a leaf past the end");
    }

    proptest! {
        #[test]
        fn tables_hold_what_was_put(
            entries in prop::collection::vec((0u64..1000, 0u64..1024), 6),
            removed in 0usize..6,
        ) {
            let format = format(1000, 6, 64).unwrap();
            let (mut addresses, mut leaves) = (format.table_room(), format.table_room());
            let (addresses, leaves) = (addresses.get_mut(3), leaves.get_mut(3));
            let bucket: Vec<_> =
                entries.iter().map(|(address, leaf)| entry(*address, *leaf)).collect();
            format.put_addresses(addresses, &format.levels()[3], &bucket);
            format.put_leaves(leaves, &format.levels()[3], &bucket);
            format.remove(addresses, removed);
            for (slot, (address, leaf)) in entries.iter().enumerate() {
                let expected = if slot == removed { Entry::DUMMY_ADDRESS } else { *address };
                prop_assert_eq!(format.address(addresses, slot), expected);
                prop_assert_eq!(format.leaf(leaves, slot), Leaf(*leaf));
            }
            let tags: Vec<_> = format.tags(addresses, leaves, 6).collect();
            let one_by_one =
                (0..6).map(|slot| (format.address(addresses, slot), format.leaf(leaves, slot)));
            prop_assert_eq!(tags, one_by_one.collect::<Vec<_>>());
            format.put_dummies(addresses, &format.levels()[3]);
            prop_assert!(
                (0..6).all(|slot| format.address(addresses, slot) == Entry::DUMMY_ADDRESS)
            );
        }

        #[test]
        fn search_agrees_with_looking_at_each_slot(
            capacity in prop_oneof![Just(200u64), Just(1000), Just(100_000)],
            table in prop::collection::vec(prop_oneof![8 => 0u8..4, 1 => any::<u8>()], 100),
            address in 0u64..1000,
            wanted in 0usize..12,
        ) {
            let format =
                BucketFormat::new(Geometry::uniform(15, 6).unwrap(), capacity, 64).unwrap();
            let slots: Vec<_> = (0..6).map(|slot| format.address(&table, slot)).collect();
            // In half of the cases, an address that is in the table.
            let address = slots.get(wanted).copied().unwrap_or(address) % capacity;
            let valid = slots.iter().all(|a| *a < capacity || *a == Entry::DUMMY_ADDRESS);
            let hits: Vec<_> = (0..6).filter(|slot| slots[*slot] == address).collect();
            let Search { hits: count, slot, invalid } = format.search(&table, 6, address);
            prop_assert_eq!((count, invalid), (hits.len(), !valid));
            prop_assert!(count != 1 || hits == [slot]);
        }
    }
}
