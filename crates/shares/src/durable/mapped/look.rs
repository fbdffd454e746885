//! How far servers are in each of the trees, and what they are told to be.

use oblivio_core::{Error, ErrorKind};

use super::super::servers::{self, ask};
use super::super::standing::{self, Standing, Told, is_old};
use super::array::MappedArray;
use crate::message::{Point, Request};
use crate::servers::ShareServers;

impl MappedArray {
    /// What each server is told to be in a tree.
    fn setups(&mut self, tree: usize) -> Result<Vec<Request>, Error> {
        let (numbers, shape) = (self.params.parties.numbers(), self.params.trees()[tree]);
        let servers = self.servers(tree);
        let keys: Vec<_> = (0..servers.count()).map(|server| servers.key(server)).collect();
        Ok(numbers.map(|number| Request::Setup(shape.setup(number, keys.clone()))).collect())
    }

    /// Makes each server one of this array. They have nothing yet.
    pub(in crate::durable) fn set_up(&mut self) -> Result<(), Error> {
        let advice = "A new volume needs all of its servers, with nothing on them";
        for tree in 0..self.trees.len() {
            let requests = self.setups(tree)?;
            let mut servers = self.servers(tree);
            let said = ask(&mut servers, requests);
            servers::all(&servers, said.into_iter().map(servers::done), advice)?;
            let told = servers::epochs(&mut servers);
            let epochs = servers::all(&servers, told, advice)?;
            if epochs.iter().any(|epoch| epoch.at != Point::default()) {
                return Err(Error::new(
                    ErrorKind::StoreMismatch,
                    "the share servers hold blocks of another volume: give the new one other folders",
                ));
            }
        }
        let mut servers = self.servers(0);
        let met = vec![Request::Meet; servers.count()];
        let met = ask(&mut servers, met);
        let lacking = "Servers deal to each other: each needs all others in its list of peers, at an address where it reaches them";
        servers::all(&servers, met.into_iter().map(servers::done), lacking)?;
        self.done = Some(vec![Point::default(); self.trees.len()]);
        Ok(())
    }

    /// How far all servers are in a tree.
    pub(super) fn epochs(&mut self, tree: usize) -> Result<Vec<Told>, Error> {
        Ok(servers::epochs(&mut self.servers(tree)))
    }

    /// The same, and those that are something are told what they should be.
    fn tell(&mut self, tree: usize) -> Result<Vec<Told>, Error> {
        let (setups, parties) = (self.setups(tree)?, self.params.parties);
        standing::tell(&mut self.servers(tree), parties, setups)
    }

    /// Refuses servers that are named in another order than that in which the array was made.
    pub(super) fn check_order(&mut self) -> Result<(), Error> {
        self.tell(0).map(drop)
    }

    /// Whether the client's directory is older than the servers are in any of the trees. They are asked as `ask` does, and what they say is answered.
    pub(super) fn all_told(
        &mut self,
        seen_max: Point,
        ask: fn(&mut Self, usize) -> Result<Vec<Told>, Error>,
    ) -> Result<(Vec<Vec<Told>>, bool), Error> {
        let (mut all, mut is_any_old) = (Vec::new(), false);
        for tree in 0..self.trees.len() {
            let (told, shape) = (ask(self, tree)?, self.levels.level(tree).tree);
            let parties = self.params.parties;
            let servers = self.servers(tree);
            servers::check_not_fenced(&servers, &told)?;
            is_any_old |= is_old(&servers, parties, shape, &told, seen_max)?;
            all.push(told);
        }
        Ok((all, is_any_old))
    }

    /// Asks the servers once how far they are. Accesses with which all of them are through are not made again.
    pub(super) fn look(&mut self) -> Result<Vec<Point>, Error> {
        if let Some(done) = &self.done {
            return Ok(done.clone());
        }
        let parties = self.params.parties;
        let (kept, seen_max) =
            (self.known.point_after(self.kept), self.known.point_after(self.seen_max));
        let (told, is_old) = self.all_told(seen_max, Self::tell)?;
        if is_old {
            return Err(Error::new(
                ErrorKind::StateRolledBack,
                "the share servers are further than the client's directory knows: it is not the latest. Use the latest directory",
            ));
        }
        let mut done = Vec::new();
        for (tree, told) in told.into_iter().enumerate() {
            let shape = self.levels.level(tree).tree;
            let standing = Standing::of(parties, shape, told, kept);
            standing.parts.check_enough(&self.servers(tree), parties)?;
            done.push(standing.done);
        }
        self.done = Some(done.clone());
        Ok(done)
    }
}
