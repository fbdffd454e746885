//! Makes one access. In each tree, it finds, selects, checks and reseals a block, and writes the
//! block to the root.

use chacha20::ChaCha20Rng;
use oblivio_core::scheme::Op;
use oblivio_core::{BucketId, Error, ErrorKind, Leaf, StoreError, StoreErrorKind};
use zeroize::Zeroizing;

use super::array::ShareArray;
use super::client_state::{AccessStep, Positions};
use super::coins::{query_bytes, query_turn, salted, write_turn};
use super::servers::{self, TreeServers};
use super::suspicion::Suspicion;
use super::{impossible, invalid};
use crate::answers::{Answers, DecodeError, Recovered, correctable};
use crate::client::{ClientError, Occupant, Position};
use crate::field::Gf256;
use crate::map_trees::map_block::Mapped;
use crate::message::{Request, Select, TreePoint};

/// The exclusive upper bound of write numbers: an entry of a map block stores a write number in six
/// bytes.
const WRITES_MAX: u64 = 1 << 48;

/// An access to one tree.
struct TreeAccess {
    tree: usize,
    at: TreePoint,
    /// The address of the block; `None` for a dummy access.
    address: Option<u64>,
    /// The block's label, if slots have metadata.
    label: Option<usize>,
    /// The block's map entry, from the client or the previous tree; `None` if the block has no
    /// position.
    mapped: Option<Mapped>,
    /// The leaf of the path that the servers see.
    shown: Leaf,
}

impl TreeAccess {
    /// The label and leaf that the metadata of the selected slot must contain; `None` if the block
    /// has no label or no leaf.
    fn occupant(&self) -> Option<Occupant> {
        Some(Occupant { label: self.label?, leaf: self.mapped?.leaf })
    }
}

/// The selection request for each server.
type Queries = Vec<Select<u8>>;

impl ShareArray {
    /// Makes one access, for a block or a dummy. If the roots are then full, also evicts the next
    /// path of each tree.
    pub(super) fn access(&mut self, step: &AccessStep, op: &mut Op<'_>) -> Result<(), Error> {
        let number = self.state.accesses();
        let done = self.query_progress()?;
        // The data is written last. But a server whose disk acknowledged a sync too early may lack
        // only the write of another tree.
        let at = self.state.at();
        if let Some(lacking) = done.iter().position(|done| at >= *done) {
            self.access_on_servers(lacking, step, op)?;
        }
        let is_written = step.address.is_some() && !matches!(op, Op::Read(_));
        self.state.write(step, is_written);
        if let Some(full) = self.state.full_after(number) {
            for (tree, done) in done.iter().enumerate() {
                if full.evictions >= done.evictions {
                    self.evict_on_servers(tree, full)?;
                }
            }
            self.state.evict()?;
        }
        Ok(())
    }

    /// Makes the access on the servers, from the last map tree down to tree `lacking`. Trees are
    /// numbered from the data tree (0). `lacking` is the lowest number of a tree that lacks the
    /// access: trees with lower numbers already have it, and may have been evicted since. A tree is
    /// evicted only after all trees with lower numbers, so tree `lacking` and the trees with higher
    /// numbers were not evicted.
    fn access_on_servers(
        &mut self,
        lacking: usize,
        step: &AccessStep,
        op: &mut Op<'_>,
    ) -> Result<(), Error> {
        let number = self.state.accesses();
        if number >= WRITES_MAX {
            return Err(impossible(
                "a volume allows at most 2^48 accesses: copy it to a new volume",
            ));
        }
        let at = self.state.at();
        self.catch_up(at)?;
        let addresses = step.address.map(|address| self.state.addresses(address));
        let mut mapped = step.address.and_then(|address| self.state.mapped(address));
        for (tree, draw) in step.draws.iter().enumerate().skip(lacking).rev() {
            let [address, entry] = match &addresses {
                Some(addresses) => addresses[tree].map(Some),
                None => [None; 2],
            };
            let shown = mapped.map_or(draw.shown, |mapped| mapped.leaf);
            let label = self.label(tree, address);
            let access = TreeAccess { tree, at, address, label, mapped, shown };
            let (mut block, queries) = self.fetch(&access, step)?;
            mapped = match (&self.state.positions, tree.checked_sub(1), entry) {
                (Positions::InTrees(map), Some(below), Some(entry)) => {
                    let new = Mapped { leaf: step.draws[below].to, write: number };
                    let format = map.levels.level(below).map;
                    let before = format.replace::<Gf256>(&mut block, entry as usize, new);
                    before.map_err(|_| self.corrupt(tree, INVALID_LEAF))?
                }
                _ => None,
            };
            if let (0, Some(address)) = (tree, step.address) {
                if !self.state.is_live(address) {
                    block.fill(0);
                }
                op.apply(&mut block);
            }
            self.write(&access, step, &block, &queries)?;
        }
        Ok(())
    }

    /// The label of a block; `None` if slots have no metadata, or the access is a dummy. A dummy
    /// takes the same time, because its label is computed and then ignored.
    fn label(&self, tree: usize, address: Option<u64>) -> Option<usize> {
        if let Positions::OnClient(_) = self.state.positions {
            return None;
        }
        let label = self.labels.of(tree, address.unwrap_or_default()) as usize;
        address.map(|_| label)
    }

    /// Sends the requests to the participating servers, and collects the shares from their answers.
    /// Fails if too few servers answer.
    fn answers(
        &mut self,
        tree: usize,
        requests: impl Iterator<Item = Request>,
        bytes: usize,
    ) -> Result<Answers<u8>, Error> {
        let requests = self.to_current(tree, requests);
        let results = self.servers(tree).ask_some(requests);
        let mut answers = Answers { numbers: Vec::new(), shares: Vec::new() };
        for ((server, number), result) in (1..).enumerate().zip(results) {
            match result.map(|result| servers::expect_share(result, bytes)) {
                Some(Ok(share)) => {
                    answers.numbers.push(number);
                    answers.shares.push(share);
                }
                Some(Err(error)) => self.fail(tree, server, error)?,
                None => (),
            }
        }
        self.check_enough(tree)?;
        Ok(answers)
    }

    /// Replaces requests to servers that do not participate with `None`.
    fn to_current(
        &self,
        tree: usize,
        requests: impl Iterator<Item = Request>,
    ) -> Vec<Option<Request>> {
        let is_current = self.participants[tree].current();
        requests
            .zip(is_current)
            .map(|(request, participates)| participates.then_some(request))
            .collect()
    }

    /// Excludes a server whose request failed, until the client asks it again.
    pub(super) fn fail(
        &mut self,
        tree: usize,
        server: usize,
        error: StoreError,
    ) -> Result<(), Error> {
        self.participants[tree].fail(&*self.store, server, error)
    }

    /// Fails if fewer servers participate than an access needs.
    pub(super) fn check_enough(&self, tree: usize) -> Result<(), Error> {
        self.participants[tree].check_enough(&*self.store, self.params.parties)
    }

    /// Fetches a block; zeros for a dummy or a block without a position. Also returns the queries
    /// that were sent.
    fn fetch(
        &mut self,
        access: &TreeAccess,
        step: &AccessStep,
    ) -> Result<(Zeroizing<Vec<u8>>, Queries), Error> {
        let TreeAccess { tree, at, shown, .. } = *access;
        // Subroutine 1, step 1: `shown` is the leaf, and `position` has the slot.
        let position = self.position(access)?;
        let number = self.state.accesses();
        let secret = query_bytes(position, shown);
        let mut coins = match &self.state.positions {
            Positions::OnClient(_) => {
                salted(&self.sealer, &[&step.salt, &number.to_le_bytes(), &secret])
            }
            Positions::InTrees(_) => self.coins_of(step, tree, &secret),
        };
        let client = self.state.client(tree);
        client.set_progress(at);
        client.set_turn(query_turn(number));
        // Subroutine 1, steps 2 and 3: send a query to each server.
        let queries = client.queries_at(position, shown, &mut coins);
        let requests = queries.iter().cloned().map(|select| Request::Select { at, select });
        let slot_bytes = self.trees[tree].slot_bytes;
        let answers = self.answers(tree, requests, slot_bytes)?;
        // Subroutine 1, steps 9 to 11: reconstruct the slot from the answers.
        let slot = self.recovered(access, &answers)?;
        let sealed = match &self.state.positions {
            Positions::OnClient(_) => &slot[..],
            Positions::InTrees(map) => map.trees[tree]
                .sealed(access.occupant(), &slot)
                .map_err(|error| self.wrong(access, &error.to_string()))?,
        };
        Ok((self.checked(access, sealed)?, queries))
    }

    /// The position of the block, from the client's map or from the metadata of the path.
    fn position(&mut self, access: &TreeAccess) -> Result<Option<Position>, Error> {
        let TreeAccess { tree, at, address, label, mapped, shown } = *access;
        if let Positions::OnClient(map) = &self.state.positions {
            return Ok(address.and_then(|address| map.client.positions().get(address as usize)));
        }
        // Ask all servers, not only the minimum, so that a wrong share is detected whatever the
        // purpose of the access.
        let request = Request::Metadata { at, leaf: shown };
        let requests = std::iter::repeat_n(request, self.params.parties.servers());
        let bytes = self.trees[tree].path_metadata_bytes();
        let answers = self.answers(tree, requests, bytes)?;
        let Positions::InTrees(map) = &self.state.positions else { return Ok(None) };
        let of_tree = &map.trees[tree];
        let found = match label {
            Some(label) => of_tree.find(label, mapped.map(|mapped| mapped.leaf), shown, &answers),
            None => of_tree.occupants(shown, &answers).map(|_| None),
        };
        found.map_err(|error| self.wrong(access, &error.to_string()))
    }

    /// Recovers the slot from the answers, and records servers that gave wrong answers.
    fn recovered(
        &mut self,
        access: &TreeAccess,
        answers: &Answers<u8>,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        match self.state.client(access.tree).recover(&answers.numbers, &answers.shares) {
            Ok(Recovered { block, wrong_servers }) => {
                self.record_wrong(&wrong_servers)?;
                Ok(Zeroizing::new(block))
            }
            Err(ClientError::Answers(DecodeError::Contradict)) => {
                let what = "answers of share servers contradict each other, and too few servers \
                            answered to tell which are wrong";
                let path = self.path(access);
                let do_shares_fit = false;
                Err(self.suspicious(access.tree, what, path, do_shares_fit))
            }
            Err(error) => Err(invalid(&error.to_string())),
        }
    }

    /// Verifies a recovered slot, and decrypts its block. A block must have a valid seal with the
    /// expected name; a dummy must be all zeros, and gives a block of zeros.
    fn checked(&self, access: &TreeAccess, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let TreeAccess { tree, address, mapped, .. } = *access;
        let opened = self.sealer.open(sealed);
        let is_zeros = sealed.iter().fold(0, |all, byte| all | byte) == 0;
        let mut block = Zeroizing::new(vec![0; self.trees[tree].data_bytes()]);
        let fits = match (&opened, address.zip(mapped)) {
            (Some(opened), Some((address, mapped))) => {
                opened.name() == self.state.name(tree, Some(address), mapped.write)
            }
            (None, None) => is_zeros,
            _ => false,
        };
        if !fits {
            let what = "share servers did not return what was written";
            return Err(self.wrong(access, what));
        }
        if let Some(opened) = &opened {
            block.copy_from_slice(opened.bytes());
        }
        Ok(block)
    }

    /// Writes a block to the root of a tree. If slots have metadata, the servers also mark the
    /// selected slot as taken.
    fn write(
        &mut self,
        access: &TreeAccess,
        step: &AccessStep,
        block: &[u8],
        queries: &[Select<u8>],
    ) -> Result<(), Error> {
        let TreeAccess { tree, at, address, label, .. } = *access;
        let number = self.state.accesses();
        let sealed = self.sealer.seal(self.state.name(tree, address, number), block);
        // A repeated write has the same shares: some servers may have got the first write, and some
        // the second.
        let (slot, mut coins) = match &self.state.positions {
            Positions::OnClient(_) => {
                let coins = salted(&self.sealer, &[&step.salt, &sealed]);
                (Zeroizing::new(sealed), coins)
            }
            Positions::InTrees(map) => {
                let occupant = label.map(|label| Occupant { label, leaf: step.draws[tree].to });
                let slot = map.trees[tree].slot(occupant, &sealed);
                let coins = self.coins_of(step, tree, &slot);
                (slot, coins)
            }
        };
        let client = self.state.client(tree);
        client.set_progress(at);
        client.set_turn(write_turn(number));
        // Protocol 2, steps 6 to 10: share the block, and write the shares to the root.
        let writes = client.writes(at.written, &slot, &mut coins).into_iter();
        let requests = writes.map(|write| Request::Write { at, block: write.block });
        let requests = self.to_current(tree, requests);
        let results = match &self.state.positions {
            Positions::OnClient(_) => {
                let results = self.servers(tree).ask_some(requests).into_iter();
                results.map(|result| result.map(servers::expect_done)).collect()
            }
            Positions::InTrees(_) => self.write_marking(tree, at, queries, requests),
        };
        for (server, result) in results.into_iter().enumerate() {
            if let Some(Err(error)) = result {
                self.fail(tree, server, error)?;
            }
        }
        self.check_enough(tree)
    }

    /// Sends a write to servers that also mark the selected slot. A server that restarted after the
    /// select has lost the query, so the client sends it the query and the write again.
    fn write_marking(
        &mut self,
        tree: usize,
        at: TreePoint,
        queries: &[Select<u8>],
        writes: Vec<Option<Request>>,
    ) -> Vec<Option<Result<(), StoreError>>> {
        let mut servers = self.servers(tree);
        servers.begin_retries();
        let results = servers.ask_some(writes.clone()).into_iter();
        let mut results: Vec<_> = results.map(|result| result.map(servers::expect_done)).collect();
        let is_cut_off = |result: &Option<Result<(), StoreError>>| {
            let failed = result.as_ref().and_then(|result| result.as_ref().err());
            failed.is_some_and(|error| error.kind() == StoreErrorKind::Unreachable)
        };
        let has_failed = |result: &Option<Result<(), StoreError>>| matches!(result, Some(Err(_)));
        for failed in 0.. {
            let again: Vec<_> = results.iter().map(is_cut_off).collect();
            // All servers are needed, so waiting is useless if a server failed for another reason.
            let is_final =
                results.iter().zip(&again).any(|(result, again)| has_failed(result) && !again);
            let waits = |servers: &mut TreeServers<'_>| !is_final && servers.wait_for_links(failed);
            if !again.contains(&true) || failed > 0 && !waits(&mut servers) {
                break;
            }
            let selects = queries.iter().cloned().map(|select| Request::Select { at, select });
            let selects = selects.zip(&again).map(|(select, again)| again.then_some(select));
            servers.ask_some(selects.collect());
            let again = writes.iter().cloned().zip(&again);
            let again = again.map(|(write, again)| write.filter(|_| *again));
            let repeated = servers.ask_some(again.collect()).into_iter();
            for (result, repeated) in
                results.iter_mut().zip(repeated).filter(|(_, repeated)| repeated.is_some())
            {
                *result = repeated.map(servers::expect_done);
            }
        }
        results
    }

    /// The coins for one secret of an access. They depend on the access's salt and number, the
    /// tree, and the secret itself.
    fn coins_of(&self, step: &AccessStep, tree: usize, shared: &[u8]) -> ChaCha20Rng {
        let number = self.state.accesses().to_le_bytes();
        salted(&self.sealer, &[&step.salt, &[tree as u8], &number, shared])
    }

    fn path(&self, access: &TreeAccess) -> Vec<BucketId> {
        self.trees[access.tree].tree.path(access.shown).collect()
    }

    /// An error for wrong data on the path of an access.
    fn wrong(&self, access: &TreeAccess, what: &str) -> Error {
        let parties = self.params.parties;
        // With t answers more than needed, the answers of t lying servers would not have fitted.
        let enough = parties.for_product() + parties.colluding();
        let do_shares_fit = self.participants[access.tree].count() >= enough;
        self.suspicious(access.tree, what, self.path(access), do_shares_fit)
    }

    /// An error for wrong data in one of `buckets` of a tree. It names the servers that may have
    /// damaged the data.
    pub(super) fn suspicious(
        &self,
        tree: usize,
        what: &str,
        buckets: Vec<BucketId>,
        do_shares_fit: bool,
    ) -> Error {
        let (parties, at) = (self.params.parties, self.state.at());
        let suspicion = Suspicion { parties, at, buckets, do_shares_fit };
        suspicion.error(&self.corrupt(tree, what), &self.trust)
    }

    /// An error for wrong blocks or metadata in a tree.
    pub(super) fn corrupt(&self, tree: usize, what: &str) -> Error {
        let (wrong, parties) = (self.trust.wrong_servers(), self.params.parties);
        // Missing servers have not answered.
        let count = self.participants[tree].count();
        let is_named = correctable(parties, parties.for_product(), count) > 0;
        let hint = if is_named { "" } else { " There are too few answers to tell which server." };
        let before = if wrong.is_empty() {
            String::new()
        } else {
            format!(" Earlier wrong answers came from {}.", wrong.join(", "))
        };
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "{what}: a server lies, or its shares are damaged. The data was not \
                 used.{hint}{before}"
            ),
        )
    }

    /// Records that the servers with these numbers gave wrong answers. They no longer deal in
    /// evictions.
    pub(super) fn record_wrong(&mut self, numbers: &[u8]) -> Result<(), Error> {
        self.trust.record_wrong(&*self.store, numbers)
    }
}

/// The error for a map block whose entry has an invalid leaf.
pub(super) const INVALID_LEAF: &str = "a block of the position map has an invalid leaf";
