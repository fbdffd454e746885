//! Sets up servers, and asks for their progress in each tree.

use oblivio_core::scheme::RollbackProbe;
use oblivio_core::{Error, ErrorKind};

use super::array::ShareArray;
use super::server_progress::{self, EpochAnswer, ServerProgress, is_old};
use super::servers::{self, TreeServers};
use crate::message::{Request, TreePoint};

impl ShareArray {
    /// The servers, as receivers of requests about tree `tree`.
    pub(super) fn servers(&mut self, tree: usize) -> TreeServers<'_> {
        TreeServers { servers: &mut *self.store, tree: tree as u8 }
    }

    /// The setup request for each server, for one tree.
    fn setups(&self, tree: usize) -> Vec<Request> {
        let servers = &*self.store;
        let keys: Vec<_> = (0..servers.count()).map(|server| servers.key(server)).collect();
        let numbers = self.params.parties.numbers();
        let setups = numbers.map(|number| self.trees[tree].setup(number, keys.clone()));
        setups.map(Request::Setup).collect()
    }

    /// Asks for the progress of all servers in a tree, and checks the setup of servers that have
    /// one (see [`server_progress::verify_setups`]).
    fn verify_setups(&mut self, tree: usize) -> Result<Vec<EpochAnswer>, Error> {
        let (setups, parties) = (self.setups(tree), self.params.parties);
        server_progress::verify_setups(&mut self.servers(tree), parties, setups)
    }

    /// Fails if the servers are named in another order than when the array was created, or belong
    /// to another volume.
    pub(super) fn check_order(&mut self) -> Result<(), Error> {
        self.verify_setups(0).map(drop)
    }

    /// Sets up each server for this array, and connects the servers with each other. Fails if a
    /// server holds blocks or cannot be reached.
    pub(super) fn set_up(&mut self) -> Result<(), Error> {
        let is_alone = self.trees.len() == 1;
        for tree in 0..self.trees.len() {
            let requests = self.setups(tree);
            let mut servers = self.servers(tree);
            let results = servers.ask(requests);
            servers::require_all(
                &*servers,
                results.into_iter().map(servers::expect_done),
                NEEDS_ALL,
            )?;
            if is_alone {
                self.connect_servers()?;
            }
            let mut servers = self.servers(tree);
            let reported = servers.epochs();
            let epochs = servers::require_all(&*servers, reported, NEEDS_ALL)?;
            if epochs.iter().any(|epoch| epoch.at != TreePoint::default()) {
                return Err(Error::new(
                    ErrorKind::StoreMismatch,
                    "the share servers hold blocks of another volume: use other folders for the \
                     new volume",
                ));
            }
        }
        if !is_alone {
            self.connect_servers()?;
        }
        self.done = Some(vec![TreePoint::default(); self.trees.len()]);
        Ok(())
    }

    /// Connects the servers with each other.
    fn connect_servers(&mut self) -> Result<(), Error> {
        let mut servers = self.servers(0);
        let connected = vec![Request::Connect; servers.count()];
        let connected = servers.ask(connected);
        let lacking = "Servers deal to each other: list all other servers as peers of each \
                       server, at an address that it can reach";
        servers::require_all(&*servers, connected.into_iter().map(servers::expect_done), lacking)
            .map(drop)
    }

    /// Whether the client's directory is older than the servers' state in a tree.
    fn is_old(
        &mut self,
        tree: usize,
        reported: &[EpochAnswer],
        seen_max: TreePoint,
    ) -> Result<bool, Error> {
        let (parties, shape) = (self.params.parties, self.trees[tree].tree);
        is_old(&*self.store, parties, shape, reported, seen_max)
    }

    /// Asks the servers for their progress in each tree, and returns the points that they have
    /// finished. Asks only once: later calls return the same points. The client then does not
    /// repeat accesses that enough servers have finished.
    ///
    /// # Errors
    /// `StateRolledBack` if the client's directory is older than the servers' state. Also if too
    /// few servers can participate, or the servers belong to another volume.
    pub(super) fn query_progress(&mut self) -> Result<Vec<TreePoint>, Error> {
        if let Some(done) = &self.done {
            return Ok(done.clone());
        }
        let durable = self.state.point_after(self.durable_accesses);
        let seen_max = self.state.point_after(self.seen_max);
        let (mut all_reported, mut is_any_old) = (Vec::new(), false);
        for tree in 0..self.trees.len() {
            let reported = self.verify_setups(tree)?;
            servers::check_not_fenced(&*self.store, &reported)?;
            is_any_old |= self.is_old(tree, &reported, seen_max)?;
            all_reported.push(reported);
        }
        if is_any_old {
            return Err(Error::new(
                ErrorKind::StateRolledBack,
                "the share servers are ahead of the client's directory: use the latest directory",
            ));
        }
        let parties = self.params.parties;
        let (mut all_done, mut all_participants) = (Vec::new(), Vec::new());
        for (shape, reported) in self.trees.iter().zip(all_reported) {
            let ServerProgress { done, participants } =
                ServerProgress::from_claims(parties, shape.tree, reported, durable);
            participants.check_enough(&*self.store, parties)?;
            all_done.push(done);
            all_participants.push(participants);
        }
        self.participants = all_participants;
        self.done = Some(all_done.clone());
        Ok(all_done)
    }

    /// Whether the client is behind the servers. Only asks for their progress in each tree, because
    /// a client that probes for a rollback must not change anything. `known` is the maximum number
    /// of accesses that the servers can have seen, according to the client's directory.
    ///
    /// # Errors
    /// If at most *t* servers answer, or missing servers would decide.
    pub(super) fn is_behind_servers(&mut self, known: u64) -> Result<RollbackProbe, Error> {
        let (colluding, mut is_any_old) = (self.params.parties.colluding(), false);
        let seen_max = self.state.point_after(known);
        for tree in 0..self.trees.len() {
            let mut servers = self.servers(tree);
            let reported = servers.epochs();
            servers::check_not_fenced(&*servers, &reported)?;
            if reported.iter().filter(|reported| reported.is_ok()).count() <= colluding {
                let advice = "Most servers must answer to detect a rollback: bring them back";
                return Err(servers::failure_error(
                    &*servers,
                    servers::split_failures(reported).1,
                    advice,
                ));
            }
            self.seen_max = self.seen_max.max(known);
            is_any_old |= self.is_old(tree, &reported, seen_max)?;
        }
        Ok(if is_any_old { RollbackProbe::Seen } else { RollbackProbe::NotYet })
    }
}

/// The advice if a server fails during the setup of an array.
const NEEDS_ALL: &str = "A new volume needs all of its servers, and they must be empty";
