//! The S³ORAM array as volumes use it.

use std::ops::Range;

use oblivio_core::durable::section::check_range;
use oblivio_core::durable::{
    AccessPlan, AnyStore, ArrayFacts, Audit, Contents, DurableOram, EncodedPlan, EraStart,
    Headroom, Salvage, Save, Snapshot, Want, WrongServers,
};
use oblivio_core::error::check_not_broken;
use oblivio_core::front::check_request;
use oblivio_core::pieces::TreeId;
use oblivio_core::records::Records;
use oblivio_core::scheme::{Op, RollbackProbe};
use oblivio_core::seal::BlockSealer;
use oblivio_core::{Error, Leaf, MasterKey};
use rand_core::CryptoRng;

use super::client_state::{AccessStep, ClientState, Draw, Positions, SALT_BYTES};
use super::coins::EraCoins;
use super::labels::Labels;
use super::params::S3OramParams;
use super::participants::Participants;
use super::share_tree::ShareTree;
use super::state::{plan_of, save};
use super::trust::Trust;
use super::walk::buckets_with_slots;
use super::{impossible, invalid, server_progress, servers};
use crate::message::TreePoint;
use crate::servers::AnyServers;

/// The client of an S³ORAM array, as a volume uses it.
pub(super) struct ShareArray {
    pub(super) params: S3OramParams,
    /// The trees on the servers, the data tree first.
    pub(super) trees: Vec<ShareTree>,
    pub(super) store: AnyServers,
    pub(super) sealer: BlockSealer,
    pub(super) labels: Labels,
    pub(super) state: ClientState,
    /// The coins for sharing matrices.
    pub(super) coins: EraCoins,
    /// The number of accesses in the client's last durable state.
    pub(super) durable_accesses: u64,
    /// The maximum number of accesses that the servers can have seen, according to the client's
    /// directory.
    pub(super) seen_max: u64,
    /// For each tree, the point that the servers had finished when this client first asked for
    /// their progress.
    pub(super) done: Option<Vec<TreePoint>>,
    /// For each tree, which servers participate.
    pub(super) participants: Vec<Participants>,
    /// Whether the servers have connected to each other since the array was opened.
    pub(super) has_connected: bool,
    /// The servers that have given wrong answers.
    pub(super) trust: Trust,
    /// Whether an operation, such as an access, has failed halfway.
    broken: bool,
}

impl ShareArray {
    pub(super) fn new(
        params: S3OramParams,
        key: &MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        state: ClientState,
    ) -> Result<Self, Error> {
        if !trees.is_empty() {
            return Err(impossible("the scheme has no trees of buckets"));
        }
        let count = params.parties.servers();
        let store = servers::share_servers_of(store, count)?;
        let (sealer, accesses) = (BlockSealer::new(key), state.accesses());
        let trees = params.trees();
        Ok(Self {
            labels: Labels::new(&sealer, params.levels()),
            participants: trees.iter().map(|_| Participants::all_current(count)).collect(),
            trees,
            params,
            store,
            sealer,
            state,
            coins: EraCoins::default(),
            durable_accesses: accesses,
            seen_max: accesses,
            done: None,
            has_connected: false,
            trust: Trust::new(count),
            broken: false,
        })
    }

    fn accesses_left(&self) -> u64 {
        let since = self.state.accesses() - self.durable_accesses;
        self.params.accesses_per_checkpoint().saturating_sub(since)
    }

    /// The address of the requested block; `None` for a dummy access. Secret.
    fn address_of(&self, want: Want) -> Result<Option<u64>, Error> {
        match want {
            Want::Block(address) if address < self.params.blocks => Ok(Some(address)),
            Want::Dummy => Ok(None),
            Want::Block(_) | Want::Position(_) => Err(invalid("the address is past the end")),
            Want::Range { .. } | Want::DummyRange { .. } => {
                Err(invalid("this scheme has no ranges"))
            }
        }
    }
}

impl DurableOram for ShareArray {
    fn facts(&self) -> ArrayFacts {
        let (blocks, block_bytes) = (self.params.blocks, self.params.block_bytes as usize);
        ArrayFacts::new(blocks, block_bytes, self.params.buckets())
    }

    fn headroom(&self) -> Result<Headroom, Error> {
        check_not_broken(self.broken)?;
        Ok(Headroom { accesses: self.accesses_left(), evictions: 0, must_evict: false })
    }

    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        coins: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error> {
        let mut moves = self.state.moves();
        for plan in planned {
            plan.steps()?.iter().for_each(|step| moves.add(step));
        }
        let planned: usize = planned.iter().map(|plan| plan.accesses()).sum();
        let first = self.state.accesses() + planned as u64;
        let mut steps = Vec::with_capacity(wanted.len());
        for (number, want) in (first..).zip(wanted) {
            let address = self.address_of(*want)?;
            // Draw both leaves, even if one is not used. The number of leaves is a power of two.
            let draws = self.trees.iter().map(|it| {
                let [shown, to] = [(); 2].map(|()| Leaf(coins.next_u64() & (it.tree.leaves() - 1)));
                Draw { shown, to }
            });
            let mut draws: Vec<_> = draws.collect();
            let leaf = address.and_then(|address| moves.leaf(address));
            draws[0].shown = leaf.unwrap_or(draws[0].shown);
            let mut salt = [0; SALT_BYTES];
            coins.fill_bytes(&mut salt);
            let number = self.params.is_in_trees().then_some(number);
            let step = AccessStep { number, address, draws, salt };
            moves.add(&step);
            steps.push(step);
        }
        Ok(plan_of(steps))
    }

    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error> {
        Ok(AccessPlan::new(plan.clone(), self.params.decode_steps(plan)?))
    }

    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error> {
        Ok(plan.steps()?.iter().map(|step: &AccessStep| step.address).collect())
    }

    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        let steps: &[AccessStep] = plan.steps()?;
        if steps.len() != ops.len() || steps.len() as u64 > self.accesses_left() {
            return Err(invalid(
                "the plan does not match the operations, or exceeds the remaining accesses",
            ));
        }
        for (step, op) in steps.iter().zip(&*ops) {
            if let Some(address) = step.address {
                check_request(address, op, self.params.blocks, self.params.block_bytes as usize)?;
            }
        }
        self.state.check(steps)?;
        self.coins.mix_in(&self.sealer, plan.encoded().section())?;
        self.broken = true;
        for (step, op) in steps.iter().zip(ops) {
            self.access(step, op)?;
        }
        self.broken = false;
        Ok(())
    }

    fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        check_range(&range, self.params.blocks)?;
        // Two copies of this client may forget different ranges.
        self.coins
            .mix_in(&self.sealer, &[range.start, range.end].map(u64::to_le_bytes).concat())?;
        self.state.forget(range);
        Ok(())
    }

    fn records(&mut self) -> Records<'_> {
        Records::new(&mut self.store, &mut self.broken)
    }

    fn into_store(self: Box<Self>) -> AnyStore {
        Box::new(self.store)
    }

    fn may_hold_contents(&self) -> bool {
        self.state.is_any_live()
    }

    fn evict(&mut self) -> Result<(), Error> {
        Err(invalid("this scheme has no stash: it evicts when the root is full"))
    }

    fn load(
        &mut self,
        contents: &mut dyn Contents,
        coins: &mut dyn CryptoRng,
    ) -> Result<bool, Error> {
        if let Positions::InTrees(_) = self.state.positions {
            return Ok(false);
        }
        self.broken = true;
        self.load_all(contents, coins)?;
        self.broken = false;
        Ok(true)
    }

    fn keep_wrong_servers(&mut self, list: Box<dyn WrongServers>) {
        self.trust.use_list(list);
    }
}

impl Snapshot for ShareArray {
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        save(&self.state, what, out);
    }

    /// Draws new coins for matrices. The seal needs no era: its nonces are derived from the sealed
    /// blocks.
    fn begin_era(&mut self, _: EraStart, coins: &mut dyn CryptoRng) {
        self.coins.draw(&self.sealer, coins);
    }

    fn mark_durable(&mut self) {
        self.durable_accesses = self.state.accesses();
    }

    fn probe_rollback(&mut self, accesses: u64, _: u64) -> Result<RollbackProbe, Error> {
        check_not_broken(self.broken)?;
        self.is_behind_servers(self.state.accesses() + accesses)
    }
}

impl Audit for ShareArray {
    fn buckets_written(&self) -> u64 {
        let at = self.state.at();
        let written = self.trees.iter().map(|it| buckets_with_slots(it.tree, at).count());
        written.sum::<usize>() as u64
    }

    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        check_not_broken(self.broken)?;
        self.check_all(progress)
    }

    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        check_not_broken(self.broken)?;
        self.salvage_all(each, damaged, progress)
    }

    fn check_storage(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.query_progress().map(drop)
    }

    fn check_not_rolled_back(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        let durable = self.state.point_after(self.durable_accesses);
        let parties = self.params.parties;
        (0..self.trees.len()).try_for_each(|tree| {
            let shape = self.trees[tree].tree;
            server_progress::check_not_rolled_back(&mut self.servers(tree), parties, shape, durable)
        })
    }
}
