//! Saved states and plans as bytes. `docs/format.md` of the repository says what each of them is.

use std::ops::Range;

use oblivio_core::durable::section::{
    Fields, bytes_of, check_range, in_sections, put_count, strange,
};
use oblivio_core::durable::{AnyStore, Durable, Plan, Restore, Save, SectionSize, StateSize};
use oblivio_core::pieces::TreeId;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Error, Leaf, MasterKey};

use super::access::ShareArray;
use super::invalid;
use super::known::{Known, NOTHING, SALT_BYTES, Step};
use super::params::S3OramParams;

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const MAP: u8 = 2;
}

/// Blocks of which one section tells.
const SECTION_BLOCKS: u64 = 4096;

/// Bytes of what is told of a block.
const ENTRY_BYTES: usize = 2 * 8;

/// Bytes that a plan takes for an access.
const STEP_BYTES: usize = 8 + 4 + 4 + SALT_BYTES;

/// How large states and plans are at most.
pub(super) fn size(params: &S3OramParams) -> StateSize {
    let mut whole = vec![SectionSize { sections: 1, bytes: bytes_of(|out| put_head(out, 0)) }];
    whole.extend(in_sections(params.blocks, SECTION_BLOCKS, |blocks| {
        bytes_of(|out| put_map(out, 0..blocks, &|_| (0, 0)))
    }));
    StateSize {
        whole,
        plan_bytes_per_access: STEP_BYTES as u64,
        accesses_per_checkpoint: params.accesses_per_checkpoint(),
        evictions_per_checkpoint: 0,
    }
}

fn put_head(out: &mut WipedBytes, accesses: u64) {
    out.push(tag::HEAD);
    out.extend_from_slice(&accesses.to_le_bytes());
}

fn put_map(out: &mut WipedBytes, range: Range<u64>, entry: &dyn Fn(u64) -> (u64, u64)) {
    out.push(tag::MAP);
    out.extend_from_slice(&range.start.to_le_bytes());
    put_count(out, (range.end - range.start) as usize);
    for address in range {
        let (position, version) = entry(address);
        out.extend_from_slice(&position.to_le_bytes());
        out.extend_from_slice(&version.to_le_bytes());
    }
}

/// Hands the state to `out`, section by section.
pub(super) fn save(known: &Known, what: Save, out: &mut dyn FnMut(&[u8])) {
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
    for start in (0..known.blocks()).step_by(SECTION_BLOCKS as usize) {
        let range = start..(start + SECTION_BLOCKS).min(known.blocks());
        let is_of_nothing = range.clone().all(|address| known.entry(address) == (0, 0));
        if what == Save::WholePadded || !is_of_nothing {
            tell(&mut |section| put_map(section, range.clone(), &|address| known.entry(address)));
        }
    }
}

/// A plan of these accesses.
pub(super) fn plan_of(steps: &[Step]) -> Plan {
    let mut section = WipedBytes::with_capacity(STEP_BYTES * steps.len());
    for Step { address, from, to, salt } in steps {
        section.extend_from_slice(&address.unwrap_or(NOTHING).to_le_bytes());
        for leaf in [from, to] {
            // A tree has 2^30 leaves at most.
            section.extend_from_slice(&(leaf.0 as u32).to_le_bytes());
        }
        section.extend_from_slice(salt);
    }
    Plan::new(steps.len(), section)
}

impl S3OramParams {
    /// The accesses of a plan.
    pub(super) fn steps_of(&self, plan: &Plan) -> Result<Vec<Step>, Error> {
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
    states: u64,
    /// The state that is coming has said how far it is.
    has_head: bool,
}

impl ShareRestore {
    pub(super) fn new(params: S3OramParams) -> Result<Self, Error> {
        let known = Known::new(&params)?;
        Ok(Self { params, known, states: 0, has_head: false })
    }

    fn head(&mut self, accesses: u64) -> Result<(), Error> {
        let follows = self.states == 1 || accesses == self.known.accesses();
        if self.has_head || !follows {
            return Err(strange());
        }
        self.known.client.go_to(self.known.point_after(accesses));
        self.has_head = true;
        Ok(())
    }
}

impl Restore for ShareRestore {
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
            // That of later states follows from the first and the plans since.
            tag::MAP if self.states == 1 => {
                let start = fields.count()?;
                let entries =
                    fields.list(ENTRY_BYTES, |fields| Ok((fields.u64()?, fields.u64()?)))?;
                fields.end()?;
                let fits =
                    (start..).zip(entries).all(|(at, entry)| self.known.set_entry(at, entry));
                if fits { Ok(()) } else { Err(strange()) }
            }
            _ => Err(strange()),
        }
    }

    fn carried_out(&mut self, plan: &Plan, is_written: &[bool]) -> Result<(), Error> {
        let steps = self.params.steps_of(plan)?;
        for (step, is_written) in steps.iter().zip(is_written) {
            self.known.access(step, *is_written)?;
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
        Ok(Box::new(ShareArray::new(self.params, &key, trees, store, self.known)?))
    }
}
