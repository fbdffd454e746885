//! The client's state: the number of accesses, and the positions of blocks. Only planned accesses
//! and forgotten ranges change it; answers of servers do not.

use std::ops::Range;

use oblivio_core::durable::SparseAddressSet;
use oblivio_core::durable::section::foreign_section;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::seal::BlockName;
use oblivio_core::{Error, Leaf};
use zeroize::{Zeroize, Zeroizing};

use super::client_map::ClientMap;
use super::impossible;
use super::params::S3OramParams;
use super::sections::Entry;
use super::tree_map::TreeMap;
use crate::client::{Client, ClientError};
use crate::field::Gf256;
use crate::map_trees::map_block::Mapped;
use crate::message::TreePoint;

/// The encoded form of a dummy access, in place of an address.
pub(super) const DUMMY_ADDRESS: u64 = u64::MAX;

/// Bytes of the salt of a step.
pub(super) const SALT_BYTES: usize = 32;

/// A planned access, with its random choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccessStep {
    /// The number of accesses before this one. `None` if the position map is on the client, because
    /// plans then contain no number.
    pub(super) number: Option<u64>,
    /// The address of the block in the data tree; `None` for a dummy access. Secret.
    pub(super) address: Option<u64>,
    /// The random choices for each tree, starting with the data tree.
    pub(super) draws: Vec<Draw>,
    /// The salt from which the seed of the access's shares is derived, together with the shared
    /// data. So a repeated access has the same shares, and another access in its place has others.
    /// Secret.
    pub(super) salt: [u8; SALT_BYTES],
}

impl Zeroize for AccessStep {
    fn zeroize(&mut self) {
        let Self { number, address, draws, salt } = self;
        number.zeroize();
        address.zeroize();
        draws.zeroize();
        salt.zeroize();
    }
}

/// The random choices for one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Draw {
    /// The leaf whose path is read if the client does not know the block's leaf. If the map is on
    /// the client, this is always the leaf of the path to read: the block's current leaf, or a
    /// random one for a block without a position.
    pub(super) shown: Leaf,
    /// The leaf that the access maps the block to. Secret until the next access to the block.
    pub(super) to: Leaf,
}

impl Zeroize for Draw {
    fn zeroize(&mut self) {
        let Self { shown: Leaf(shown), to: Leaf(to) } = self;
        [shown, to].into_iter().for_each(Zeroize::zeroize);
    }
}

/// How the client finds the positions of blocks. Secret; wiped when dropped.
pub(super) enum Positions {
    /// The client keeps the position of each block.
    OnClient(ClientMap),
    /// The client keeps only the leaves of the last tree's blocks. Map blocks hold the leaves of
    /// all other blocks, and metadata shows which block is in a slot.
    InTrees(TreeMap),
}

/// The client's state. Secret; wiped when dropped.
pub(super) struct ClientState {
    accesses: u64,
    evict_period: u64,
    pub(super) positions: Positions,
}

impl ClientState {
    /// Creates the state of an empty array.
    pub(super) fn new(params: &S3OramParams) -> Result<Self, Error> {
        let positions = match params.levels() {
            None => Positions::OnClient(ClientMap::new(params)?),
            Some(levels) => Positions::InTrees(TreeMap::new(params.parties, levels)?),
        };
        Ok(Self { accesses: 0, evict_period: params.evict_period(), positions })
    }

    /// The number of accesses. Public.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    pub(super) fn set_accesses(&mut self, accesses: u64) {
        self.accesses = accesses;
        let at = self.at();
        if let Positions::OnClient(map) = &mut self.positions {
            map.client.set_progress(at);
        }
    }

    /// The point that the servers reach with `accesses` accesses.
    pub(super) fn point_after(&self, accesses: u64) -> TreePoint {
        let written = (accesses % self.evict_period) as usize;
        TreePoint { evictions: accesses / self.evict_period, written }
    }

    /// The point that the servers have reached when no access is in progress.
    pub(super) fn at(&self) -> TreePoint {
        self.point_after(self.accesses)
    }

    /// The point between access `access` and the eviction directly after it. `None` if another
    /// access comes next.
    pub(super) fn full_after(&self, access: u64) -> Option<TreePoint> {
        let TreePoint { evictions, written } = self.point_after(access);
        let written = written + 1;
        (written as u64 == self.evict_period).then_some(TreePoint { evictions, written })
    }

    /// Returns an empty list of moves, to which the accesses of a new plan are added.
    pub(super) fn moves(&self) -> Moves<'_> {
        let map = match &self.positions {
            Positions::OnClient(map) => Some(map),
            Positions::InTrees(_) => None,
        };
        Moves { map, moves: Zeroizing::new(Vec::with_capacity(WINDOW_ACCESSES_MAX)) }
    }

    /// Checks that a plan continues this state. If plans contain numbers, each access must have the
    /// next number. If the client knows the leaf of a block, its access must show this leaf.
    ///
    /// # Errors
    /// [`InvalidRequest`](oblivio_core::ErrorKind::InvalidRequest) for a plan of another state.
    pub(super) fn check(&self, steps: &[AccessStep]) -> Result<(), Error> {
        let mut moves = self.moves();
        for (step, number) in steps.iter().zip(self.accesses..) {
            let leaf = step.address.and_then(|address| moves.leaf(address));
            let is_shown = leaf.is_none_or(|leaf| step.draws[0].shown == leaf);
            if !is_shown || step.number.is_some_and(|planned| planned != number) {
                return Err(foreign_section());
            }
            moves.add(step);
        }
        Ok(())
    }

    /// Records that a block or a dummy was written to the roots.
    pub(super) fn write(&mut self, step: &AccessStep, is_written: bool) {
        match &mut self.positions {
            Positions::OnClient(map) => map.write(step, self.accesses, is_written),
            Positions::InTrees(map) => map.write(step, self.accesses, is_written),
        }
        self.accesses += 1;
    }

    /// Plans the eviction of the next path, if the client knows the blocks on it.
    ///
    /// # Errors
    /// [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) if a bucket overflows.
    pub(super) fn plan_eviction(&mut self) -> Result<(), Error> {
        match &mut self.positions {
            Positions::OnClient(map) => map.plan_eviction(),
            Positions::InTrees(_) => Ok(()),
        }
    }

    /// Records that the next path of every tree was evicted.
    pub(super) fn evict(&mut self) -> Result<(), Error> {
        match &mut self.positions {
            Positions::OnClient(map) => map.evict(),
            Positions::InTrees(_) => Ok(()),
        }
    }

    /// Replays an access and, if one is due, the eviction after it.
    pub(super) fn access(&mut self, step: &AccessStep, is_written: bool) -> Result<(), Error> {
        self.check(std::slice::from_ref(step))?;
        let full = self.full_after(self.accesses);
        self.write(step, is_written);
        full.map_or(Ok(()), |_| self.evict())
    }

    /// Drops the contents of the blocks of a range.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        match &mut self.positions {
            Positions::OnClient(map) => map.forget(range),
            Positions::InTrees(map) => map.live.remove_all(range),
        }
    }

    /// The S³ORAM client of tree `tree`.
    pub(super) fn client(&mut self, tree: usize) -> &mut Client<Gf256> {
        match &mut self.positions {
            Positions::OnClient(map) => &mut map.client,
            Positions::InTrees(map) => &mut map.trees[tree].client,
        }
    }

    /// The name under which a block or a dummy of a tree is sealed.
    pub(super) fn name(&self, tree: usize, address: Option<u64>, number: u64) -> BlockName {
        match &self.positions {
            Positions::OnClient(_) => {
                BlockName { address: address.unwrap_or(DUMMY_ADDRESS), number }
            }
            Positions::InTrees(_) => super::tree_map::name(tree, address, number),
        }
    }

    /// For each tree, two numbers: the block that an access to `address` fetches from the tree, and
    /// the index of an entry in that block. In a map block, this is the entry of the block that the
    /// access fetches from the next lower tree. For the data tree, the index is 0.
    pub(super) fn addresses(&self, address: u64) -> Zeroizing<Vec<[u64; 2]>> {
        match &self.positions {
            Positions::OnClient(_) => Zeroizing::new(vec![[address, 0]]),
            Positions::InTrees(map) => map.addresses(address),
        }
    }

    /// The client's entry for one block of the last tree: the first block that an access to
    /// `address` fetches. `None` if that block has no position.
    pub(super) fn mapped(&self, address: u64) -> Option<Mapped> {
        match &self.positions {
            Positions::OnClient(map) => map.mapped(address),
            Positions::InTrees(map) => map.mapped(address),
        }
    }

    /// The client's entries for all blocks of the last tree that have a position.
    pub(super) fn all_mapped(&self) -> impl Iterator<Item = (u64, Mapped)> {
        (0..self.entries()).filter_map(|block| {
            let mapped = match &self.positions {
                Positions::OnClient(map) => map.mapped(block),
                Positions::InTrees(map) => map.of_last(block),
            };
            Some((block, mapped?))
        })
    }

    /// Whether a block has contents.
    pub(super) fn is_live(&self, address: u64) -> bool {
        match &self.positions {
            Positions::OnClient(map) => map.is_live(address),
            Positions::InTrees(map) => map.live.contains(address),
        }
    }

    /// The set of blocks that have contents.
    pub(super) fn live(&self) -> SparseAddressSet {
        match &self.positions {
            Positions::OnClient(map) => map.live(),
            Positions::InTrees(map) => map.live.clone(),
        }
    }

    pub(super) fn is_any_live(&self) -> bool {
        match &self.positions {
            Positions::OnClient(map) => map.is_any_live(),
            Positions::InTrees(map) => !map.live.is_empty(),
        }
    }

    /// The number of entries that the client keeps: one for each block of the last tree.
    pub(super) fn entries(&self) -> u64 {
        match &self.positions {
            Positions::OnClient(map) => map.blocks(),
            Positions::InTrees(map) => map.entries(),
        }
    }

    /// The map entry of a block, for a saved state.
    pub(super) fn entry(&self, block: u64) -> Entry {
        match &self.positions {
            Positions::OnClient(map) => map.entry(block),
            Positions::InTrees(map) => map.entry(block),
        }
    }

    /// Restores the map entry of a block. Returns whether the block and the position exist.
    #[must_use]
    pub(super) fn set_entry(&mut self, block: u64, entry: Entry) -> bool {
        match &mut self.positions {
            Positions::OnClient(map) => map.set_entry(block, entry),
            Positions::InTrees(map) => map.set_entry(block, entry),
        }
    }
}

/// The leaves to which the accesses planned so far map blocks, in order. Secret; wiped when
/// dropped.
pub(super) struct Moves<'k> {
    /// The position map; `None` if it is in trees, because plans then do not depend on positions.
    map: Option<&'k ClientMap>,
    moves: Zeroizing<Vec<[u64; 2]>>,
}

impl Moves<'_> {
    pub(super) fn add(&mut self, step: &AccessStep) {
        if self.map.is_some() {
            self.moves.extend(step.address.map(|address| [address, step.draws[0].to.0]));
        }
    }

    /// The leaf of a block after these moves. `None` if the block has no position, or if the map is
    /// in trees.
    pub(super) fn leaf(&self, address: u64) -> Option<Leaf> {
        let last = self.moves.iter().rev().find(|[moved, _]| *moved == address);
        last.map(|[_, leaf]| Leaf(*leaf)).or_else(|| self.map?.leaf(address))
    }
}

/// Converts the client's error for an overflow of a bucket.
pub(super) fn overflow(error: ClientError) -> Error {
    impossible(format!(
        "{error}: copy the volume's data to a volume with more slots (`oblivio rescue` reads it)"
    ))
}
