//! The implementation of the traits of [`Durable`](crate::durable::Durable) for a trivial ORAM.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use rand_core::CryptoRng;

use super::access::{ScanArray, entries, name};
use super::{invalid, state};
use crate::durable::section::check_range;
use crate::durable::{
    AccessPlan, AnyStore, ArrayFacts, Audit, DurableOram, EncodedPlan, EraStart, Headroom, Salvage,
    Save, Snapshot, SparseAddressSet, Want,
};
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::{check_buffer, check_request};
use crate::records::Records;
use crate::scheme::{Op, RollbackProbe};
use crate::store::BucketStore;

impl DurableOram for ScanArray {
    fn facts(&self) -> ArrayFacts {
        let (blocks, block_bytes) = (self.params.blocks, self.params.block_bytes as usize);
        ArrayFacts::new(blocks, block_bytes, blocks)
    }

    fn headroom(&self) -> Result<Headroom, Error> {
        check_not_broken(self.broken)?;
        let accesses = self.accesses_left();
        Ok(Headroom { accesses, evictions: accesses, must_evict: false })
    }

    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        _: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error> {
        // Reserve all capacity first: reallocation would leave copies of secrets.
        let mut blocks = Vec::with_capacity(wanted.len());
        for want in wanted {
            blocks.push(match *want {
                Want::Block(address) if address < self.params.blocks => Some(address),
                Want::Dummy => None,
                Want::Block(_) | Want::Position(_) => {
                    return Err(invalid("the address is past the end"));
                }
                Want::Range { .. } | Want::DummyRange { .. } => {
                    return Err(invalid("this scheme has no ranges"));
                }
            });
        }
        let start = self.accesses + AccessPlan::accesses_of(planned);
        Ok(state::plan_of(blocks).starting_at(start))
    }

    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error> {
        Ok(AccessPlan::new(plan.clone(), self.params.decode_steps(plan)?))
    }

    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error> {
        plan.steps().map(<[_]>::to_vec)
    }

    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        let blocks: &[Option<u64>] = plan.steps()?;
        if blocks.len() != ops.len() || blocks.len() as u64 > self.accesses_left() {
            return Err(invalid(
                "the operations do not match the accesses, or exceed the headroom",
            ));
        }
        let block_bytes = self.params.block_bytes as usize;
        let is_checked = plan.is_checked(self.accesses)?;
        for (address, op) in blocks.iter().zip(&*ops) {
            match address {
                Some(_) if is_checked => check_buffer(op, block_bytes)?,
                Some(address) => check_request(*address, op, self.params.blocks, block_bytes)?,
                None => (),
            }
        }
        self.broken = true;
        for (address, op) in blocks.iter().zip(ops) {
            self.access(*address, op)?;
        }
        self.broken = false;
        Ok(())
    }

    fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        check_range(&range, self.params.blocks)?;
        self.live.remove_all(range);
        Ok(())
    }

    fn records(&mut self) -> Records<'_> {
        Records::new(&mut self.store, &mut self.broken)
    }

    fn into_store(self: Box<Self>) -> AnyStore {
        self.store
    }

    fn may_hold_contents(&self) -> bool {
        !self.live.is_empty()
    }
}

impl Snapshot for ScanArray {
    fn save(&self, _: Save, out: &mut dyn FnMut(&[u8])) {
        let eras: Vec<_> = self.sealer.eras().collect();
        let is_live = |address| self.live.contains(address);
        out(&state::section(self.accesses, &eras, self.params.blocks, &is_live));
    }

    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng) {
        let (mut coins, next, recognised) = (coins, self.accesses, self.params.recognised());
        match start {
            EraStart::Opening => self.sealer.begin_era(next, &mut coins),
            EraStart::Checkpoint => {
                self.sealer.begin_era_if_due(next, recognised, &mut coins);
            }
        }
    }

    fn mark_durable(&mut self) {
        self.durable_accesses = self.accesses;
        let oldest = self.accesses.saturating_sub(self.params.recognised());
        self.sealer.drop_before(oldest);
    }

    fn probe_rollback(&mut self, accesses: u64, _: u64) -> Result<RollbackProbe, Error> {
        check_not_broken(self.broken)?;
        let Self { params, tree, store, sealer, .. } = self;
        let number = self.accesses + accesses;
        let frames = store.read(&[params.piece(*tree, number)])?;
        let sealed = if frames.len() == 1 { frames.get(0) } else { &[] };
        let fits = sealed.len() == params.bucket_bytes();
        let is_of = |number| fits && sealer.verify(name(number), sealed, &[]).is_some();
        let before = number.checked_sub(params.ring()).filter(|it| *it >= params.first());
        let holds_what_was_before = || match before {
            Some(before) => is_of(before),
            None => fits && sealed.iter().all(|byte| *byte == 0),
        };
        if is_of(number) {
            Ok(RollbackProbe::Seen)
        } else if holds_what_was_before() {
            Ok(RollbackProbe::NotYet)
        } else {
            Ok(RollbackProbe::Unclear)
        }
    }
}

impl Audit for ScanArray {
    fn buckets_written(&self) -> u64 {
        self.accesses - self.oldest()
    }

    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        check_not_broken(self.broken)?;
        let (blocks, block_bytes) = (self.params.blocks, self.params.block_bytes as usize);
        let (mut found, mut read) = (SparseAddressSet::new(blocks), 0);
        self.scan(1, &mut |_, table| {
            for (address, _) in entries(table?, block_bytes).filter(|it| it.0 < blocks) {
                found.insert(address);
            }
            read += 1;
            progress(read);
            Ok(())
        })?;
        let lost = self.live.iter().filter(|address| !found.contains(*address)).count();
        match lost {
            0 => Ok(self.live.iter().count() as u64),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("{lost} blocks are missing"))),
        }
    }

    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        check_not_broken(self.broken)?;
        let (blocks, block_bytes) = (self.params.blocks, self.params.block_bytes as usize);
        let [mut found, mut doubtful] = [(); 2].map(|()| SparseAddressSet::new(blocks));
        let live = self.live.clone();
        let (mut read, mut is_any_damaged) = (0, false);
        self.scan(1, &mut |_, table| {
            match table {
                Ok(table) => {
                    for (address, bytes) in entries(table, block_bytes) {
                        if live.contains(address) && !found.contains(address) {
                            found.insert(address);
                            each(address, bytes);
                            // The damaged bucket is later, and may have held a later copy.
                            if is_any_damaged {
                                doubtful.insert(address);
                            }
                        }
                    }
                }
                Err(error) => {
                    is_any_damaged = true;
                    damaged(&error);
                }
            }
            read += 1;
            progress(read);
            Ok(())
        })?;
        Ok(Salvage::new(blocks, found, doubtful, live))
    }
}
