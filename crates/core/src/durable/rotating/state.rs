//! Saved states and plans as bytes: see `docs/format.md` of the repository.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::params::RawParams;
use super::{DurableRawOram, invalid};
use crate::durable::section::{
    Fields, bytes_of, check_range, eras_max, foreign_section, in_sections, put_count, put_eras,
};
use crate::durable::{
    AccessPlan, AnyStore, Durable, EncodedPlan, Restore, Save, SectionSize, StateSize,
};
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::pieces::TreeId;
use crate::posmap::{LivePosMap, Mapping};
use crate::scheme::{ClientLocation, Move, TakenSlot};
use crate::seal::{Era, MasterKey};
use crate::store::BucketStore;
use crate::wiped::WipedBytes;

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const MAP: u8 = 2;
    pub(super) const BLOCK: u8 = 3;
    pub(super) const TAKEN: u8 = 4;
    pub(super) const PADDING: u8 = 5;
}

/// The encoded location of a block in the stash. A block in the tree top has the id of its bucket
/// plus one instead.
const IN_STASH: u64 = 0;

/// The encoded location of a position-map block that the client caches outside of stash and tree
/// top.
const IN_FRONT: u64 = u64::MAX;

/// Number of entries of the position map per section.
const MAP_SECTION_ENTRIES: u64 = 8192;

/// Number of taken slots per section.
const TAKEN_SECTION_SLOTS: usize = 8192;

/// Bytes of an encoded entry of the position map: enough for a leaf of the deepest tree, and a bit
/// for whether the block is live.
const MAPPING_BYTES: usize = 6;

/// Bytes of an encoded taken slot.
const TAKEN_BYTES: usize = 8 + 2;

/// Bytes of a block's section, without the section's tag and the block.
const BLOCK_FIELDS_BYTES: usize = 3 * 8;

/// Bytes of an encoded move.
const MOVE_BYTES: usize = 3 * 8;

/// The counters and eras of a state.
pub(super) struct Head {
    pub(super) evictions: u64,
    pub(super) accesses_since_eviction: u32,
    pub(super) eras: Vec<Era>,
}

/// A decoded section.
enum Section<'a> {
    Head(Head),
    Map { start: u64, mappings: Vec<Option<Mapping>> },
    Block { location: ClientLocation, address: u64, leaf: Leaf, bytes: &'a [u8] },
    Taken(Vec<TakenSlot>),
    Padding,
}

impl<'a> Section<'a> {
    fn read(section: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(section);
        let section = match fields.u8()? {
            tag::HEAD => {
                let (evictions, accesses_since_eviction) = (fields.count()?, fields.u32()?);
                let eras = fields.eras(evictions)?;
                Self::Head(Head { evictions, accesses_since_eviction, eras })
            }
            tag::MAP => {
                let start = fields.count()?;
                let mapping = |fields: &mut Fields<'_>| {
                    let value = fields.number(MAPPING_BYTES)?.checked_sub(1);
                    Ok(value.map(|it| Mapping { leaf: Leaf(it >> 1), live: it & 1 == 1 }))
                };
                Self::Map { start, mappings: fields.list(MAPPING_BYTES, mapping)? }
            }
            tag::BLOCK => {
                let location = match fields.u64()? {
                    IN_STASH => ClientLocation::Stash,
                    IN_FRONT => ClientLocation::Frontend,
                    bucket => ClientLocation::TreeTop(BucketId(bucket - 1)),
                };
                let (address, leaf) = (fields.u64()?, Leaf(fields.u64()?));
                return Ok(Self::Block { location, address, leaf, bytes: fields.rest() });
            }
            tag::TAKEN => Self::Taken(fields.list(TAKEN_BYTES, |fields| {
                Ok(TakenSlot { bucket: BucketId(fields.u64()?), slot: fields.u16()? })
            })?),
            tag::PADDING => return Ok(Self::Padding),
            _ => return Err(foreign_section()),
        };
        fields.end()?;
        Ok(section)
    }
}

fn put_head(out: &mut WipedBytes, evictions: u64, accesses: u32, eras: &[&Era]) {
    out.push(tag::HEAD);
    out.extend_from_slice(&evictions.to_le_bytes());
    out.extend_from_slice(&accesses.to_le_bytes());
    put_eras(out, eras);
}

fn put_map(out: &mut WipedBytes, start: u64, mappings: &[Option<Mapping>]) {
    out.push(tag::MAP);
    out.extend_from_slice(&start.to_le_bytes());
    put_count(out, mappings.len());
    for mapping in mappings {
        // 0 means that there is no mapping.
        let value = mapping.map_or(0, |m| (m.leaf.0 << 1 | u64::from(m.live)) + 1);
        out.extend_from_slice(&value.to_le_bytes()[..MAPPING_BYTES]);
    }
}

fn put_block(
    out: &mut WipedBytes,
    location: ClientLocation,
    address: u64,
    leaf: Leaf,
    bytes: &[u8],
) {
    let location = match location {
        ClientLocation::Stash => IN_STASH,
        ClientLocation::TreeTop(bucket) => bucket.0 + 1,
        ClientLocation::Frontend => IN_FRONT,
    };
    out.push(tag::BLOCK);
    for number in [location, address, leaf.0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(bytes);
}

fn put_taken(out: &mut WipedBytes, slots: &[TakenSlot]) {
    out.push(tag::TAKEN);
    put_count(out, slots.len());
    for TakenSlot { bucket, slot } in slots {
        out.extend_from_slice(&bucket.0.to_le_bytes());
        out.extend_from_slice(&slot.to_le_bytes());
    }
}

/// Appends a section without contents, which is as long as a section with `bytes` bytes after its
/// tag.
fn put_padding(out: &mut WipedBytes, bytes: usize) {
    out.push(tag::PADDING);
    out.extend_with_zeros(bytes);
}

/// Encodes `moves` as a plan.
pub(super) fn plan_of(moves: Vec<Move>) -> AccessPlan {
    let mut section = WipedBytes::with_capacity(moves.len() * MOVE_BYTES);
    for Move { address, from, to } in &moves {
        for number in [*address, from.0, to.0] {
            section.extend_from_slice(&number.to_le_bytes());
        }
    }
    AccessPlan::new(EncodedPlan::new(moves.len(), section), moves)
}

/// Decodes the moves of a plan from the log.
pub(super) fn decode(plan: &EncodedPlan) -> Result<Vec<Move>, Error> {
    if plan.section().len() != plan.accesses() * MOVE_BYTES {
        return Err(foreign_section());
    }
    let mut fields = Fields::new(plan.section());
    let mut moves = Vec::with_capacity(plan.accesses());
    for _ in 0..plan.accesses() {
        let address = fields.u64()?;
        moves.push(Move { address, from: Leaf(fields.u64()?), to: Leaf(fields.u64()?) });
    }
    Ok(moves)
}

impl<S: BucketStore, R> DurableRawOram<S, R> {
    /// Passes the state to `out`, section by section.
    pub(super) fn save_sections(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        let backend = self.backend();
        let is_padded = what == Save::WholePadded;
        let mut section = WipedBytes::default();
        let mut emit = |put: &mut dyn FnMut(&mut WipedBytes)| {
            section.clear();
            put(&mut section);
            out(&section);
        };
        let eras: Vec<_> = backend.sealer().eras().collect();
        let since = (backend.evictions(), backend.accesses_since_eviction());
        emit(&mut |section| put_head(section, since.0, since.1, &eras));
        // The log has every move, so a flat map follows from the log. But the log does not have the
        // contents of map blocks that were fetched from the tree.
        if what != Save::Changes || !self.has_flat_map() {
            let map = self.table();
            for start in (0..map.capacity()).step_by(MAP_SECTION_ENTRIES as usize) {
                let range = start..(start + MAP_SECTION_ENTRIES).min(map.capacity());
                if is_padded || !map.is_unmapped(range.clone()) {
                    let mappings: Vec<_> = range.map(|address| map.get(address)).collect();
                    emit(&mut |section| put_map(section, start, &mappings));
                }
            }
        }
        let mut blocks = 0;
        for (location, address, leaf, bytes) in self.client_blocks() {
            emit(&mut |section| put_block(section, location, address, leaf, bytes));
            blocks += 1;
        }
        if is_padded {
            let bytes = BLOCK_FIELDS_BYTES + self.config.raw.tree.block_bytes;
            for _ in blocks..self.config.client_blocks_max() {
                emit(&mut |section| put_padding(section, bytes));
            }
        }
        let taken: Vec<_> = backend.taken_slots().collect();
        let mut chunks = taken.chunks(TAKEN_SECTION_SLOTS);
        if is_padded && self.config.recursion.is_some() {
            let mut left = self.config.raw.marked_slots_max() as usize;
            while left > 0 {
                let fitting = left.min(TAKEN_SECTION_SLOTS);
                let taken = chunks.next().unwrap_or_default();
                emit(&mut |section| put_taken(section, taken));
                let missing = fitting.saturating_sub(taken.len());
                emit(&mut |section| put_padding(section, missing * TAKEN_BYTES));
                left -= fitting;
            }
        }
        for taken in chunks {
            emit(&mut |section| put_taken(section, taken));
        }
    }

    /// Restores a block on the client or marks of taken slots from a section.
    pub(super) fn restore_section(&mut self, section: &[u8]) -> Result<(), Error> {
        match Section::read(section)? {
            Section::Block { location, address, leaf, bytes } => {
                self.restore_client_block(location, address, leaf, bytes)
            }
            Section::Taken(slots) => {
                slots.into_iter().try_for_each(|slot| self.restore_taken_slot(slot))
            }
            Section::Head(_) | Section::Map { .. } | Section::Padding => Ok(()),
        }
    }
}

/// A state that is being restored, without blocks and taken slots.
pub(super) struct RawRestore {
    params: RawParams,
    leaf_level: u8,
    map: LivePosMap,
    head: Option<Head>,
    states: u64,
}

impl RawRestore {
    pub(super) fn new(params: RawParams) -> Result<Self, Error> {
        let leaf_level = params.leaf_level;
        let map = LivePosMap::new(params.anywhere()?.client_entries()?, leaf_level)?;
        Ok(Self { params, leaf_level, map, head: None, states: 0 })
    }

    fn is_flat(&self) -> bool {
        self.params.recursion.is_none()
    }

    fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), Error> {
        if address < self.map.capacity() && mapping.leaf.0 >> self.leaf_level == 0 {
            self.map.set(address, mapping);
            Ok(())
        } else {
            Err(out_of_bounds())
        }
    }
}

impl Restore for RawRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.states += 1;
        self.head = None;
        // A flat map follows from the map of the first state and the records since. If the map is
        // in the tree, each state has all entries that are on the client.
        if !self.is_flat() {
            self.map = LivePosMap::new(self.map.capacity(), self.leaf_level)?;
        }
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        match Section::read(section)? {
            Section::Head(head) if self.head.is_none() => {
                self.head = Some(head);
                Ok(())
            }
            Section::Map { start, mappings } if !(self.is_flat() && self.states > 1) => {
                for (address, mapping) in (start..).zip(mappings) {
                    if let Some(mapping) = mapping {
                        self.set(address, mapping)?;
                    }
                }
                Ok(())
            }
            Section::Taken(_) if !self.is_flat() => Ok(()),
            Section::Block { .. } | Section::Padding => Ok(()),
            _ => Err(foreign_section()),
        }
    }

    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error> {
        let moves = decode(plan)?;
        if !self.is_flat() {
            return Ok(());
        }
        for (step, is_written) in moves.iter().zip(is_written) {
            if !step.is_dummy() {
                let was_live = self.map.get(step.address).is_some_and(|old| old.live);
                let live = was_live || *is_written;
                self.set(step.address, Mapping { leaf: step.to, live })?;
            }
        }
        Ok(())
    }

    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_range(&range, self.params.blocks)?;
        if self.is_flat() {
            self.map.forget(range);
        }
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error> {
        let head = self.head.ok_or_else(|| invalid("the state has no head"))?;
        Ok(Box::new(self.params.resume((key, trees), store, head, self.map)?))
    }
}

fn out_of_bounds() -> Error {
    invalid("the state names a block or a leaf that does not exist")
}

/// Upper bounds on the sizes of states and plans.
pub(super) fn size(params: &RawParams) -> Result<StateSize, Error> {
    let config = params.anywhere()?;
    let evictions_per_checkpoint = config.raw.spare_evictions();
    let recognised = 2 * ((1 << params.leaf_level) + evictions_per_checkpoint);
    let eras = eras_max(recognised, evictions_per_checkpoint);
    let era = Era { first_eviction: 0, salt: Default::default() };
    let block = vec![0; params.block_bytes as usize];
    let taken_slots = match params.recursion {
        Some(_) => config.raw.marked_slots_max(),
        None => 0,
    };
    let mut whole = vec![
        SectionSize {
            sections: 1,
            bytes: bytes_of(|out| put_head(out, 0, 0, &vec![&era; eras as usize])),
        },
        SectionSize {
            sections: config.client_blocks_max(),
            bytes: bytes_of(|out| put_block(out, ClientLocation::Stash, 0, Leaf(0), &block)),
        },
    ];
    whole.extend(in_sections(config.client_entries()?, MAP_SECTION_ENTRIES, |entries| {
        bytes_of(|out| put_map(out, 0, &vec![None; entries as usize]))
    }));
    let slot = TakenSlot { bucket: BucketId(0), slot: 0 };
    whole.extend(in_sections(taken_slots, TAKEN_SECTION_SLOTS as u64, |slots| {
        bytes_of(|out| put_taken(out, &vec![slot; slots as usize]))
    }));
    // In a padded state, a section of padding follows each section of taken slots.
    whole.push(SectionSize {
        sections: taken_slots.div_ceil(TAKEN_SECTION_SLOTS as u64),
        bytes: bytes_of(|out| put_padding(out, 0)),
    });
    Ok(StateSize {
        whole,
        plan_bytes_per_access: MOVE_BYTES as u64,
        accesses_per_checkpoint: evictions_per_checkpoint * u64::from(params.evict_period),
        evictions_per_checkpoint,
    })
}
