//! Saved states and plans as bytes: see `docs/format.md` of the repository.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::access::{RangeArray, RangeStep};
use super::invalid;
use super::params::RangeParams;
use super::sub_oram::RangePositions;
use crate::durable::section::{
    Fields, bytes_of, check_range, eras_max, foreign_section, in_sections, put_count, put_eras,
};
use crate::durable::{
    AccessPlan, AnyStore, Durable, EncodedPlan, Restore, Save, SectionSize, SparseAddressSet,
    StateSize,
};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::pieces::TreeId;
use crate::seal::{Era, MasterKey};
use crate::wiped::WipedBytes;

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const POSITIONS: u8 = 2;
    pub(super) const LIVE: u8 = 3;
    pub(super) const BLOCK: u8 = 4;
    pub(super) const PADDING: u8 = 5;
}

/// Number of ranges whose leaves are in one section.
const POSITIONS_SECTION_RANGES: u64 = 8192;

/// Bytes of an encoded leaf in a section of positions.
const LEAF_BYTES: usize = 5;

/// Blocks per section of the bitmap of blocks with contents; a multiple of 8.
const LIVE_SECTION_BLOCKS: u64 = 1 << 16;

/// Bytes of a block's section, without the section's tag and the block.
const BLOCK_FIELDS_BYTES: usize = 8 + 4;

/// Bytes of an encoded step of a plan.
const STEP_BYTES: usize = 1 + 3 * 8;

/// The counters and eras of a state.
pub(super) struct Head {
    pub(super) evictions: u64,
    pub(super) blocks_since_eviction: u32,
    /// The eras of the seal, for each class.
    pub(super) eras: Vec<Vec<Era>>,
}

/// A decoded section.
enum Section<'a> {
    Head(Head),
    Positions { class: u8, start: u64, leaves: Vec<Leaf> },
    Live { start: u64, bits: &'a [u8] },
    Block { address: u64, awaited_by: u32, bytes: &'a [u8] },
    Padding,
}

impl<'a> Section<'a> {
    fn read(section: &'a [u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(section);
        let section = match fields.u8()? {
            tag::HEAD => {
                let (evictions, blocks_since_eviction) = (fields.count()?, fields.u32()?);
                let eras = fields.list(4, |fields| fields.eras(evictions))?;
                Self::Head(Head { evictions, blocks_since_eviction, eras })
            }
            tag::POSITIONS => {
                let (class, start) = (fields.u8()?, fields.count()?);
                let leaf = |fields: &mut Fields<'_>| fields.number(LEAF_BYTES).map(Leaf);
                Self::Positions { class, start, leaves: fields.list(LEAF_BYTES, leaf)? }
            }
            tag::LIVE => return Ok(Self::Live { start: fields.count()?, bits: fields.rest() }),
            tag::BLOCK => {
                let (address, awaited_by) = (fields.u64()?, fields.u32()?);
                return Ok(Self::Block { address, awaited_by, bytes: fields.rest() });
            }
            tag::PADDING => return Ok(Self::Padding),
            _ => return Err(foreign_section()),
        };
        fields.end()?;
        Ok(section)
    }
}

fn put_head(out: &mut WipedBytes, evictions: u64, since: u32, eras: &[Vec<&Era>]) {
    out.push(tag::HEAD);
    out.extend_from_slice(&evictions.to_le_bytes());
    out.extend_from_slice(&since.to_le_bytes());
    put_count(out, eras.len());
    eras.iter().for_each(|eras| put_eras(out, eras));
}

fn put_positions(out: &mut WipedBytes, class: u8, start: u64, leaves: &[Leaf]) {
    out.push(tag::POSITIONS);
    out.push(class);
    out.extend_from_slice(&start.to_le_bytes());
    put_count(out, leaves.len());
    for leaf in leaves {
        out.extend_from_slice(&leaf.0.to_le_bytes()[..LEAF_BYTES]);
    }
}

fn put_live(out: &mut WipedBytes, start: u64, bits: &[u8]) {
    out.push(tag::LIVE);
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(bits);
}

fn put_block(out: &mut WipedBytes, address: u64, awaited_by: u32, bytes: &[u8]) {
    out.push(tag::BLOCK);
    out.extend_from_slice(&address.to_le_bytes());
    out.extend_from_slice(&awaited_by.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a section without contents, which is as long as the section of a block.
fn put_padding(out: &mut WipedBytes, block_bytes: usize) {
    out.push(tag::PADDING);
    out.extend_with_zeros(BLOCK_FIELDS_BYTES + block_bytes);
}

/// Encodes `steps` as a plan. A step counts as one access per block of its range.
pub(super) fn plan_of(steps: Vec<RangeStep>) -> AccessPlan {
    let mut section = WipedBytes::with_capacity(steps.len() * STEP_BYTES);
    for RangeStep { class, first, from, to } in &steps {
        section.push(*class);
        for number in [*first, from.0, to.0] {
            section.extend_from_slice(&number.to_le_bytes());
        }
    }
    let accesses = steps.iter().map(RangeStep::blocks).sum();
    AccessPlan::new(EncodedPlan::new(accesses, section), steps)
}

impl RangeParams {
    /// Decodes the steps of a plan from the log.
    pub(super) fn decode_steps(&self, plan: &EncodedPlan) -> Result<Vec<RangeStep>, Error> {
        let mut fields = Fields::new(plan.section());
        let mut steps = Vec::with_capacity(plan.section().len() / STEP_BYTES);
        while !fields.is_at_end() {
            let (class, first) = (fields.u8()?, fields.u64()?);
            let (from, to) = (Leaf(fields.u64()?), Leaf(fields.u64()?));
            let step = RangeStep { class, first, from, to };
            // The callers compute with these values unchecked.
            let are_leaves = (from.0 | to.0) >> self.leaf_level == 0;
            let fits = are_leaves
                && self.classes.contains(&class)
                && (step.is_dummy()
                    || first < self.blocks && first + step.blocks() as u64 <= self.blocks);
            if !fits {
                return Err(foreign_section());
            }
            steps.push(step);
        }
        match steps.iter().map(RangeStep::blocks).sum::<usize>() == plan.accesses() {
            true => Ok(steps),
            false => Err(foreign_section()),
        }
    }
}

impl RangeArray {
    /// Passes the state to `out`, section by section.
    pub(super) fn save_sections(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        let mut section = WipedBytes::default();
        let mut emit = |put: &mut dyn FnMut(&mut WipedBytes)| {
            section.clear();
            put(&mut section);
            out(&section);
        };
        let eras: Vec<Vec<_>> =
            self.subs.iter().map(|sub| sub.tree.sealer().eras().collect()).collect();
        emit(&mut |section| {
            put_head(section, self.evictions, self.blocks_since_eviction, &eras);
        });
        // Positions, and which blocks have contents, follow from the plans since the previous
        // state.
        if what != Save::Changes {
            for sub in &self.subs {
                for (start, count) in sections(sub.positions.ranges(), POSITIONS_SECTION_RANGES) {
                    let leaves: Vec<_> =
                        (start..start + count).map(|range| sub.positions.of_range(range)).collect();
                    emit(&mut |section| {
                        put_positions(section, sub.positions.class(), start, &leaves)
                    });
                }
            }
            for (start, count) in sections(self.params.blocks, LIVE_SECTION_BLOCKS) {
                let bits = self.live.to_bytes(start..start + count);
                if what == Save::WholePadded || bits.iter().any(|byte| *byte != 0) {
                    emit(&mut |section| put_live(section, start, &bits));
                }
            }
        }
        let mut blocks = 0;
        for (address, place, awaited_by) in self.held.all() {
            emit(&mut |section| put_block(section, address, awaited_by, self.arena.get(place)));
            blocks += 1;
        }
        if what == Save::WholePadded {
            for _ in blocks..self.params.client_blocks_max() {
                emit(&mut |section| put_padding(section, self.params.block_bytes as usize));
            }
        }
    }

    /// Restores a block on the client from its section.
    pub(super) fn restore_section(&mut self, section: &[u8]) -> Result<(), Error> {
        let Section::Block { address, awaited_by, bytes } = Section::read(section)? else {
            return Ok(());
        };
        let is_room = (self.held.len() as u64) < self.params.client_blocks_max();
        let fits = address < self.params.blocks
            && self.live.contains(address)
            && bytes.len() == self.params.block_bytes as usize
            && awaited_by != 0
            && u64::from(awaited_by) >> self.subs.len() == 0
            && self.held.place(address).is_none()
            && is_room;
        if !fits {
            return Err(invalid("the state has a block that cannot have been on this client"));
        }
        let place = self.arena.take();
        self.arena.get_mut(place).copy_from_slice(bytes);
        self.held.hold(address, place);
        for (at, sub) in
            self.subs.iter_mut().enumerate().filter(|(at, _)| awaited_by >> at & 1 == 1)
        {
            self.held.set_awaited(address, at);
            sub.await_eviction(address);
        }
        Ok(())
    }
}

/// A state that is being restored, without the blocks on the client.
pub(super) struct RangeRestore {
    params: RangeParams,
    positions: Vec<RangePositions>,
    live: SparseAddressSet,
    head: Option<Head>,
    states: u64,
}

impl RangeRestore {
    pub(super) fn new(params: &RangeParams) -> Result<Self, Error> {
        let positions = params.classes.iter().map(|class| RangePositions::new(params, *class));
        Ok(Self {
            positions: positions.collect::<Result<_, _>>()?,
            live: SparseAddressSet::new(params.blocks),
            head: None,
            states: 0,
            params: params.clone(),
        })
    }

    fn set(&mut self, class: u8, range: u64, leaf: Leaf) -> Result<(), Error> {
        let positions = self.positions.iter_mut().find(|it| it.class() == class);
        match positions {
            Some(positions)
                if range < positions.ranges() && leaf.0 >> self.params.leaf_level == 0 =>
            {
                positions.set(range, leaf);
                Ok(())
            }
            _ => Err(invalid("the state names a range or a leaf that does not exist")),
        }
    }
}

impl Restore for RangeRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.states += 1;
        self.head = None;
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        match Section::read(section)? {
            Section::Head(head) if self.head.is_none() => {
                if head.eras.len() != self.params.classes.len() {
                    return Err(foreign_section());
                }
                self.head = Some(head);
                Ok(())
            }
            Section::Positions { class, start, leaves } if self.states == 1 => {
                (start..).zip(leaves).try_for_each(|(range, leaf)| self.set(class, range, leaf))
            }
            Section::Live { start, bits } if self.states == 1 => {
                for (at, byte) in (start..).step_by(8).zip(bits) {
                    for address in (at..at + 8).filter(|address| byte >> (address - at) & 1 == 1) {
                        if address >= self.params.blocks {
                            return Err(foreign_section());
                        }
                        self.live.insert(address);
                    }
                }
                Ok(())
            }
            Section::Block { .. } | Section::Padding => Ok(()),
            _ => Err(foreign_section()),
        }
    }

    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error> {
        let mut is_written = is_written.iter();
        for step in self.params.decode_steps(plan)? {
            let of_step: Vec<_> = is_written.by_ref().take(step.blocks()).collect();
            if step.is_dummy() {
                continue;
            }
            self.set(step.class, step.first >> step.class, step.to)?;
            for (address, is_written) in (step.first..).zip(of_step) {
                if *is_written {
                    self.live.insert(address);
                }
            }
        }
        Ok(())
    }

    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_range(&range, self.params.blocks)?;
        self.live.remove_all(range);
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error> {
        let head = self.head.ok_or_else(|| invalid("the state has no head"))?;
        let mut array = RangeArray::new(&self.params, key, trees, store, head)?;
        for (sub, positions) in array.subs.iter_mut().zip(self.positions) {
            sub.positions = positions;
        }
        array.live = self.live;
        Ok(Box::new(array))
    }
}

/// Upper bounds on the sizes of states and plans.
pub(super) fn size(params: &RangeParams) -> Result<StateSize, Error> {
    params.check()?;
    let spare = params.spare_evictions();
    let era = Era { first_eviction: 0, salt: Default::default() };
    let eras = vec![&era; eras_max(params.recognised_evictions(), spare) as usize];
    let eras = vec![eras; params.classes.len()];
    let block = vec![0; params.block_bytes as usize];
    let mut whole = vec![
        SectionSize { sections: 1, bytes: bytes_of(|out| put_head(out, 0, 0, &eras)) },
        SectionSize {
            sections: params.client_blocks_max(),
            bytes: bytes_of(|out| put_block(out, 0, 0, &block)),
        },
    ];
    for class in &params.classes {
        whole.extend(in_sections(params.entries(*class), POSITIONS_SECTION_RANGES, |ranges| {
            bytes_of(|out| put_positions(out, 0, 0, &vec![Leaf(0); ranges as usize]))
        }));
    }
    whole.extend(in_sections(params.blocks, LIVE_SECTION_BLOCKS, |blocks| {
        bytes_of(|out| put_live(out, 0, &vec![0; blocks.div_ceil(8) as usize]))
    }));
    Ok(StateSize {
        whole,
        plan_bytes_per_access: STEP_BYTES as u64,
        accesses_per_checkpoint: (spare + 1) * u64::from(params.evict_period),
        evictions_per_checkpoint: spare,
    })
}

/// Splits `things` items into sections of at most `in_each` items. Returns, for each section, the
/// index of its first item and its number of items.
fn sections(things: u64, in_each: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..things.div_ceil(in_each)).map(move |at| {
        let start = at * in_each;
        (start, in_each.min(things - start))
    })
}
