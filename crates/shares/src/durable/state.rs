//! Saved states and plans as bytes. `docs/format.md` of the repository says what each of them is.

use std::ops::Range;

use oblivio_core::durable::section::{Fields, check_range, strange};
use oblivio_core::durable::{AccessPlan, AnyStore, Durable, EncodedPlan, Restore, Save, StateSize};
use oblivio_core::pieces::TreeId;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Error, Leaf, MasterKey};

use super::access::ShareArray;
use super::known::{Known, NOTHING, SALT_BYTES, Step};
use super::params::S3OramParams;
use super::sections::{self, Coming, Saving, tag};

/// Bytes that a plan takes for an access.
const STEP_BYTES: usize = 8 + 4 + 4 + SALT_BYTES;

/// How large states and plans are at most.
pub(super) fn size(params: &S3OramParams) -> StateSize {
    StateSize {
        whole: sections::sizes(params.blocks),
        plan_bytes_per_access: STEP_BYTES as u64,
        accesses_per_checkpoint: params.accesses_per_checkpoint(),
        evictions_per_checkpoint: 0,
    }
}

/// Hands the state to `out`, section by section.
pub(super) fn save(known: &Known, what: Save, out: &mut dyn FnMut(&[u8])) {
    if let Some(mut saving) = Saving::begin(known.accesses(), what, out) {
        saving.map(known.blocks(), &|address| known.entry(address));
    }
}

/// A plan of these accesses.
pub(super) fn plan_of(steps: Vec<Step>) -> AccessPlan {
    let mut section = WipedBytes::with_capacity(STEP_BYTES * steps.len());
    for Step { address, from, to, salt } in &steps {
        section.extend_from_slice(&address.unwrap_or(NOTHING).to_le_bytes());
        for leaf in [from, to] {
            // A tree has 2^30 leaves at most.
            section.extend_from_slice(&(leaf.0 as u32).to_le_bytes());
        }
        section.extend_from_slice(salt);
    }
    AccessPlan::new(EncodedPlan::new(steps.len(), section), steps)
}

impl S3OramParams {
    /// The accesses of a plan that the journal has kept.
    pub(super) fn decode_steps(&self, plan: &EncodedPlan) -> Result<Vec<Step>, Error> {
        let mut fields = Fields::of(plan.section());
        let mut steps = Vec::with_capacity(plan.accesses().min(plan.section().len() / STEP_BYTES));
        for _ in 0..plan.accesses() {
            let address = match fields.u64()? {
                NOTHING => None,
                address if address < self.blocks => Some(address),
                _ => return Err(strange()),
            };
            let [from, to] = [fields.u32()?, fields.u32()?].map(|leaf| Leaf(leaf.into()));
            if [from, to].iter().any(|leaf| leaf.0 >= self.tree.leaves()) {
                return Err(strange());
            }
            steps.push(Step { address, from, to, salt: fields.array()? });
        }
        fields.end()?;
        Ok(steps)
    }
}

/// A state that comes back.
pub(super) struct ShareRestore {
    params: S3OramParams,
    known: Known,
    coming: Coming,
}

impl ShareRestore {
    pub(super) fn new(params: S3OramParams) -> Result<Self, Error> {
        let known = Known::new(&params)?;
        Ok(Self { params, known, coming: Coming::default() })
    }
}

impl Restore for ShareRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.coming.begin();
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        let Self { known, coming, .. } = self;
        let mut fields = Fields::of(section);
        match fields.u8()? {
            tag::HEAD => {
                let accesses = coming.head(fields, known.accesses())?;
                known.client.go_to(known.point_after(accesses));
                Ok(())
            }
            tag::MAP if coming.is_first() => {
                coming.map(fields, |address, entry| known.set_entry(address, entry))
            }
            _ => Err(strange()),
        }
    }

    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error> {
        let steps = self.params.decode_steps(plan)?;
        for (step, is_written) in steps.iter().zip(is_written) {
            self.known.access(step, *is_written)?;
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
        Ok(Box::new(ShareArray::new(self.params, &key, trees, store, self.known)?))
    }
}
