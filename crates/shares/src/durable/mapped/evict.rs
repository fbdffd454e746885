//! The eviction of one of the trees: what it moves follows from what slots of two paths say.

use oblivio_core::{Error, Leaf};

use super::super::coins::eviction_turn;
use super::super::evict::{Evicts, Failed};
use super::super::in_tree::InTree;
use super::super::known::overflow;
use super::super::parts::Parts;
use super::super::servers::{self, ask_some};
use super::super::trust::Trust;
use super::array::MappedArray;
use crate::answers::Answers;
use crate::client::ClientError;
use crate::message::{Evict, Point, Request};
use crate::servers::ShareServers;
use crate::sharing::Parties;
use crate::tree::Tree;

/// One of the trees.
struct OfMapped<'a> {
    array: &'a mut MappedArray,
    tree: usize,
    parts: Parts,
}

impl MappedArray {
    /// Evicts the next path of a tree, which is full.
    pub(super) fn evict_on_servers(&mut self, tree: usize, full: Point) -> Result<(), Error> {
        let parts = Parts::all(self.params.parties.servers());
        let of_tree: &mut dyn Evicts = &mut OfMapped { array: self, tree, parts };
        of_tree.evict(full)
    }
}

impl OfMapped<'_> {
    /// What slots of a path say, on all servers; or who has not told.
    fn said(&mut self, at: Point, leaf: Leaf) -> Result<Result<Answers<u8>, Failed>, Error> {
        let level = *self.array.levels.level(self.tree);
        let bytes = level.tree.path_slots() * level.metadata_elements;
        let parties = self.array.params.parties;
        let asked = vec![Some(Request::Metadata { at, leaf }); parties.servers()];
        let said = ask_some(&mut self.servers(), asked).into_iter().flatten();
        let (shares, failed) = servers::parted(said.map(|said| servers::share(said, bytes)));
        if !failed.is_empty() {
            return Ok(Err(failed));
        }
        Ok(Ok(Answers { numbers: parties.numbers().collect(), shares }))
    }
}

impl Evicts for OfMapped<'_> {
    fn parties(&self) -> Parties {
        self.array.params.parties
    }

    fn tree(&self) -> Tree {
        self.array.levels.level(self.tree).tree
    }

    fn servers(&mut self) -> InTree<'_> {
        self.array.servers(self.tree)
    }

    fn parts(&mut self) -> &mut Parts {
        &mut self.parts
    }

    fn trust(&mut self) -> (&dyn ShareServers, &mut Trust) {
        let MappedArray { store, trust, .. } = &mut *self.array;
        (&**store, trust)
    }

    fn has_met(&mut self) -> &mut bool {
        &mut self.array.has_met
    }

    /// All have had each access: none lacks anything.
    fn catch_up(&mut self, _: Point) -> Result<(), Error> {
        Ok(())
    }

    fn share(&mut self, at: Point, attempt: u64) -> Result<Result<Vec<Evict<u8>>, Failed>, Error> {
        let turn = eviction_turn(self.array.known.accesses());
        self.array.trees[self.tree].go_to(at, turn);
        let [evicted, beside] = self.array.trees[self.tree].evicted();
        let path = match self.said(at, evicted)? {
            Ok(said) => said,
            Err(failed) => return Ok(Err(failed)),
        };
        let beside = match self.said(at, beside)? {
            Ok(said) => said,
            Err(failed) => return Ok(Err(failed)),
        };
        let next = match self.array.trees[self.tree].next_eviction([&path, &beside]) {
            Ok(next) => next,
            Err(error @ ClientError::Overflow(_)) => return Err(overflow(error)),
            Err(error) => return Err(self.array.corrupt(&error.to_string())),
        };
        // What is moved follows from what servers say, and they may say other things to a copy of
        // this client.
        let MappedArray { trees, coins, sealer, .. } = &mut *self.array;
        let coins = coins.of_attempt(sealer, (self.tree, at, attempt), &next)?;
        Ok(Ok(trees[self.tree].eviction_shares(&next, attempt, coins)))
    }
}
