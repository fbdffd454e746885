//! One access: a block is selected, checked, sealed anew and written to the root, whatever it is for.

use oblivio_core::scheme::Op;
use oblivio_core::seal::{BlockName, BlockSealer};
use oblivio_core::{BucketId, Error, ErrorKind, StoreError};
use zeroize::Zeroizing;

use super::coins::{EraCoins, query_bytes, query_turn, salted, write_turn};
use super::invalid;
use super::known::{Known, NOTHING, Step};
use super::params::S3OramParams;
use super::parts::Parts;
use super::servers::{self, ask, ask_some};
use super::standing::{self, Standing, Told, is_old};
use super::suspicion::Suspicion;
use super::trust::Trust;
use crate::answers::{NoBlock, Recovered, correctable};
use crate::client::ClientError;
use crate::message::{Point, Request};
use crate::servers::{AnyServers, ShareServers};

/// An S³ORAM of a volume.
pub(super) struct ShareArray {
    pub(super) params: S3OramParams,
    pub(super) store: AnyServers,
    pub(super) sealer: BlockSealer,
    pub(super) known: Known,
    /// The coins for matrices.
    pub(super) coins: EraCoins,
    /// Accesses of the state that the client could go back to.
    pub(super) kept: u64,
    /// How many accesses the servers may have seen, as far as the directory knows.
    pub(super) seen_max: u64,
    /// The point to which servers were through when they were asked first.
    pub(super) done: Option<Point>,
    /// Which servers take part.
    pub(super) parts: Parts,
    /// Servers have made links to each other since the array was opened.
    pub(super) has_met: bool,
    /// Which servers have answered wrong.
    pub(super) trust: Trust,
    /// An access was begun and has not ended well.
    pub(super) broken: bool,
}

impl ShareArray {
    /// The servers.
    pub(super) fn servers(&mut self) -> &mut dyn ShareServers {
        &mut *self.store
    }

    /// What each server is told to be.
    fn setups(&mut self) -> Result<Vec<Request>, Error> {
        let params = self.params.clone();
        let servers = self.servers();
        let keys: Vec<_> = (0..servers.count()).map(|server| servers.key(server)).collect();
        let numbers = params.parties.numbers();
        let setups = numbers.flat_map(|number| params.setup(number, keys.clone()));
        Ok(setups.map(Request::Setup).collect())
    }

    /// How far all servers are. Those that are something are told what they should be: it changes nothing, and one that has another number there, or other
    /// companions, another tree or field, refuses.
    pub(super) fn tell(&mut self) -> Result<Vec<Told>, Error> {
        let (setups, parties) = (self.setups()?, self.params.parties);
        standing::tell(self.servers(), parties, setups)
    }

    /// Refuses servers that are named in another order than that in which the array was made.
    pub(super) fn check_order(&mut self) -> Result<(), Error> {
        self.tell().map(drop)
    }

    /// Makes each server one of this array. They have nothing yet.
    pub(super) fn set_up(&mut self) -> Result<(), Error> {
        let requests = self.setups()?;
        let servers = self.servers();
        let said = ask(servers, requests);
        let advice = "A new volume needs all of its servers, with nothing on them";
        servers::all(servers, said.into_iter().map(servers::done), advice)?;
        let met = vec![Request::Meet; servers.count()];
        let met = ask(servers, met);
        let lacking = "Servers deal to each other: each needs all others in its list of peers, at an address where it reaches them";
        servers::all(servers, met.into_iter().map(servers::done), lacking)?;
        let told = servers::epochs(servers);
        let epochs = servers::all(servers, told, advice)?;
        if epochs.iter().any(|epoch| epoch.at != Point::default()) {
            return Err(Error::new(
                ErrorKind::StoreMismatch,
                "the share servers hold blocks of another volume: give the new one other folders",
            ));
        }
        self.done = Some(Point::default());
        Ok(())
    }

    /// Asks the servers once how far they are. Accesses with which enough of them are through are not made again.
    pub(super) fn look(&mut self) -> Result<Point, Error> {
        if let Some(done) = self.done {
            return Ok(done);
        }
        let (parties, tree) = (self.params.parties, self.params.tree);
        let (kept, seen_max) =
            (self.known.point_after(self.kept), self.known.point_after(self.seen_max));
        let told = self.tell()?;
        let servers = self.servers();
        servers::check_not_fenced(servers, &told)?;
        if is_old(servers, parties, tree, &told, seen_max)? {
            return Err(Error::new(
                ErrorKind::StateRolledBack,
                "the share servers are further than the client's directory knows: it is not the latest. Use the latest directory",
            ));
        }
        let Standing { done, parts } = Standing::of(parties, tree, told, kept);
        parts.check_enough(servers, parties)?;
        (self.done, self.parts) = (Some(done), parts);
        Ok(done)
    }

    /// One access, for a block or for none, with the eviction that comes after it.
    pub(super) fn access(&mut self, step: &Step, op: &mut Op<'_>) -> Result<(), Error> {
        self.known.check(step)?;
        let (at, done) = (self.known.client.at(), self.look()?);
        let is_written = step.address.is_some() && !matches!(op, Op::Read(_));
        if at < done {
            // The log tells of it, and enough servers have it.
            self.known.write(step, is_written);
        } else {
            self.access_on_servers(at, step, op)?;
            self.known.write(step, is_written);
        }
        if self.known.client.must_evict() {
            if at.evictions < done.evictions {
                self.known.evict()?;
            } else {
                self.evict_on_servers()?;
            }
        }
        Ok(())
    }

    /// What servers do of it.
    fn access_on_servers(&mut self, at: Point, step: &Step, op: &mut Op<'_>) -> Result<(), Error> {
        self.catch_up(at)?;
        let sealed = self.select(at, step)?;
        let mut block = self.checked(step, &sealed)?;
        if step.address.is_some() {
            op.apply(&mut block);
        }
        let name =
            BlockName { address: step.address.unwrap_or(NOTHING), number: self.known.accesses() };
        let sealed = self.sealer.seal(name, &block);
        // What is done again has the same shares: of two times, some servers may have got the one and some the other.
        let mut coins = salted(&self.sealer, &[&step.salt, &sealed]);
        self.known.client.go_to_turn(write_turn(self.known.accesses()));
        let writes = self.known.client.writes(at.written, &sealed, &mut coins);
        let is_current = self.parts.current();
        let requests = writes.into_iter().zip(is_current).map(|(write, is_current)| {
            is_current.then_some(Request::Write { at, block: write.block })
        });
        let said = ask_some(self.servers(), requests.collect());
        for (server, said) in said.into_iter().enumerate() {
            if let Some(Err(error)) = said.map(servers::done) {
                self.fail(server, error)?;
            }
        }
        self.check_enough()
    }

    /// A server has not done what it was asked: it takes no part for now.
    pub(super) fn fail(&mut self, server: usize, error: StoreError) -> Result<(), Error> {
        let servers = &mut *self.store;
        self.parts.fail(servers, server, error)
    }

    /// Refuses to go on with fewer servers than an access needs.
    pub(super) fn check_enough(&mut self) -> Result<(), Error> {
        let parties = self.params.parties;
        let servers = &mut *self.store;
        self.parts.check_enough(servers, parties)
    }

    /// What is in the slot of a block, or zeros for what has none.
    fn select(&mut self, at: Point, step: &Step) -> Result<Vec<u8>, Error> {
        let slot_bytes = self.params.slot_bytes();
        let Self { known, sealer, .. } = self;
        let (number, address) = (known.accesses(), step.address.map(|address| address as usize));
        let position = address.and_then(|address| known.client.positions().get(address));
        let query = query_bytes(position, step.from);
        let mut coins = salted(sealer, &[&step.salt, &number.to_le_bytes(), &query]);
        known.client.go_to_turn(query_turn(number));
        let queries = known.client.queries_at(position, step.from, &mut coins);
        let is_current = self.parts.current();
        let requests = queries
            .into_iter()
            .zip(is_current)
            .map(|(select, is_current)| is_current.then_some(Request::Select { at, select }));
        let said = ask_some(self.servers(), requests.collect());
        let (mut numbers, mut answers) = (Vec::new(), Vec::new());
        for ((server, number), said) in (1..).enumerate().zip(said) {
            match said.map(|said| servers::share(said, slot_bytes)) {
                Some(Ok(share)) => {
                    numbers.push(number);
                    answers.push(share);
                }
                Some(Err(error)) => self.fail(server, error)?,
                None => (),
            }
        }
        self.check_enough()?;
        match self.known.client.recover(&numbers, &answers) {
            Ok(Recovered { block, liars }) => {
                self.found_wrong(&liars)?;
                Ok(block)
            }
            Err(ClientError::Answers(NoBlock::Contradict)) => {
                let what = "answers of share servers contradict each other, and there are too few \
                            to tell which are wrong";
                let path = self.params.tree.path(step.from).collect();
                let do_shares_fit = false;
                Err(self.suspicious(what, path, do_shares_fit))
            }
            Err(error) => Err(invalid(&error.to_string())),
        }
    }

    /// The block, if what was recovered is what has to be there. What is done does not depend on whether that is a block.
    fn checked(&self, step: &Step, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let name = self.known.name(step.address);
        let opened = self.sealer.open(sealed);
        let is_zeros = sealed.iter().fold(0, |all, byte| all | byte) == 0;
        let mut block = Zeroizing::new(vec![0; self.params.block_bytes as usize]);
        let fits = match (&opened, name) {
            (Some(opened), Some(name)) => opened.name() == name,
            (None, None) => is_zeros,
            _ => false,
        };
        if !fits {
            let what = "what share servers have answered is not what was written";
            let parties = self.params.parties;
            // With t answers more than needed, lies of t servers would not have fitted.
            let do_shares_fit = self.parts.count() >= parties.for_product() + parties.colluding();
            let path = self.params.tree.path(step.from).collect();
            return Err(self.suspicious(what, path, do_shares_fit));
        }
        if let Some(opened) = &opened {
            block.copy_from_slice(opened.bytes());
        }
        Ok(block)
    }

    /// An error about what was found in one of these buckets, which names those that may have
    /// spoilt it.
    pub(super) fn suspicious(
        &self,
        what: &str,
        buckets: Vec<BucketId>,
        do_shares_fit: bool,
    ) -> Error {
        let (parties, at) = (self.params.parties, self.known.client.at());
        let suspicion = Suspicion { parties, at, buckets, do_shares_fit };
        suspicion.error(&self.corrupt(what), &self.trust)
    }

    /// An error about blocks that are not what they have to be.
    pub(super) fn corrupt(&self, what: &str) -> Error {
        let (wrong, parties) = (self.trust.wrong_servers(), self.params.parties);
        // Whoever is missing has not answered.
        let is_named = correctable(parties, parties.for_product(), self.parts.count()) > 0;
        let who = if is_named { "" } else { " Of so few answers, nobody can tell which." };
        let before = if wrong.is_empty() {
            String::new()
        } else {
            format!(" Wrong answers have come before from {}.", wrong.join(", "))
        };
        Error::new(
            ErrorKind::Corrupt,
            format!(
                "{what}: one of them lies, or its shares are damaged. Nothing of it was used.{who}{before}"
            ),
        )
    }

    /// The servers of these numbers have answered wrong: they deal no more.
    pub(super) fn found_wrong(&mut self, numbers: &[u8]) -> Result<(), Error> {
        let servers = &mut *self.store;
        self.trust.found_wrong(servers, numbers)
    }

    pub(super) fn accesses_left(&self) -> u64 {
        let since = self.known.accesses() - self.kept;
        self.params.accesses_per_checkpoint().saturating_sub(since)
    }
}
