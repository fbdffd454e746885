//! Saved states and plans as bytes: see `docs/format.md` of the repository.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::access::{NO_BLOCK, ScanArray};
use super::invalid;
use super::params::ScanParams;
use crate::durable::section::{Fields, check_range, eras_max, foreign_section, put_eras};
use crate::durable::{
    AccessPlan, AnyStore, Durable, EncodedPlan, Restore, SectionSize, SparseAddressSet, StateSize,
};
use crate::error::Error;
use crate::pieces::TreeId;
use crate::seal::{Era, MasterKey};
use crate::wiped::WipedBytes;

/// Bytes of an encoded access in a plan.
const PLAN_ENTRY_BYTES: usize = 8;

/// The whole state of the client.
pub(super) struct Head {
    /// The number of accesses (t), which starts at N + W. Public.
    pub(super) accesses: u64,
    pub(super) eras: Vec<Era>,
    /// The blocks that have contents. Secret.
    pub(super) live: SparseAddressSet,
}

/// Upper bounds on the sizes of states and plans.
pub(super) fn size(params: &ScanParams) -> StateSize {
    let era = Era { first_eviction: 0, salt: Default::default() };
    let eras = vec![&era; eras_max(params.recognised(), params.spare) as usize];
    let bytes = section(0, &eras, params.blocks, &|_| false).len() as u64;
    StateSize {
        whole: vec![SectionSize { sections: 1, bytes }],
        plan_bytes_per_access: PLAN_ENTRY_BYTES as u64,
        accesses_per_checkpoint: params.spare,
        evictions_per_checkpoint: 0,
    }
}

/// The only section of a state.
pub(super) fn section(
    accesses: u64,
    eras: &[&Era],
    blocks: u64,
    is_live: &dyn Fn(u64) -> bool,
) -> WipedBytes {
    let mut section = WipedBytes::default();
    section.extend_from_slice(&accesses.to_le_bytes());
    put_eras(&mut section, eras);
    for start in (0..blocks).step_by(8) {
        let bits = (start..blocks.min(start + 8)).map(|at| u8::from(is_live(at)) << (at - start));
        section.push(bits.sum());
    }
    section
}

/// Encodes accesses to `blocks` as a plan; `None` is a dummy.
pub(super) fn plan_of(blocks: Vec<Option<u64>>) -> AccessPlan {
    let mut section = WipedBytes::with_capacity(PLAN_ENTRY_BYTES * blocks.len());
    for block in &blocks {
        section.extend_from_slice(&block.unwrap_or(NO_BLOCK).to_le_bytes());
    }
    AccessPlan::new(EncodedPlan::new(blocks.len(), section), blocks)
}

impl ScanParams {
    /// The block of each access of a plan from the log.
    pub(super) fn decode_steps(&self, plan: &EncodedPlan) -> Result<Vec<Option<u64>>, Error> {
        let mut fields = Fields::new(plan.section());
        let mut blocks = Vec::new();
        for _ in 0..plan.accesses() {
            match fields.u64()? {
                NO_BLOCK => blocks.push(None),
                address if address < self.blocks => blocks.push(Some(address)),
                _ => return Err(foreign_section()),
            }
        }
        fields.end()?;
        Ok(blocks)
    }
}

/// A state that is being restored.
pub(super) struct ScanRestore {
    params: ScanParams,
    head: Option<Head>,
}

impl ScanRestore {
    pub(super) fn new(params: ScanParams) -> Self {
        Self { params, head: None }
    }
}

impl Restore for ScanRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.head = None;
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        let mut fields = Fields::new(section);
        let accesses = fields.count()?;
        let eras = fields.eras(accesses)?;
        let blocks = self.params.blocks;
        let bits = fields.bytes(blocks.div_ceil(8) as usize)?;
        fields.end()?;
        if self.head.is_some() || accesses < self.params.first() {
            return Err(foreign_section());
        }
        let mut live = SparseAddressSet::new(blocks);
        let is_set = |address: &u64| bits[(address / 8) as usize] >> (address % 8) & 1 == 1;
        (0..blocks).filter(is_set).for_each(|address| live.insert(address));
        self.head = Some(Head { accesses, eras, live });
        Ok(())
    }

    fn replay(&mut self, plan: &EncodedPlan, _: &[bool]) -> Result<(), Error> {
        self.params.decode_steps(plan).map(drop)
    }

    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_range(&range, self.params.blocks)
    }

    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error> {
        let head = self.head.ok_or_else(|| invalid("the state has no head"))?;
        Ok(Box::new(ScanArray::new(self.params, key, trees, store, head)?))
    }
}
