//! The implementation of the traits of [`Durable`](crate::durable::Durable) for a range ORAM.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use hashbrown::HashMap;
use rand_core::CryptoRng;

use super::access::{RangeArray, RangeStep};
use super::invalid;
use super::params::RangeParams;
use super::state::plan_of;
use crate::durable::section::check_range;
use crate::durable::{
    AccessPlan, AnyStore, ArrayFacts, Audit, DurableOram, EncodedPlan, EraStart, Headroom, Salvage,
    Save, Snapshot, Want,
};
use crate::error::{Error, check_not_broken};
use crate::geometry::Leaf;
use crate::records::Records;
use crate::scheme::{Op, RollbackProbe};
use crate::stash::Entry;

impl DurableOram for RangeArray {
    fn facts(&self) -> ArrayFacts {
        let RangeParams { blocks, block_bytes, .. } = self.params;
        let buckets = self.subs.iter().map(|sub| sub.tree.buckets()).sum();
        ArrayFacts {
            window_accesses_max: self.params.window_accesses_max() as usize,
            range_classes: self.params.classes.clone(),
            range_policy: self.params.policy,
            ..ArrayFacts::new(blocks, block_bytes as usize, buckets)
        }
    }

    fn headroom(&self) -> Result<Headroom, Error> {
        check_not_broken(self.broken)?;
        let (accesses, evictions) = (self.accesses_left(), self.evictions_left());
        Ok(Headroom { accesses, evictions, must_evict: self.must_evict() })
    }

    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        coins: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error> {
        let mut coins = coins;
        let mut moved: HashMap<(u8, u64), Leaf> = HashMap::new();
        for plan in planned {
            let steps: &[RangeStep] = plan.steps()?;
            moved.extend(steps.iter().map(|step| ((step.class, step.first), step.to)));
        }
        let mut steps = Vec::with_capacity(wanted.len());
        for want in wanted {
            let (first, class) = match *want {
                Want::Block(address) => (address, 0),
                Want::Range { first, class } => (first, class),
                Want::Dummy => (Entry::DUMMY_ADDRESS, 0),
                Want::DummyRange { class } => (Entry::DUMMY_ADDRESS, class),
                Want::Position(_) => return Err(invalid("this scheme has no position blocks")),
            };
            let at = self.sub_oram_index(class)?;
            let fresh = self.subs[at].draw(&mut coins);
            if matches!(want, Want::Dummy | Want::DummyRange { .. }) {
                steps.push(RangeStep { class, first, from: fresh, to: fresh });
                continue;
            }
            let is_range = first & ((1 << class) - 1) == 0
                && first.checked_add(1 << class).is_some_and(|end| end <= self.params.blocks);
            if !is_range {
                return Err(invalid("the range is not aligned, or goes past the end"));
            }
            let before = moved.insert((class, first), fresh);
            let from = before.unwrap_or_else(|| self.subs[at].positions.of_range(first >> class));
            steps.push(RangeStep { class, first, from, to: fresh });
        }
        let start = self.accesses + AccessPlan::accesses_of(planned);
        Ok(plan_of(steps).starting_at(start))
    }

    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error> {
        Ok(AccessPlan::new(plan.clone(), self.params.decode_steps(plan)?))
    }

    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error> {
        let steps: &[RangeStep] = plan.steps()?;
        let blocks = steps.iter().flat_map(|step| {
            (0..step.blocks() as u64).map(move |more| (!step.is_dummy()).then(|| step.first + more))
        });
        Ok(blocks.collect())
    }

    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let is_checked = plan.is_checked(self.accesses)?;
        self.carry_out_steps(plan.steps()?, ops, is_checked)
    }

    fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        check_range(&range, self.params.blocks)?;
        for address in self.held.within(range.clone()) {
            for (at, sub) in self.subs.iter_mut().enumerate() {
                if self.held.is_awaited_by(address, at) {
                    sub.forget_waiting(address);
                }
            }
            self.held.drop_block(address, &mut self.arena);
        }
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

    fn announce(&mut self, plan: &AccessPlan) -> Result<(), Error> {
        self.announce_steps(plan.steps()?)
    }

    fn evict(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        if self.evictions_left() == 0 {
            return Err(invalid("too many evictions since the last checkpoint: make one first"));
        }
        self.broken = true;
        self.evict_all(1)?;
        self.broken = false;
        Ok(())
    }
}

impl Snapshot for RangeArray {
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        self.save_sections(what, out);
    }

    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng) {
        let (mut coins, next) = (coins, self.evictions);
        let recognised = self.params.recognised_evictions();
        for sub in &mut self.subs {
            let sealer = sub.tree.sealer_mut();
            match start {
                EraStart::Opening => sealer.begin_era(next, &mut coins),
                EraStart::Checkpoint => sealer.begin_era_if_due(next, recognised, &mut coins),
            }
        }
    }

    fn mark_durable(&mut self) {
        self.durable_evictions = self.evictions;
        let oldest = self.evictions.saturating_sub(self.params.recognised_evictions());
        self.subs.iter_mut().for_each(|sub| sub.tree.sealer_mut().drop_before(oldest));
    }

    fn probe_rollback(&mut self, accesses: u64, evictions: u64) -> Result<RollbackProbe, Error> {
        check_not_broken(self.broken)?;
        let due = u64::from(self.blocks_since_eviction) + accesses;
        let next = self.evictions + due / u64::from(self.params.evict_period) + evictions;
        // A batch of evictions begins with the first tree.
        let Self { subs, store, .. } = self;
        subs[0].tree.probe_rollback(store, next)
    }

    fn restore_client_block(&mut self, section: &[u8]) -> Result<(), Error> {
        self.restore_section(section)
    }
}

impl Audit for RangeArray {
    fn buckets_written(&self) -> u64 {
        self.subs.iter().map(|sub| sub.tree.buckets_written(self.evictions)).sum()
    }

    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        self.check_all(progress)
    }

    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        self.salvage_all(each, damaged, progress)
    }
}
