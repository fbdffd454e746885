//! The array as volumes use it.

use std::ops::Range;

use oblivio_core::durable::section::{check_range, strange};
use oblivio_core::durable::{
    AccessPlan, AnyStore, ArrayFacts, Audit, DurableOram, EncodedPlan, EraStart, Headroom, Salvage,
    Save, Snapshot, Want, WrongServers,
};
use oblivio_core::error::check_sound;
use oblivio_core::front::check_request;
use oblivio_core::pieces::TreeId;
use oblivio_core::records::Records;
use oblivio_core::scheme::{Op, RollbackProbe};
use oblivio_core::seal::BlockSealer;
use oblivio_core::{Error, MasterKey};
use rand_core::CryptoRng;

use super::super::coins::EraCoins;
use super::super::params::S3OramParams;
use super::super::servers;
use super::super::standing;
use super::super::trust::Trust;
use super::super::walk::buckets_with_slots;
use super::super::wants::address_of;
use super::super::{impossible, invalid};
use super::known::{Draw, Known, SALT_BYTES, Step};
use super::labels::Labels;
use super::state::{decode, plan_of, save};
use crate::field::Gf256;
use crate::map_trees::Levels;
use crate::map_trees::mapped_tree::MappedTree;
use crate::message::Point;
use crate::servers::AnyServers;

/// An S³ORAM of a volume, with its position map in smaller trees.
pub(in crate::durable) struct MappedArray {
    pub(super) params: S3OramParams,
    pub(super) levels: Levels,
    /// What asks each of them, the data first.
    pub(super) trees: Vec<MappedTree<Gf256>>,
    pub(super) store: AnyServers,
    pub(in crate::durable) sealer: BlockSealer,
    pub(super) labels: Labels,
    pub(super) known: Known,
    /// The coins for matrices.
    pub(in crate::durable) coins: EraCoins,
    /// Accesses of the state that the client could go back to.
    pub(super) kept: u64,
    /// How many accesses the servers may have seen, as far as the directory knows.
    pub(super) seen_max: u64,
    /// Of each tree, the point to which servers were through when they were asked first.
    pub(super) done: Option<Vec<Point>>,
    /// Servers have made links to each other since the array was opened.
    pub(super) has_met: bool,
    /// Which servers have answered wrong.
    pub(super) trust: Trust,
    /// An access was begun and has not ended well.
    broken: bool,
}

impl MappedArray {
    pub(in crate::durable) fn new(
        params: S3OramParams,
        levels: &Levels,
        key: &MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        known: Known,
    ) -> Result<Self, Error> {
        if !trees.is_empty() {
            return Err(impossible("the scheme has no trees of buckets"));
        }
        let store = servers::of(store, params.parties.servers())?;
        let trees = levels.iter().map(|level| MappedTree::new(params.parties, *level));
        let trees = trees.collect::<Result<_, _>>().map_err(|it| impossible(it.to_string()))?;
        let (sealer, accesses) = (BlockSealer::new(key), known.accesses());
        let labels = Labels::new(&sealer, levels);
        let trust = Trust::new(params.parties.servers());
        Ok(Self {
            params,
            levels: levels.clone(),
            trees,
            store,
            sealer,
            labels,
            known,
            coins: EraCoins::default(),
            kept: accesses,
            seen_max: accesses,
            done: None,
            has_met: false,
            trust,
            broken: false,
        })
    }

    fn accesses_left(&self) -> u64 {
        let since = self.known.accesses() - self.kept;
        self.params.accesses_per_checkpoint().saturating_sub(since)
    }
}

impl DurableOram for MappedArray {
    fn facts(&self) -> ArrayFacts {
        let (blocks, block_bytes) = (self.params.blocks, self.params.block_bytes as usize);
        ArrayFacts::new(blocks, block_bytes, self.params.buckets())
    }

    fn headroom(&self) -> Result<Headroom, Error> {
        check_sound(self.broken)?;
        Ok(Headroom { accesses: self.accesses_left(), evictions: 0, must_evict: false })
    }

    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        coins: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error> {
        let planned: usize = planned.iter().map(|plan| plan.accesses()).sum();
        let first = self.known.accesses() + planned as u64;
        let mut steps = Vec::with_capacity(wanted.len());
        for (number, want) in (first..).zip(wanted) {
            let address = address_of(*want, self.params.blocks)?;
            // Both are drawn, whatever is shown.
            let draws = self.trees.iter().map(|tree| {
                let [instead, to] = [(); 2].map(|()| tree.draw_leaf(coins));
                Draw { instead, to }
            });
            let draws = draws.collect();
            let mut salt = [0; SALT_BYTES];
            coins.fill_bytes(&mut salt);
            steps.push(Step { number, address, draws, salt });
        }
        Ok(plan_of(steps))
    }

    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error> {
        Ok(AccessPlan::new(plan.clone(), decode(&self.levels, plan)?))
    }

    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error> {
        Ok(plan.steps()?.iter().map(|step: &Step| step.address).collect())
    }

    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error> {
        check_sound(self.broken)?;
        let steps: &[Step] = plan.steps()?;
        if steps.len() != ops.len() || steps.len() as u64 > self.accesses_left() {
            return Err(invalid("there are more or fewer accesses than operations, or than room"));
        }
        for ((step, op), number) in steps.iter().zip(&*ops).zip(self.known.accesses()..) {
            if step.number != number {
                return Err(strange());
            }
            if let Some(address) = step.address {
                check_request(address, op, self.params.blocks, self.params.block_bytes as usize)?;
            }
        }
        self.coins.mix_in(&self.sealer, plan.encoded().section())?;
        self.broken = true;
        for (step, op) in steps.iter().zip(ops) {
            self.access(step, op)?;
        }
        self.broken = false;
        Ok(())
    }

    fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_sound(self.broken)?;
        check_range(&range, self.params.blocks)?;
        // Of copies of this client, one may forget what the other does not.
        self.coins
            .mix_in(&self.sealer, &[range.start, range.end].map(u64::to_le_bytes).concat())?;
        self.known.forget(range);
        Ok(())
    }

    fn records(&mut self) -> Records<'_> {
        Records::new(&mut self.store, &mut self.broken)
    }

    fn into_store(self: Box<Self>) -> AnyStore {
        Box::new(self.store)
    }

    fn may_hold_contents(&self) -> bool {
        !self.known.live.is_empty()
    }

    fn evict(&mut self) -> Result<(), Error> {
        Err(invalid("this scheme has no stash, and evicts when the root is full"))
    }

    fn keep_wrong_servers(&mut self, list: Box<dyn WrongServers>) {
        self.trust.keep_in(list);
    }
}

impl Snapshot for MappedArray {
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        save(&self.known, self.params.blocks, what, out);
    }

    /// Draws new coins for matrices. The seal needs no era: its nonces follow from what is sealed.
    fn begin_era(&mut self, _: EraStart, coins: &mut dyn CryptoRng) {
        self.coins.draw(&self.sealer, coins);
    }

    fn mark_durable(&mut self) {
        self.kept = self.known.accesses();
    }

    fn probe_rollback(&mut self, accesses: u64, _: u64) -> Result<RollbackProbe, Error> {
        check_sound(self.broken)?;
        let known = self.known.accesses() + accesses;
        self.seen_max = self.seen_max.max(known);
        // No more than that: whoever only looks may ask nothing else.
        let (told, is_old) = self.all_told(self.known.point_after(known), Self::epochs)?;
        for (tree, told) in told.into_iter().enumerate() {
            if told.iter().filter(|told| told.is_ok()).count() <= self.params.parties.colluding() {
                let advice = "Most servers have to say how far they are";
                let servers = self.servers(tree);
                return Err(servers::failure(&servers, servers::parted(told).1, advice));
            }
        }
        Ok(if is_old { RollbackProbe::Seen } else { RollbackProbe::NotYet })
    }
}

impl Audit for MappedArray {
    fn buckets_written(&self) -> u64 {
        let at = self.known.point_after(self.known.accesses());
        let written = self.levels.iter().map(|level| buckets_with_slots(level.tree, at).count());
        written.sum::<usize>() as u64
    }

    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        check_sound(self.broken)?;
        self.check_all(progress)
    }

    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        check_sound(self.broken)?;
        self.salvage_all(each, damaged, progress)
    }

    fn check_storage(&mut self) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.look().map(drop)
    }

    fn check_not_set_back(&mut self) -> Result<(), Error> {
        check_sound(self.broken)?;
        let (kept, parties) = (self.known.point_after(self.kept), self.params.parties);
        (0..self.trees.len()).try_for_each(|tree| {
            let shape = self.levels.level(tree).tree;
            standing::check_not_set_back(&mut self.servers(tree), parties, shape, kept)
        })
    }
}
