//! Saved states and plans as bytes. `docs/format.md` of the repository says what each of them is.

use std::ops::Range;

use oblivio_core::durable::section::{
    Fields, bytes_of, check_range, in_sections, put_count, strange,
};
use oblivio_core::durable::{AnyStore, Bits, Durable, Plan, Restore, Save, SectionSize, StateSize};
use oblivio_core::pieces::TreeId;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Error, Leaf, MasterKey};

use super::super::invalid;
use super::super::params::S3OramParams;
use super::array::MappedArray;
use super::known::{Draw, ENTRY_BYTES, Known, SALT_BYTES, Step};
use crate::recursive::Levels;

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const MAP: u8 = 2;
    pub(super) const LIVE: u8 = 3;
}

/// The address of no block, in a plan.
const NOTHING: u64 = u64::MAX;

/// Blocks of the last tree of which one section tells.
const SECTION_ENTRIES: u64 = 4096;

/// Blocks of which one section says whether they have contents: whole bytes of them.
const SECTION_BITS: u64 = 8 * 32_768;

/// Bytes that a plan takes for an access.
fn step_bytes(trees: usize) -> usize {
    8 + 8 + trees * (4 + 4) + SALT_BYTES
}

/// How large states and plans are at most.
pub(in crate::durable) fn size(params: &S3OramParams, levels: &Levels) -> StateSize {
    let mut whole = vec![SectionSize { sections: 1, bytes: bytes_of(|out| put_head(out, 0)) }];
    whole.extend(in_sections(levels.client_entries() as u64, SECTION_ENTRIES, |entries| {
        bytes_of(|out| put_map(out, 0, &vec![[0; 2]; entries as usize]))
    }));
    whole.extend(in_sections(params.blocks, SECTION_BITS, |blocks| {
        bytes_of(|out| put_live(out, &Bits::new(blocks), 0..blocks))
    }));
    StateSize {
        whole,
        plan_bytes_per_access: step_bytes(levels.count()) as u64,
        accesses_per_checkpoint: params.accesses_per_checkpoint(),
        evictions_per_checkpoint: 0,
    }
}

fn put_head(out: &mut WipedBytes, accesses: u64) {
    out.push(tag::HEAD);
    out.extend_from_slice(&accesses.to_le_bytes());
}

fn put_map(out: &mut WipedBytes, start: u64, entries: &[[u64; 2]]) {
    out.push(tag::MAP);
    out.extend_from_slice(&start.to_le_bytes());
    put_count(out, entries.len());
    for number in entries.iter().flatten() {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn put_live(out: &mut WipedBytes, live: &Bits, range: Range<u64>) {
    out.push(tag::LIVE);
    out.extend_from_slice(&range.start.to_le_bytes());
    put_count(out, (range.end - range.start) as usize);
    // What a block is read into is not wiped. It says no more than whether blocks have contents.
    out.extend_from_slice(&live.to_bytes(range));
}

/// Hands the state to `out`, section by section.
pub(super) fn save(known: &Known, blocks: u64, what: Save, out: &mut dyn FnMut(&[u8])) {
    let mut section = WipedBytes::default();
    let mut tell = |put: &mut dyn FnMut(&mut WipedBytes)| {
        section.clear();
        put(&mut section);
        out(&section);
    };
    tell(&mut |section| put_head(section, known.accesses()));
    // All else follows from the plans.
    if what == Save::Changes {
        return;
    }
    let is_padded = what == Save::WholePadded;
    for (start, entries) in (0..)
        .step_by(SECTION_ENTRIES as usize)
        .zip(known.entries().chunks(SECTION_ENTRIES as usize))
    {
        if is_padded || entries.iter().any(|entry| *entry != [0; 2]) {
            tell(&mut |section| put_map(section, start, entries));
        }
    }
    for start in (0..blocks).step_by(SECTION_BITS as usize) {
        let range = start..(start + SECTION_BITS).min(blocks);
        if is_padded || range.clone().any(|address| known.live.contains(address)) {
            tell(&mut |section| put_live(section, &known.live, range.clone()));
        }
    }
}

/// A plan of these accesses.
pub(super) fn plan_of(steps: &[Step]) -> Plan {
    let bytes = steps.iter().map(|step| step_bytes(step.draws.len())).sum();
    let mut section = WipedBytes::with_capacity(bytes);
    for Step { number, address, draws, salt } in steps {
        section.extend_from_slice(&number.to_le_bytes());
        section.extend_from_slice(&address.unwrap_or(NOTHING).to_le_bytes());
        for Leaf(leaf) in draws.iter().flat_map(|draw| [draw.instead, draw.to]) {
            // A tree has 2^30 leaves at most.
            section.extend_from_slice(&(leaf as u32).to_le_bytes());
        }
        section.extend_from_slice(salt);
    }
    Plan::new(steps.len(), section)
}

/// The accesses of a plan, to these trees.
pub(super) fn steps_of(levels: &Levels, plan: &Plan) -> Result<Vec<Step>, Error> {
    let mut fields = Fields::of(plan.section());
    let step_bytes = step_bytes(levels.count());
    let mut steps = Vec::with_capacity(plan.accesses().min(plan.section().len() / step_bytes));
    for _ in 0..plan.accesses() {
        let number = fields.count()?;
        let address = match fields.u64()? {
            NOTHING => None,
            address if address < levels.level(0).blocks => Some(address),
            _ => return Err(strange()),
        };
        let mut draws = Vec::with_capacity(levels.count());
        for level in levels.iter() {
            let [instead, to] = [fields.u32()?, fields.u32()?].map(|leaf| Leaf(leaf.into()));
            if [instead, to].iter().any(|leaf| leaf.0 >= level.tree.leaves()) {
                return Err(strange());
            }
            draws.push(Draw { instead, to });
        }
        steps.push(Step { number, address, draws, salt: fields.array()? });
    }
    fields.end()?;
    Ok(steps)
}

/// A state that comes back.
pub(in crate::durable) struct MappedRestore {
    params: S3OramParams,
    levels: Levels,
    known: Known,
    states: u64,
    /// The state that is coming has said how far it is.
    has_head: bool,
}

impl MappedRestore {
    pub(in crate::durable) fn new(params: S3OramParams, levels: Levels) -> Self {
        let known = Known::new(&levels);
        Self { params, levels, known, states: 0, has_head: false }
    }

    fn head(&mut self, accesses: u64) -> Result<(), Error> {
        let follows = self.states == 1 || accesses == self.known.accesses();
        if self.has_head || !follows {
            return Err(strange());
        }
        self.known.go_to(accesses);
        self.has_head = true;
        Ok(())
    }

    fn live(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let (start, count) = (fields.count()?, u64::from(fields.u32()?));
        let bytes = fields.bytes(count.div_ceil(8) as usize)?;
        fields.end()?;
        check_range(&(start..start + count), self.params.blocks)?;
        for bit in (0..count).filter(|bit| bytes[(bit / 8) as usize] >> (bit % 8) & 1 == 1) {
            self.known.live.insert(start + bit);
        }
        Ok(())
    }
}

impl Restore for MappedRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.states += 1;
        self.has_head = false;
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        let mut fields = Fields::of(section);
        match fields.u8()? {
            tag::HEAD => {
                let accesses = fields.count()?;
                fields.end()?;
                self.head(accesses)
            }
            // Those of later states follow from the first and the plans since.
            tag::MAP if self.states == 1 => {
                let start = fields.count()?;
                let entries =
                    fields.list(ENTRY_BYTES, |fields| Ok([fields.u64()?, fields.u64()?]))?;
                fields.end()?;
                let fits =
                    (start..).zip(entries).all(|(at, entry)| self.known.set_entry(at, entry));
                if fits { Ok(()) } else { Err(strange()) }
            }
            tag::LIVE if self.states == 1 => self.live(fields),
            _ => Err(strange()),
        }
    }

    fn carried_out(&mut self, plan: &Plan, is_written: &[bool]) -> Result<(), Error> {
        for (step, is_written) in steps_of(&self.levels, plan)?.iter().zip(is_written) {
            if step.number != self.known.accesses() {
                return Err(strange());
            }
            self.known.access(step, *is_written);
        }
        Ok(())
    }

    fn forgotten(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_range(&range, self.params.blocks)?;
        self.known.forget(range);
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error> {
        if !self.has_head {
            return Err(invalid("the state has no head"));
        }
        let Self { params, levels, known, .. } = *self;
        Ok(Box::new(MappedArray::new(params, &levels, &key, trees, store, known)?))
    }
}
