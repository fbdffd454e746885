//! How far servers are in each of the trees, and what they are told to be.

use oblivio_core::scheme::RollbackProbe;
use oblivio_core::{Error, ErrorKind};

use super::array::ShareArray;
use super::servers::{self, TreeServers};
use super::standing::{self, Standing, Told, is_old};
use crate::message::{Point, Request};

impl ShareArray {
    /// The servers, of one of the trees.
    pub(super) fn servers(&mut self, tree: usize) -> TreeServers<'_> {
        TreeServers { servers: &mut *self.store, tree: tree as u8 }
    }

    /// The setup request for each server of a tree.
    fn setups(&self, tree: usize) -> Vec<Request> {
        let servers = &*self.store;
        let keys: Vec<_> = (0..servers.count()).map(|server| servers.key(server)).collect();
        let numbers = self.params.parties.numbers();
        let setups = numbers.map(|number| self.trees[tree].setup(number, keys.clone()));
        setups.map(Request::Setup).collect()
    }

    /// How far all servers are in a tree. Those that are something are told what they should be: it
    /// changes nothing, and one that has another number there, or other companions, another tree or
    /// field, refuses.
    fn tell(&mut self, tree: usize) -> Result<Vec<Told>, Error> {
        let (setups, parties) = (self.setups(tree), self.params.parties);
        standing::tell(&mut self.servers(tree), parties, setups)
    }

    /// Refuses servers that are named in another order than that in which the array was made.
    pub(super) fn check_order(&mut self) -> Result<(), Error> {
        self.tell(0).map(drop)
    }

    /// Makes each server one of this array. They have nothing yet.
    pub(super) fn set_up(&mut self) -> Result<(), Error> {
        let is_alone = self.trees.len() == 1;
        for tree in 0..self.trees.len() {
            let requests = self.setups(tree);
            let mut servers = self.servers(tree);
            let said = servers.ask(requests);
            servers::all(&*servers, said.into_iter().map(servers::done), NEEDS_ALL)?;
            if is_alone {
                self.meet()?;
            }
            let mut servers = self.servers(tree);
            let told = servers.epochs();
            let epochs = servers::all(&*servers, told, NEEDS_ALL)?;
            if epochs.iter().any(|epoch| epoch.at != Point::default()) {
                return Err(Error::new(
                    ErrorKind::StoreMismatch,
                    "the share servers hold blocks of another volume: give the new one other folders",
                ));
            }
        }
        if !is_alone {
            self.meet()?;
        }
        self.done = Some(vec![Point::default(); self.trees.len()]);
        Ok(())
    }

    /// Lets servers make links to each other.
    fn meet(&mut self) -> Result<(), Error> {
        let mut servers = self.servers(0);
        let met = vec![Request::Meet; servers.count()];
        let met = servers.ask(met);
        let lacking = "Servers deal to each other: each needs all others in its list of peers, at an address where it reaches them";
        servers::all(&*servers, met.into_iter().map(servers::done), lacking).map(drop)
    }

    /// Whether the client's directory is older than the servers are in a tree.
    fn is_old(&mut self, tree: usize, told: &[Told], seen_max: Point) -> Result<bool, Error> {
        let (parties, shape) = (self.params.parties, self.trees[tree].tree);
        is_old(&*self.store, parties, shape, told, seen_max)
    }

    /// Asks the servers once how far they are. Accesses with which enough of them are through are
    /// not made again.
    pub(super) fn look(&mut self) -> Result<Vec<Point>, Error> {
        if let Some(done) = &self.done {
            return Ok(done.clone());
        }
        let (kept, seen_max) =
            (self.known.point_after(self.kept), self.known.point_after(self.seen_max));
        let (mut all_told, mut is_any_old) = (Vec::new(), false);
        for tree in 0..self.trees.len() {
            let told = self.tell(tree)?;
            servers::check_not_fenced(&*self.store, &told)?;
            is_any_old |= self.is_old(tree, &told, seen_max)?;
            all_told.push(told);
        }
        if is_any_old {
            return Err(Error::new(
                ErrorKind::StateRolledBack,
                "the share servers are further than the client's directory knows: it is not the latest. Use the latest directory",
            ));
        }
        let parties = self.params.parties;
        let (mut all_done, mut all_parts) = (Vec::new(), Vec::new());
        for (shape, told) in self.trees.iter().zip(all_told) {
            let Standing { done, parts } = Standing::of(parties, shape.tree, told, kept);
            parts.check_enough(&*self.store, parties)?;
            all_done.push(done);
            all_parts.push(parts);
        }
        self.parts = all_parts;
        self.done = Some(all_done.clone());
        Ok(all_done)
    }

    /// Asks servers how far they are in each tree, and nothing else: a client that only probes for
    /// a rollback may change nothing. `known` is how many accesses the directory tells of.
    pub(super) fn is_behind_servers(&mut self, known: u64) -> Result<RollbackProbe, Error> {
        let (colluding, mut is_any_old) = (self.params.parties.colluding(), false);
        let seen_max = self.known.point_after(known);
        for tree in 0..self.trees.len() {
            let mut servers = self.servers(tree);
            let told = servers.epochs();
            servers::check_not_fenced(&*servers, &told)?;
            if told.iter().filter(|told| told.is_ok()).count() <= colluding {
                let advice = "Most servers have to say how far they are";
                return Err(servers::failure(&*servers, servers::parted(told).1, advice));
            }
            self.seen_max = self.seen_max.max(known);
            is_any_old |= self.is_old(tree, &told, seen_max)?;
        }
        Ok(if is_any_old { RollbackProbe::Seen } else { RollbackProbe::NotYet })
    }
}

/// The advice when a server has not done what a new array needs.
const NEEDS_ALL: &str = "A new volume needs all of its servers, with nothing on them";
