//! The S-Stash of IR-Stash (IR-ORAM, section IV-C): a tree top searched by address.
//!
//! ```text
//!   address ──hash──▶ set ─▶ ┌────┬────┬────┬────┐
//!                            │ a  │ c  │    │ b  │   entries, `ways` a set
//!                            └─▲──┴─▲──┴────┴─▲──┘
//!   leaf ──▶ bucket ─▶ ┌───┬───┼────┼─────────┘
//!                      │ · │ · │ ·  │      TT: the pointers of a bucket's slots
//!                      └───┴───┴────┘
//! ```
//!
//! There are at least as many entries as the levels have slots, but one set may be full while
//! others have free entries. So a block reserves an entry of its set before it is planned into one
//! of these levels.

use alloc::vec;
use alloc::vec::Vec;

use super::buckets::Buckets;
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::stash::Entry;

/// A set-associative tree top: the entries and the pointer table (TT).
pub(super) struct SetAssociative {
    /// The entries, set by set.
    entries: Vec<Option<Resident>>,
    ways: usize,
    /// The number of entries, for each set, that are neither in use nor reserved.
    free: Vec<u16>,
    table: Buckets<Pointer>,
}

/// A block, and the bucket whose slot points to it.
#[derive(Clone, Copy)]
struct Resident {
    entry: Entry,
    bucket: BucketId,
}

/// The index of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pointer(u32);

impl SetAssociative {
    pub(super) fn new(levels: u8, ways: u16, geometry: &Geometry) -> Self {
        let sets = sets(levels, ways, geometry);
        Self {
            entries: vec![None; sets * usize::from(ways)],
            ways: usize::from(ways),
            free: vec![ways; sets],
            table: Buckets::new(levels, geometry),
        }
    }

    pub(super) fn load(&mut self, leaf: Leaf, mut each: impl FnMut(Entry)) {
        let Self { entries, ways, free, table } = self;
        // Section IV-C: follow the pointers of each bucket of the path in TT.
        table.drain_path(leaf, |pointer| each(vacate(entries, free, *ways, pointer).entry));
    }

    pub(super) fn find(&self, address: u64) -> Option<&Entry> {
        self.pointer_to(address).map(|(_, resident)| &resident.entry)
    }

    pub(super) fn bucket_of(&self, address: u64) -> Option<BucketId> {
        self.pointer_to(address).map(|(_, resident)| resident.bucket)
    }

    pub(super) fn take(&mut self, address: u64) -> Option<Entry> {
        let (pointer, _) = self.pointer_to(address)?;
        let Resident { entry, bucket } =
            vacate(&mut self.entries, &mut self.free, self.ways, pointer);
        self.table.remove(bucket, |other| *other == pointer);
        Some(entry)
    }

    pub(super) fn reserve(&mut self, address: u64) -> bool {
        let set = set_of(address, self.free.len());
        let free = &mut self.free[set];
        // Section IV-C: if the set is full, the block is not picked in this round.
        let is_free = *free > 0;
        *free -= u16::from(is_free);
        is_free
    }

    pub(super) fn has_room(&self, bucket: BucketId, address: u64, geometry: &Geometry) -> bool {
        self.free[set_of(address, self.free.len())] > 0 && self.table.has_room(bucket, geometry)
    }

    /// Puts a block into the entry [reserved](Self::reserve) for it.
    pub(super) fn put(&mut self, bucket: BucketId, entry: Entry) {
        let first = self.first_of_set(entry.address);
        let vacant = self.entries[first..][..self.ways].iter().position(Option::is_none);
        let pointer = first + vacant.expect("a reserved entry is vacant");
        // Section IV-C: enter the block, and update the pointers of its bucket.
        self.entries[pointer] = Some(Resident { entry, bucket });
        self.table.push(bucket, Pointer(pointer as u32));
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let Self { entries, ways, free, table } = self;
        table.retain(|pointer| {
            let stays = keep(&resident(entries, *pointer).entry);
            if !stays {
                vacate(entries, free, *ways, *pointer);
            }
            stays
        });
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = (BucketId, &Entry)> {
        let pointers = self.table.iter();
        pointers.map(|(bucket, pointer)| (bucket, &resident(&self.entries, *pointer).entry))
    }

    fn pointer_to(&self, address: u64) -> Option<(Pointer, &Resident)> {
        // Section IV-C: entries are indexed by the hash of the address.
        let first = self.first_of_set(address);
        let set = self.entries[first..][..self.ways].iter().enumerate();
        set.filter_map(|(way, resident)| Some((way, resident.as_ref()?)))
            .find(|(_, resident)| resident.entry.address == address)
            .map(|(way, resident)| (Pointer((first + way) as u32), resident))
    }

    fn first_of_set(&self, address: u64) -> usize {
        set_of(address, self.free.len()) * self.ways
    }
}

fn resident(entries: &[Option<Resident>], pointer: Pointer) -> &Resident {
    entries[pointer.0 as usize].as_ref().expect("a pointer of the table points to a block")
}

/// Frees the entry to which a removed pointer of the table pointed.
fn vacate(
    entries: &mut [Option<Resident>],
    free: &mut [u16],
    ways: usize,
    pointer: Pointer,
) -> Resident {
    let resident = *resident(entries, pointer);
    entries[pointer.0 as usize] = None;
    free[pointer.0 as usize / ways] += 1;
    resident
}

/// The smallest number of sets, at least 1, whose entries cover all slots of the levels.
pub(crate) fn sets(levels: u8, ways: u16, geometry: &Geometry) -> usize {
    let slots: usize = (0..usize::from(levels)).map(|level| geometry.slots(level) << level).sum();
    slots.div_ceil(usize::from(ways)).max(1)
}

/// The index of the set of an address. IR-ORAM uses MD5 because it distributes well. The last step
/// of `SplitMix64` (Steele, Lea and Flood, OOPSLA'14) also does, with three multiplications. A
/// stronger hash gains nothing, because the set of a block never reaches storage.
pub(crate) fn set_of(address: u64, sets: usize) -> usize {
    let mut hash = address.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^= hash >> 31;
    ((u128::from(hash) * sets as u128) >> u64::BITS) as usize
}
