//! The array as volumes use it.

use std::ops::Range;

use oblivio_core::durable::section::{check_range, strange};
use oblivio_core::durable::{
    AccessPlan, AnyStore, ArrayFacts, Audit, Contents, DurableOram, EncodedPlan, EraStart,
    Headroom, Salvage, Save, Snapshot, Want, WrongServers,
};
use oblivio_core::error::check_sound;
use oblivio_core::front::check_request;
use oblivio_core::pieces::TreeId;
use oblivio_core::records::Records;
use oblivio_core::scheme::{Op, RollbackProbe, WINDOW_ACCESSES_MAX};
use oblivio_core::seal::BlockSealer;
use oblivio_core::{Error, Leaf, MasterKey};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::access::ShareArray;
use super::coins::EraCoins;
use super::known::{Known, SALT_BYTES, Step};
use super::params::S3OramParams;
use super::parts::Parts;
use super::servers;
use super::standing::{self, is_old};
use super::state::{plan_of, save};
use super::trust::Trust;
use super::walk::buckets_with_slots;
use super::wants::address_of;
use super::{impossible, invalid};

/// To which leaves planned accesses map blocks, in order. Secret; wiped when dropped.
struct Moves<'k> {
    known: &'k Known,
    moves: Zeroizing<Vec<[u64; 2]>>,
}

impl<'k> Moves<'k> {
    fn new(known: &'k Known) -> Self {
        Self { known, moves: Zeroizing::new(Vec::with_capacity(WINDOW_ACCESSES_MAX)) }
    }

    fn add(&mut self, step: &Step) {
        self.moves.extend(step.address.map(|address| [address, step.to.0]));
    }

    /// To which a block is mapped after them; none if it is nowhere.
    fn leaf(&self, address: u64) -> Option<Leaf> {
        let last = self.moves.iter().rev().find(|[moved, _]| *moved == address);
        last.map(|[_, leaf]| Leaf(*leaf)).or_else(|| self.known.leaf(address))
    }
}

impl ShareArray {
    pub(super) fn new(
        params: S3OramParams,
        key: &MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        known: Known,
    ) -> Result<Self, Error> {
        if !trees.is_empty() {
            return Err(impossible("the scheme has no trees"));
        }
        let count = params.parties.servers();
        let store = servers::of(store, count)?;
        let (sealer, accesses) = (BlockSealer::new(key), known.accesses());
        Ok(Self {
            params,
            store,
            sealer,
            known,
            coins: EraCoins::default(),
            kept: accesses,
            seen_max: accesses,
            done: None,
            parts: Parts::all(count),
            has_met: false,
            trust: Trust::new(count),
            broken: false,
        })
    }

    fn draw_leaf(&self, coins: &mut dyn CryptoRng) -> Leaf {
        // There are a power of two of them.
        Leaf(coins.next_u64() & (self.params.tree.leaves() - 1))
    }
}

impl DurableOram for ShareArray {
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
        let mut moves = Moves::new(&self.known);
        for plan in planned {
            plan.steps()?.iter().for_each(|step| moves.add(step));
        }
        let mut steps = Vec::with_capacity(wanted.len());
        for want in wanted {
            let address = address_of(*want, self.params.blocks)?;
            // Both are drawn, whatever is shown.
            let [drawn, to] = [(); 2].map(|()| self.draw_leaf(coins));
            let leaf = address.and_then(|address| moves.leaf(address));
            let mut salt = [0; SALT_BYTES];
            coins.fill_bytes(&mut salt);
            let step = Step { address, from: leaf.unwrap_or(drawn), to, salt };
            moves.add(&step);
            steps.push(step);
        }
        Ok(plan_of(steps))
    }

    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error> {
        Ok(AccessPlan::new(plan.clone(), self.params.decode_steps(plan)?))
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
        let mut moves = Moves::new(&self.known);
        for (step, op) in steps.iter().zip(&*ops) {
            if let Some(address) = step.address {
                check_request(address, op, self.params.blocks, self.params.block_bytes as usize)?;
                if moves.leaf(address).is_some_and(|leaf| leaf != step.from) {
                    return Err(strange());
                }
            }
            moves.add(step);
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
        self.known.is_any_live()
    }

    fn evict(&mut self) -> Result<(), Error> {
        Err(invalid("this scheme has no stash, and evicts when the root is full"))
    }

    fn load(
        &mut self,
        contents: &mut dyn Contents,
        coins: &mut dyn CryptoRng,
    ) -> Result<bool, Error> {
        self.broken = true;
        self.load_all(contents, coins)?;
        self.broken = false;
        Ok(true)
    }

    fn keep_wrong_servers(&mut self, list: Box<dyn WrongServers>) {
        self.trust.keep_in(list);
    }
}

impl Snapshot for ShareArray {
    fn save(&self, what: Save, out: &mut dyn FnMut(&[u8])) {
        save(&self.known, what, out);
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
        let (parties, tree) = (self.params.parties, self.params.tree);
        let servers = self.servers();
        // No more than that: whoever only looks may ask nothing else.
        let told = servers::epochs(servers);
        servers::check_not_fenced(servers, &told)?;
        if told.iter().filter(|told| told.is_ok()).count() <= parties.colluding() {
            let advice = "Most servers have to say how far they are";
            return Err(servers::failure(servers, servers::parted(told).1, advice));
        }
        self.seen_max = self.seen_max.max(known);
        let seen_max = self.known.point_after(known);
        let servers = self.servers();
        let is_old = is_old(servers, parties, tree, &told, seen_max)?;
        Ok(if is_old { RollbackProbe::Seen } else { RollbackProbe::NotYet })
    }
}

impl Audit for ShareArray {
    fn buckets_written(&self) -> u64 {
        buckets_with_slots(self.params.tree, self.known.client.at()).count() as u64
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
        let (kept, tree) = (self.known.point_after(self.kept), self.params.tree);
        let parties = self.params.parties;
        standing::check_not_set_back(self.servers(), parties, tree, kept)
    }
}
