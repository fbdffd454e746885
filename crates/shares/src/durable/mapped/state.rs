//! Saved states and plans as bytes. `docs/format.md` of the repository says what each of them is.

use std::ops::Range;

use oblivio_core::durable::section::{
    Fields, bytes_of, check_range, in_sections, put_count, strange,
};
use oblivio_core::durable::{
    AccessPlan, AnyStore, Bits, Durable, EncodedPlan, Restore, Save, StateSize,
};
use oblivio_core::pieces::TreeId;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Error, Leaf, MasterKey};

use super::super::params::S3OramParams;
use super::super::sections::{self, Coming, Saving, ranges, tag};
use super::array::MappedArray;
use super::known::{Draw, Known, SALT_BYTES, Step};
use crate::map_trees::Levels;

/// What the sections begin with that say which blocks have contents. Others begin as those without trees of the map do.
const LIVE: u8 = 3;

/// The address of no block, in a plan.
const NOTHING: u64 = u64::MAX;

/// Blocks of which one section says whether they have contents: whole bytes of them.
const SECTION_BITS: u64 = 8 * 32_768;

/// Bytes that a plan takes for an access.
fn step_bytes(trees: usize) -> usize {
    8 + 8 + trees * (4 + 4) + SALT_BYTES
}

/// How large states and plans are at most.
pub(in crate::durable) fn size(params: &S3OramParams, levels: &Levels) -> StateSize {
    let mut whole = sections::sizes(levels.client_entries() as u64);
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

fn put_live(out: &mut WipedBytes, live: &Bits, range: Range<u64>) {
    out.push(LIVE);
    out.extend_from_slice(&range.start.to_le_bytes());
    put_count(out, (range.end - range.start) as usize);
    // What a block is read into is not wiped. It says no more than whether blocks have contents.
    out.extend_from_slice(&live.to_bytes(range));
}

/// Hands the state to `out`, section by section.
pub(super) fn save(known: &Known, blocks: u64, what: Save, out: &mut dyn FnMut(&[u8])) {
    let Some(mut saving) = Saving::begin(known.accesses(), what, out) else { return };
    let entries = known.entries();
    saving.map(entries.len() as u64, &|block| entries[block as usize]);
    for range in ranges(blocks, SECTION_BITS) {
        let is_of_nothing = !range.clone().any(|address| known.live.contains(address));
        saving.section(is_of_nothing, |section| put_live(section, &known.live, range));
    }
}

/// A plan of these accesses.
pub(super) fn plan_of(steps: Vec<Step>) -> AccessPlan {
    let bytes = steps.iter().map(|step| step_bytes(step.draws.len())).sum();
    let mut section = WipedBytes::with_capacity(bytes);
    for Step { number, address, draws, salt } in &steps {
        section.extend_from_slice(&number.to_le_bytes());
        section.extend_from_slice(&address.unwrap_or(NOTHING).to_le_bytes());
        for Leaf(leaf) in draws.iter().flat_map(|draw| [draw.instead, draw.to]) {
            // A tree has 2^30 leaves at most.
            section.extend_from_slice(&(leaf as u32).to_le_bytes());
        }
        section.extend_from_slice(salt);
    }
    AccessPlan::new(EncodedPlan::new(steps.len(), section), steps)
}

/// The accesses of a plan that the journal has kept, to these trees.
pub(super) fn decode(levels: &Levels, plan: &EncodedPlan) -> Result<Vec<Step>, Error> {
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
    coming: Coming,
}

impl MappedRestore {
    pub(in crate::durable) fn new(params: S3OramParams, levels: Levels) -> Self {
        let known = Known::new(&levels);
        Self { params, levels, known, coming: Coming::default() }
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
        self.coming.begin();
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        let Self { known, coming, .. } = self;
        let mut fields = Fields::of(section);
        match fields.u8()? {
            tag::HEAD => {
                known.go_to(coming.head(fields, known.accesses())?);
                Ok(())
            }
            tag::MAP if coming.is_first() => {
                coming.map(fields, |block, entry| known.set_entry(block, entry))
            }
            LIVE if coming.is_first() => self.live(fields),
            _ => Err(strange()),
        }
    }

    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error> {
        for (step, is_written) in decode(&self.levels, plan)?.iter().zip(is_written) {
            if step.number != self.known.accesses() {
                return Err(strange());
            }
            self.known.access(step, *is_written);
        }
        Ok(())
    }

    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error> {
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
        self.coming.end()?;
        let Self { params, levels, known, .. } = *self;
        Ok(Box::new(MappedArray::new(params, &levels, &key, trees, store, known)?))
    }
}
