//! The implementation of the traits of [`Durable`](crate::durable::Durable) for rotating RAW ORAM.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::state::{decode, plan_of};
use super::{DurableRawOram, invalid};
use crate::durable::{
    AccessPlan, AnyStore, ArrayFacts, Audit, DurableOram, EncodedPlan, EraStart, Headroom,
    PositionUse, Recoverability, Salvage, Save, Snapshot, StashFill, Want,
};
use crate::error::{Error, ErrorKind};
use crate::records::Records;
use crate::scheme::{Move, Op, RollbackProbe};

impl DurableOram for DurableRawOram<AnyStore, ()> {
    fn facts(&self) -> ArrayFacts {
        let (blocks, block_bytes) = (self.config.data_blocks(), self.config.raw.tree.block_bytes);
        ArrayFacts {
            window_accesses_max: self.window_accesses_max(),
            position_levels: self.position_map_depth(),
            ..ArrayFacts::new(blocks, block_bytes, self.backend.buckets_in_storage())
        }
    }

    fn headroom(&self) -> Result<Headroom, Error> {
        let must_evict = match self.backend.check_ready() {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::StashFull => true,
            Err(error) => return Err(error),
        };
        let (accesses, evictions) = (self.backend.accesses_left(), self.backend.evictions_left());
        Ok(Headroom { accesses, evictions, must_evict })
    }

    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        coins: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error> {
        let mut coins = coins;
        if !planned.is_empty() && !self.has_flat_map() {
            return Err(invalid("carry out the planned accesses first: they may move positions"));
        }
        for (i, want) in wanted.iter().enumerate() {
            match *want {
                Want::Block(address) => check_address(self, address)?,
                Want::Position(position) if !self.positions.is_position_map(position) => {
                    return Err(invalid("there is no such position"));
                }
                Want::Position(held) if self.is_on_client(held) || wanted[..i].contains(want) => {
                    return Err(invalid(
                        "the position is already on the client, or requested twice",
                    ));
                }
                Want::Range { .. } | Want::DummyRange { .. } => {
                    return Err(invalid("this scheme has no ranges"));
                }
                Want::Position(_) | Want::Dummy => (),
            }
        }
        let blocks = wanted.iter().map(|want| match *want {
            Want::Block(address) | Want::Position(address) => Some(address),
            Want::Range { .. } | Want::DummyRange { .. } | Want::Dummy => None,
        });
        let start = self.accesses + AccessPlan::accesses_of(planned);
        let planned = planned.iter().map(|plan| plan.steps()).collect::<Result<Vec<_>, _>>()?;
        let planned = Zeroizing::new(planned.concat());
        let moves = self.positions.draw_moves(&planned, blocks, &mut coins)?;
        Ok(plan_of(moves).starting_at(start))
    }

    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error> {
        Ok(AccessPlan::new(plan.clone(), decode(plan)?))
    }

    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error> {
        let block = |step: &Move| {
            (!step.is_dummy() && step.address < self.config.data_blocks()).then_some(step.address)
        };
        Ok(plan.steps()?.iter().map(block).collect())
    }

    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error> {
        match plan.is_checked(self.accesses)? {
            true => self.carry_out_checked(plan.steps()?, ops),
            false => self.carry_out(plan.steps()?, ops),
        }
    }

    fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.forget(range)
    }

    fn records(&mut self) -> Records<'_> {
        self.backend.records()
    }

    fn into_store(self: Box<Self>) -> AnyStore {
        self.backend.into_store()
    }

    fn may_hold_contents(&self) -> bool {
        let entries = self.table();
        entries.mapped(0..entries.capacity()).any(|(_, mapping)| mapping.live)
    }

    fn stash_fill(&self) -> Option<StashFill> {
        let blocks = self.backend.stash().blocks() as u64;
        let blocks_max = self.backend.config().stash_blocks_max as u64;
        Some(StashFill { blocks, blocks_max })
    }

    fn missing_positions(&self, usage: PositionUse<'_>) -> Result<Vec<u64>, Error> {
        match usage {
            PositionUse::Access(addresses) => self.missing_positions_to_access(addresses),
            PositionUse::Forget(range) => self.missing_positions_to_forget(range),
        }
    }

    fn holds_position(&self, position: u64) -> bool {
        self.is_on_client(position)
    }

    fn announce(&mut self, plan: &AccessPlan) -> Result<(), Error> {
        self.announce(plan.steps()?);
        Ok(())
    }

    fn evict(&mut self) -> Result<(), Error> {
        self.background_evict()
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.serve_on_client(address, op)
    }
}

impl Snapshot for DurableRawOram<AnyStore, ()> {
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        self.save_sections(what, out);
    }

    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng) {
        let mut coins = coins;
        match start {
            EraStart::Opening => self.backend.begin_era(&mut coins),
            EraStart::Checkpoint => self.backend.begin_era_at_checkpoint(&mut coins),
        }
    }

    fn mark_durable(&mut self) {
        self.backend.mark_durable();
    }

    fn probe_rollback(&mut self, accesses: u64, evictions: u64) -> Result<RollbackProbe, Error> {
        let next = self.backend.evictions_after(accesses, evictions);
        self.backend.probe_rollback(next)
    }

    fn restore_client_block(&mut self, section: &[u8]) -> Result<(), Error> {
        self.restore_section(section)
    }
}

impl Audit for DurableRawOram<AnyStore, ()> {
    fn buckets_written(&self) -> u64 {
        self.backend.buckets_written()
    }

    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        self.check(progress)
    }

    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        self.salvage(each, damaged, progress)
    }

    fn recoverability(&self, salvage: &Salvage, address: u64) -> Recoverability {
        self.recoverability(salvage, address)
    }
}

fn check_address(array: &DurableRawOram<AnyStore, ()>, address: u64) -> Result<(), Error> {
    if address < array.config.data_blocks() {
        Ok(())
    } else {
        Err(invalid("the address is past the end"))
    }
}
