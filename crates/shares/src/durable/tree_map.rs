//! The position map in trees. The client keeps only the entries of the last tree's blocks, and
//! which data blocks have contents.

use oblivio_core::durable::SparseAddressSet;
use oblivio_core::seal::BlockName;
use oblivio_core::{Error, Leaf};
use zeroize::Zeroizing;

use super::client_state::{AccessStep, Draw};
use super::impossible;
use super::sections::Entry;
use crate::field::Gf256;
use crate::map_trees::Levels;
use crate::map_trees::map_block::Mapped;
use crate::map_trees::mapped_tree::MappedTree;
use crate::sharing::Parties;

/// Bytes of a client's entry for a block of the last tree: the leaf plus one, and the number of the
/// last write.
const ENTRY_BYTES: usize = 2 * size_of::<u64>();

/// Bytes of client memory for the client's part of the map.
pub(super) fn map_bytes(levels: &Levels) -> u64 {
    let blocks = levels.level(0).blocks;
    levels.client_entries() as u64 * ENTRY_BYTES as u64 + blocks.div_ceil(8)
}

/// Bits of the address in a block's name. Higher bits hold the number of the tree.
const ADDRESS_BITS: u32 = 56;

/// The name under which a block or a dummy of a tree is sealed.
pub(super) fn name(tree: usize, address: Option<u64>, number: u64) -> BlockName {
    let address = address.unwrap_or((1 << ADDRESS_BITS) - 1);
    BlockName { address: (tree as u64) << ADDRESS_BITS | address, number }
}

/// Whether `named` is the name of a dummy of the tree.
pub(super) fn is_dummy_of(tree: usize, named: BlockName) -> bool {
    name(tree, None, named.number) == named
}

/// The address of the block of tree `tree` with this name; `None` for a dummy or a block of another
/// tree.
pub(super) fn address_in(tree: usize, named: BlockName) -> Option<u64> {
    let address = named.address & ((1 << ADDRESS_BITS) - 1);
    (name(tree, Some(address), named.number) == named).then_some(address)
}

/// The client's part of a position map in trees. Secret; wiped when dropped.
pub(super) struct TreeMap {
    pub(super) levels: Levels,
    /// The client of each tree, starting with the data tree.
    pub(super) trees: Vec<MappedTree<Gf256>>,
    /// For each block of the last tree, its leaf plus one (0 if it has no position), and the number
    /// of its last write.
    entries: Zeroizing<Vec<Entry>>,
    /// The set of data blocks that have contents.
    pub(super) live: SparseAddressSet,
}

impl TreeMap {
    /// Creates the map of an array in which no block has been written.
    pub(super) fn new(parties: Parties, levels: &Levels) -> Result<Self, Error> {
        let trees = levels.iter().map(|level| MappedTree::new(parties, *level));
        let trees = trees.collect::<Result<_, _>>().map_err(|it| impossible(it.to_string()))?;
        Ok(Self {
            levels: levels.clone(),
            trees,
            entries: Zeroizing::new(vec![[0; 2]; levels.client_entries()]),
            live: SparseAddressSet::new(levels.level(0).blocks),
        })
    }

    /// For each tree, the block that an access to data block `address` fetches: see
    /// [`ClientState::addresses`](super::client_state::ClientState::addresses).
    pub(super) fn addresses(&self, address: u64) -> Zeroizing<Vec<[u64; 2]>> {
        let mut addresses = Zeroizing::new(Vec::with_capacity(self.levels.count()));
        addresses.push([address, 0]);
        for (tree, level) in self.levels.iter().take(self.levels.count() - 1).enumerate() {
            let ([before, _], entries) = (addresses[tree], level.map.entries() as u64);
            addresses.push([before / entries, before % entries]);
        }
        addresses
    }

    /// The client's entry for the block of the last tree that an access to data block `address`
    /// fetches. `None` if that block of the last tree has no position.
    pub(super) fn mapped(&self, address: u64) -> Option<Mapped> {
        let [in_last, _] = *self.addresses(address).last()?;
        self.of_last(in_last)
    }

    /// The client's entry for a block of the last tree.
    pub(super) fn of_last(&self, block: u64) -> Option<Mapped> {
        let [numbered, write] = *self.entries.get(block as usize)?;
        numbered.checked_sub(1).map(|leaf| Mapped { leaf: Leaf(leaf), write })
    }

    /// Records that an access wrote a block or a dummy to the root of each tree.
    pub(super) fn write(&mut self, step: &AccessStep, number: u64, is_written: bool) {
        if let (Some(address), Some(Draw { to, .. })) = (step.address, step.draws.last()) {
            let in_last = self.addresses(address).last().map_or(0, |[block, _]| *block);
            self.entries[in_last as usize] = [to.0 + 1, number];
            if is_written {
                self.live.insert(address);
            }
        }
    }

    /// The number of blocks of the last tree.
    pub(super) fn entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The entry of a block, for a saved state.
    pub(super) fn entry(&self, block: u64) -> Entry {
        self.entries[block as usize]
    }

    /// Restores an entry. Returns whether the block and the leaf exist.
    #[must_use]
    pub(super) fn set_entry(&mut self, block: u64, entry: Entry) -> bool {
        let leaves = self.levels.iter().last().map_or(0, |last| last.tree.leaves());
        match self.entries.get_mut(block as usize) {
            Some(known) if entry[0] <= leaves => {
                *known = entry;
                true
            }
            _ => false,
        }
    }
}
