//! One access: in each of the trees a block is found, selected, checked, sealed anew and written to the root, whatever it is for.

use chacha20::ChaCha20Rng;
use oblivio_core::scheme::Op;
use oblivio_core::seal::BlockName;
use oblivio_core::{BucketId, Error, ErrorKind, Leaf, StoreError, StoreErrorKind};
use zeroize::Zeroizing;

use super::super::coins::{query_bytes, query_turn, salted, write_turn};
use super::super::impossible;
use super::super::in_tree::InTree;
use super::super::parts::BRING_BACK;
use super::super::servers::{self, Said, ask, ask_some};
use super::super::suspicion::Suspicion;
use super::array::MappedArray;
use super::known::Step;
use crate::answers::Answers;
use crate::client::{ClientError, Occupant, Position};
use crate::field::Gf256;
use crate::map_trees::map_block::Mapped;
use crate::message::{Point, Request, Select};
use crate::servers::ShareServers;

/// Numbers of writes are below, or a block of the map could not say them.
const WRITES_MAX: u64 = 1 << 48;

/// Blocks of trees have names that differ: the number of the tree stands above the address.
const ADDRESS_BITS: u32 = 56;

/// What an access is for in one of the trees.
struct Visit {
    tree: usize,
    at: Point,
    /// None for no block.
    address: Option<u64>,
    /// What slots say in the place of the address.
    label: Option<usize>,
    /// What the tree before has said of it; none if the block is nowhere.
    mapped: Option<Mapped>,
    /// Whose path is shown.
    shown: Leaf,
}

impl Visit {
    /// Whose block has to be found in the slot.
    fn occupant(&self) -> Option<Occupant> {
        Some(Occupant { label: self.label?, leaf: self.mapped?.leaf })
    }
}

/// What each server is asked for the slot of a block.
type Queries = Vec<Select<u8>>;

/// Under which name a block of a tree is sealed; or what is no block.
fn name(tree: usize, address: Option<u64>, number: u64) -> BlockName {
    let address = address.unwrap_or((1 << ADDRESS_BITS) - 1);
    BlockName { address: (tree as u64) << ADDRESS_BITS | address, number }
}

/// Whether a dummy of this tree has that name.
pub(super) fn is_dummy_of(tree: usize, named: BlockName) -> bool {
    name(tree, None, named.number) == named
}

/// Whose block of this tree has that name; none if it is of another.
pub(super) fn address_in(tree: usize, named: BlockName) -> Option<u64> {
    let address = named.address & ((1 << ADDRESS_BITS) - 1);
    (name(tree, Some(address), named.number) == named).then_some(address)
}

impl MappedArray {
    /// One access, for a block or for none, with the evictions that come after it.
    pub(super) fn access(&mut self, step: &Step, op: &mut Op<'_>) -> Result<(), Error> {
        let number = self.known.accesses();
        let done = self.look()?;
        // The data are written last. But a server whose disk said too early that all is durable can lack the write of another tree, alone.
        let at = self.known.point_after(number);
        if let Some(lacking) = done.iter().position(|done| at >= *done) {
            self.access_on_servers(lacking, step, op)?;
        }
        let is_written = step.address.is_some() && !matches!(op, Op::Read(_));
        self.known.access(step, is_written);
        if let Some(full) = self.known.full_after(number) {
            for (tree, done) in done.iter().enumerate() {
                if full.evictions >= done.evictions {
                    self.evict_on_servers(tree, full)?;
                }
            }
        }
        Ok(())
    }

    /// What servers do of it, in the trees from the last of the map to this one: those before it have it, and may be evicted since. A tree is evicted after those before it, so none of these is.
    fn access_on_servers(
        &mut self,
        lacking: usize,
        step: &Step,
        op: &mut Op<'_>,
    ) -> Result<(), Error> {
        let number = self.known.accesses();
        if number >= WRITES_MAX {
            return Err(impossible("a volume has 2^48 accesses at most: copy it to a new one"));
        }
        let at = self.known.point_after(number);
        let addresses = step.address.map(|address| self.known.addresses(address));
        let mut mapped = step.address.and_then(|address| self.known.mapped(address));
        for (tree, draw) in step.draws.iter().enumerate().skip(lacking).rev() {
            let [address, entry] = match &addresses {
                Some(addresses) => addresses[tree].map(Some),
                None => [None; 2],
            };
            let shown = mapped.map_or(draw.instead, |mapped| mapped.leaf);
            // It takes time, and so is computed for no block as well.
            let label = self.labels.of(tree, address.unwrap_or_default()) as usize;
            let label = address.map(|_| label);
            let visit = Visit { tree, at, address, label, mapped, shown };
            let (mut block, selects) = self.fetch(&visit, step)?;
            mapped = match (tree.checked_sub(1), entry) {
                (Some(below), Some(entry)) => {
                    let new = Mapped { leaf: step.draws[below].to, write: number };
                    let map = self.levels.level(below).map;
                    let before = map.replace::<Gf256>(&mut block, entry as usize, new);
                    before.map_err(|_| self.corrupt("a block of the position map says no leaf"))?
                }
                _ => None,
            };
            if let (0, Some(address)) = (tree, step.address) {
                if !self.known.live.contains(address) {
                    block.fill(0);
                }
                op.apply(&mut block);
            }
            self.write(&visit, step, &block, &selects)?;
        }
        Ok(())
    }

    /// The servers, of one of the trees.
    pub(super) fn servers(&mut self, tree: usize) -> InTree<'_> {
        InTree { servers: &mut *self.store, tree: tree as u8 }
    }

    /// What all have answered. Without one of them there is no access.
    fn all<T>(
        &mut self,
        tree: usize,
        requests: Vec<Request>,
        read: impl Fn(Said) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, Error> {
        let mut servers = self.servers(tree);
        let said: Vec<_> = ask(&mut servers, requests).into_iter().map(read).collect();
        servers::check_not_fenced(&servers, &said)?;
        servers::all(&servers, said, &all_are_needed())
    }

    fn answers(
        &mut self,
        tree: usize,
        requests: Vec<Request>,
        bytes: usize,
    ) -> Result<Answers<u8>, Error> {
        let shares = self.all(tree, requests, |said| servers::share(said, bytes))?;
        Ok(Answers { numbers: self.params.parties.numbers().collect(), shares })
    }

    /// The block, and what was asked for it.
    fn fetch(
        &mut self,
        visit: &Visit,
        step: &Step,
    ) -> Result<(Zeroizing<Vec<u8>>, Queries), Error> {
        let Visit { tree, at, shown, .. } = *visit;
        let level = *self.levels.level(tree);
        // All are asked, and not only as many as are enough: so a share that is wrong is noticed, whatever the access is for.
        let asked = vec![Request::Metadata { at, leaf: shown }; self.params.parties.servers()];
        let bytes = level.tree.path_slots() * level.metadata_elements;
        let said = self.answers(tree, asked, bytes)?;
        let position =
            self.found(visit, &said).map_err(|error| self.wrong(visit, &error.to_string()))?;
        let mut coins = self.coins_of(step, tree, &query_bytes(position, shown));
        let (number, of_tree) = (self.known.accesses(), &mut self.trees[tree]);
        of_tree.go_to(at, query_turn(number));
        let selects = of_tree.queries(position, shown, &mut coins);
        let asked = selects.iter().cloned().map(|select| Request::Select { at, select }).collect();
        let answers = self.answers(tree, asked, level.slot_elements())?;
        let sealed = self.trees[tree].block(visit.occupant(), &answers);
        let sealed = sealed.map_err(|error| self.wrong(visit, &error.to_string()))?;
        Ok((self.checked(visit, &sealed)?, selects))
    }

    /// Where the block is, from what slots of its path say.
    fn found(&self, visit: &Visit, said: &Answers<u8>) -> Result<Option<Position>, ClientError> {
        let Visit { tree, label, mapped, shown, .. } = *visit;
        match label {
            Some(label) => {
                let leaf = mapped.map(|mapped| mapped.leaf);
                self.trees[tree].find(label, leaf, shown, said)
            }
            None => self.trees[tree].occupants(shown, said).map(|_| None),
        }
    }

    /// The block, if what was recovered is what has to be there. What is done does not depend on whether that is a block.
    fn checked(&self, visit: &Visit, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let Visit { tree, address, mapped, .. } = *visit;
        let opened = self.sealer.open(sealed);
        let is_zeros = sealed.iter().fold(0, |all, byte| all | byte) == 0;
        let mut block = Zeroizing::new(vec![0; self.data_bytes(tree)]);
        let fits = match (&opened, address.zip(mapped)) {
            (Some(opened), Some((address, mapped))) => {
                opened.name() == name(tree, Some(address), mapped.write)
            }
            (None, None) => is_zeros,
            _ => false,
        };
        if !fits {
            let what = "what share servers have answered is not what was written";
            return Err(self.wrong(visit, what));
        }
        if let Some(opened) = &opened {
            block.copy_from_slice(opened.bytes());
        }
        Ok(block)
    }

    /// Writes a block to the root of a tree. The slot that was selected is taken.
    fn write(
        &mut self,
        visit: &Visit,
        step: &Step,
        block: &[u8],
        selects: &[Select<u8>],
    ) -> Result<(), Error> {
        let Visit { tree, at, address, label, .. } = *visit;
        let number = self.known.accesses();
        let sealed = self.sealer.seal(name(tree, address, number), block);
        let leaf = step.draws[tree].to;
        let occupant = label.map(|label| Occupant { label, leaf });
        let slot = self.trees[tree].slot(occupant, &sealed);
        let mut coins = self.coins_of(step, tree, &slot);
        let of_tree = &mut self.trees[tree];
        of_tree.go_to(at, write_turn(number));
        let writes = of_tree.writes(&slot, &mut coins);
        let writes: Vec<_> =
            writes.into_iter().map(|write| Request::Write { at, block: write.block }).collect();
        let mut servers = self.servers(tree);
        servers.begin_retries();
        let said = ask(&mut servers, writes.clone());
        let mut said: Vec<_> = said.into_iter().map(servers::done).collect();
        // A server that was started again since the select does not know the query any more. It
        // gets both again, and the same.
        let is_cut_off = |said: &Result<(), StoreError>| {
            said.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Unreachable)
        };
        for failed in 0.. {
            let again: Vec<_> = said.iter().map(is_cut_off).collect();
            // All servers are needed: another failure of one is not waited out.
            let is_final = said.iter().zip(&again).any(|(said, again)| said.is_err() && !again);
            let waits = |servers: &mut InTree<'_>| !is_final && servers.wait_for_links(failed);
            if !again.contains(&true) || failed > 0 && !waits(&mut servers) {
                break;
            }
            let some = |requests: Vec<Request>| {
                let asked = requests.into_iter().zip(&again);
                asked.map(|(request, again)| again.then_some(request)).collect::<Vec<_>>()
            };
            let selects = selects.iter().cloned();
            let selects = selects.map(|select| Request::Select { at, select }).collect();
            ask_some(&mut servers, some(selects));
            let told = ask_some(&mut servers, some(writes.clone())).into_iter().enumerate();
            for (server, told) in told.filter_map(|(server, told)| Some((server, told?))) {
                said[server] = servers::done(told);
            }
        }
        servers::check_not_fenced(&servers, &said)?;
        servers::all(&servers, said, &all_are_needed()).map(drop)
    }

    /// The coins for one secret of an access. No two accesses have one salt or one number.
    fn coins_of(&self, step: &Step, tree: usize, shared: &[u8]) -> ChaCha20Rng {
        let number = self.known.accesses().to_le_bytes();
        salted(&self.sealer, &[&step.salt, &[tree as u8], &number, shared])
    }

    /// Bytes of a block of a tree, without its seal.
    fn data_bytes(&self, tree: usize) -> usize {
        match tree.checked_sub(1) {
            None => self.params.block_bytes as usize,
            Some(below) => self.levels.level(below).map.bytes(),
        }
    }

    fn wrong(&self, visit: &Visit, what: &str) -> Error {
        let Visit { tree, at, shown, .. } = *visit;
        let path = self.levels.level(tree).tree.path(shown).collect();
        let do_shares_fit = false;
        self.suspicious(what, at, path, do_shares_fit)
    }

    /// An error about what was found in one of these buckets of a tree, which names those that may
    /// have spoilt it.
    pub(super) fn suspicious(
        &self,
        what: &str,
        at: Point,
        buckets: Vec<BucketId>,
        do_shares_fit: bool,
    ) -> Error {
        let parties = self.params.parties;
        let suspicion = Suspicion { parties, at, buckets, do_shares_fit };
        suspicion.error(&self.corrupt(what), &self.trust)
    }

    /// An error about blocks, or what slots say, that are not what they have to be.
    pub(super) fn corrupt(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "{what}: one of them lies, or its shares are damaged. Nothing of it was used. Of so few answers, nobody can tell which."
            ),
        )
    }
}

/// What is said if one of them does not answer.
fn all_are_needed() -> String {
    format!("Every server must have what is written: {BRING_BACK}")
}
