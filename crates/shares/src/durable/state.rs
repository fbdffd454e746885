//! The encoding of saved states and plans. `docs/format.md` in the repository describes it.

use std::ops::Range;

use oblivio_core::durable::section::{
    Fields, bytes_of, check_range, foreign_section, in_sections, put_count,
};
use oblivio_core::durable::{
    AccessPlan, AnyStore, Durable, EncodedPlan, Restore, Save, SparseAddressSet, StateSize,
};
use oblivio_core::pieces::TreeId;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Error, Leaf, MasterKey};

use super::array::ShareArray;
use super::client_state::{AccessStep, ClientState, DUMMY_ADDRESS, Draw, Positions, SALT_BYTES};
use super::params::S3OramParams;
use super::sections::{self, StateReader, StateWriter, ranges, tag};

/// The tag of sections with a bit for each block: whether the block has contents. Only used if the
/// position map is in trees; otherwise the map entries contain this bit.
const LIVE: u8 = 3;

/// The number of blocks in one [`LIVE`] section, a multiple of 8.
const SECTION_BITS: u64 = 8 * 32_768;

/// Bytes of one access in a plan.
fn step_bytes(params: &S3OramParams) -> usize {
    // With the position map on the client, a plan has no number: its positions identify it.
    let number_bytes = if params.is_in_trees() { 8 } else { 0 };
    number_bytes + 8 + params.trees().len() * (4 + 4) + SALT_BYTES
}

/// The maximum sizes of states and plans.
pub(super) fn size(params: &S3OramParams) -> StateSize {
    let entries = match params.levels() {
        None => params.blocks,
        Some(levels) => levels.client_entries() as u64,
    };
    let mut whole = sections::sizes(entries);
    if params.is_in_trees() {
        whole.extend(in_sections(params.blocks, SECTION_BITS, |blocks| {
            bytes_of(|out| put_live(out, &SparseAddressSet::new(blocks), 0..blocks))
        }));
    }
    StateSize {
        whole,
        plan_bytes_per_access: step_bytes(params) as u64,
        accesses_per_checkpoint: params.accesses_per_checkpoint(),
        evictions_per_checkpoint: 0,
    }
}

fn put_live(out: &mut WipedBytes, live: &SparseAddressSet, range: Range<u64>) {
    out.push(LIVE);
    out.extend_from_slice(&range.start.to_le_bytes());
    put_count(out, (range.end - range.start) as usize);
    // The result of `to_bytes` is not wiped. It only tells which blocks have contents.
    out.extend_from_slice(&live.to_bytes(range));
}

/// Passes the state to `out`, section by section.
pub(super) fn save(state: &ClientState, what: Save, out: &mut dyn FnMut(&[u8])) {
    let Some(mut writer) = StateWriter::begin(state.accesses(), what, out) else { return };
    writer.map(state.entries(), &|block| state.entry(block));
    let Positions::InTrees(map) = &state.positions else { return };
    for range in ranges(map.levels.level(0).blocks, SECTION_BITS) {
        let is_dummy = !range.clone().any(|address| map.live.contains(address));
        writer.section(is_dummy, |section| put_live(section, &map.live, range));
    }
}

/// Encodes these accesses as a plan.
pub(super) fn plan_of(steps: Vec<AccessStep>) -> AccessPlan {
    let bytes = |step: &AccessStep| 8 + 8 + step.draws.len() * (4 + 4) + SALT_BYTES;
    let mut section = WipedBytes::with_capacity(steps.iter().map(bytes).sum());
    for AccessStep { number, address, draws, salt } in &steps {
        number.iter().for_each(|number| section.extend_from_slice(&number.to_le_bytes()));
        section.extend_from_slice(&address.unwrap_or(DUMMY_ADDRESS).to_le_bytes());
        for Leaf(leaf) in draws.iter().flat_map(|draw| [draw.shown, draw.to]) {
            // A tree has at most 2^30 leaves.
            section.extend_from_slice(&(leaf as u32).to_le_bytes());
        }
        section.extend_from_slice(salt);
    }
    AccessPlan::new(EncodedPlan::new(steps.len(), section), steps)
}

impl S3OramParams {
    /// Decodes the accesses of a plan from the log.
    pub(super) fn decode_steps(&self, plan: &EncodedPlan) -> Result<Vec<AccessStep>, Error> {
        let mut fields = Fields::new(plan.section());
        let (trees, step_bytes) = (self.trees(), step_bytes(self));
        let mut steps = Vec::with_capacity(plan.accesses().min(plan.section().len() / step_bytes));
        for _ in 0..plan.accesses() {
            let number = if self.is_in_trees() { Some(fields.count()?) } else { None };
            let address = match fields.u64()? {
                DUMMY_ADDRESS => None,
                address if address < self.blocks => Some(address),
                _ => return Err(foreign_section()),
            };
            let mut draws = Vec::with_capacity(trees.len());
            for it in &trees {
                let [shown, to] = [fields.u32()?, fields.u32()?].map(|leaf| Leaf(leaf.into()));
                if [shown, to].iter().any(|leaf| leaf.0 >= it.tree.leaves()) {
                    return Err(foreign_section());
                }
                draws.push(Draw { shown, to });
            }
            steps.push(AccessStep { number, address, draws, salt: fields.array()? });
        }
        fields.end()?;
        Ok(steps)
    }
}

/// A state that is being restored, section by section.
pub(super) struct ShareRestore {
    params: S3OramParams,
    state: ClientState,
    reader: StateReader,
}

impl ShareRestore {
    pub(super) fn new(params: S3OramParams) -> Result<Self, Error> {
        let state = ClientState::new(&params)?;
        Ok(Self { params, state, reader: StateReader::default() })
    }

    fn live(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let Positions::InTrees(map) = &mut self.state.positions else {
            return Err(foreign_section());
        };
        let (start, count) = (fields.count()?, u64::from(fields.u32()?));
        let bytes = fields.bytes(count.div_ceil(8) as usize)?;
        fields.end()?;
        check_range(&(start..start + count), self.params.blocks)?;
        for bit in (0..count).filter(|bit| bytes[(bit / 8) as usize] >> (bit % 8) & 1 == 1) {
            map.live.insert(start + bit);
        }
        Ok(())
    }
}

impl Restore for ShareRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.reader.begin();
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        let Self { state, reader, .. } = self;
        let mut fields = Fields::new(section);
        match fields.u8()? {
            tag::HEAD => {
                state.set_accesses(reader.head(fields, state.accesses())?);
                Ok(())
            }
            tag::MAP if reader.is_first() => {
                reader.map(fields, |block, entry| state.set_entry(block, entry))
            }
            LIVE if reader.is_first() => self.live(fields),
            _ => Err(foreign_section()),
        }
    }

    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error> {
        let steps = self.params.decode_steps(plan)?;
        for (step, is_written) in steps.iter().zip(is_written) {
            self.state.access(step, *is_written)?;
        }
        Ok(())
    }

    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_range(&range, self.params.blocks)?;
        self.state.forget(range);
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error> {
        self.reader.end()?;
        Ok(Box::new(ShareArray::new(self.params, &key, trees, store, self.state)?))
    }
}
