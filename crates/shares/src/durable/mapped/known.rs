//! What the client knows: the entries of the last tree, and which blocks have contents.

use std::ops::Range;
use zeroize::Zeroize;

use oblivio_core::Leaf;
use oblivio_core::durable::Bits;
use zeroize::Zeroizing;

use super::super::sections::Entry;
use crate::map_trees::Levels;
use crate::map_trees::map_block::Mapped;
use crate::message::Point;

/// An access, as it was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::durable) struct Step {
    /// How many accesses come before it.
    pub(super) number: u64,
    /// Secret.
    pub(super) address: Option<u64>,
    /// Of each tree, the data first.
    pub(super) draws: Vec<Draw>,
    /// From what its shares follow, beside what is shared. Secret.
    pub(super) salt: [u8; SALT_BYTES],
}

impl Zeroize for Step {
    fn zeroize(&mut self) {
        let Self { number, address, draws, salt } = self;
        number.zeroize();
        address.zeroize();
        draws.zeroize();
        salt.zeroize();
    }
}

/// What is drawn for one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::durable) struct Draw {
    /// Whose path is shown if the block is nowhere, or there is none.
    pub(super) instead: Leaf,
    /// To whose path the block goes. Secret, until it is accessed again.
    pub(super) to: Leaf,
}

impl Zeroize for Draw {
    fn zeroize(&mut self) {
        let Self { instead: Leaf(instead), to: Leaf(to) } = self;
        [instead, to].into_iter().for_each(Zeroize::zeroize);
    }
}

/// Bytes of the salt of a step.
pub(super) const SALT_BYTES: usize = 32;

/// Bytes that are kept of a block of the last tree: a leaf and one, and a number.
pub(super) const ENTRY_BYTES: usize = 2 * size_of::<u64>();

/// Bytes of client memory.
pub(in crate::durable) fn map_bytes(levels: &Levels) -> u64 {
    let blocks = levels.level(0).blocks;
    levels.client_entries() as u64 * ENTRY_BYTES as u64 + blocks.div_ceil(8)
}

/// What the client knows. Secret; wiped when dropped.
pub(in crate::durable) struct Known {
    accesses: u64,
    evict_period: u64,
    /// Of each block of the last tree, the leaf that it is mapped to and one, or zero; and the number of its last write.
    entries: Zeroizing<Vec<[u64; 2]>>,
    leaves_of_last: u64,
    /// Which blocks of the data have contents.
    pub(super) live: Bits,
    /// Of each tree, how many of its blocks one block of the next tells of; of the last none.
    entries_of_block: Vec<u64>,
}

impl Known {
    /// Of an array that is empty.
    pub(in crate::durable) fn new(levels: &Levels) -> Self {
        let data = levels.level(0);
        let last = levels.level(levels.count() - 1);
        let told = levels.iter().take(levels.count() - 1);
        Self {
            accesses: 0,
            evict_period: data.tree.accesses() as u64,
            entries: Zeroizing::new(vec![[0; 2]; levels.client_entries()]),
            leaves_of_last: last.tree.leaves(),
            live: Bits::new(data.blocks),
            entries_of_block: told.map(|level| level.map.entries() as u64).collect(),
        }
    }

    /// How many accesses there were. Public.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    pub(super) fn go_to(&mut self, accesses: u64) {
        self.accesses = accesses;
    }

    /// How far servers are after so many accesses.
    pub(super) fn point_after(&self, accesses: u64) -> Point {
        let written = (accesses % self.evict_period) as usize;
        Point { evictions: accesses / self.evict_period, written }
    }

    /// Before the eviction that comes after this access, if one does.
    pub(super) fn full_after(&self, access: u64) -> Option<Point> {
        let Point { evictions, written } = self.point_after(access);
        let written = written + 1;
        (written as u64 == self.evict_period).then_some(Point { evictions, written })
    }

    /// Of each tree, the block that an access to this one is for, and which of its entries tells of the one in the tree before: of the data none.
    pub(super) fn addresses(&self, address: u64) -> Zeroizing<Vec<[u64; 2]>> {
        let mut addresses = Zeroizing::new(Vec::with_capacity(self.entries_of_block.len() + 1));
        addresses.push([address, 0]);
        for (tree, entries) in self.entries_of_block.iter().enumerate() {
            let [before, _] = addresses[tree];
            addresses.push([before / entries, before % entries]);
        }
        addresses
    }

    /// What is known of the block of the last tree that tells of this one; none if that is nowhere.
    pub(super) fn mapped(&self, address: u64) -> Option<Mapped> {
        let [in_last, _] = *self.addresses(address).last()?;
        self.entry(in_last)
    }

    /// The same of each block of the last tree.
    pub(super) fn all_mapped(&self) -> impl Iterator<Item = (u64, Mapped)> {
        (0..self.entries.len() as u64).filter_map(|block| Some((block, self.entry(block)?)))
    }

    fn entry(&self, block: u64) -> Option<Mapped> {
        let [numbered, write] = *self.entries.get(block as usize)?;
        numbered.checked_sub(1).map(|leaf| Mapped { leaf: Leaf(leaf), write })
    }

    /// An access, with the eviction that may come after it, was made.
    pub(super) fn access(&mut self, step: &Step, is_written: bool) {
        if let (Some(address), Some(Draw { to, .. })) = (step.address, step.draws.last()) {
            let in_last = self.addresses(address).last().map_or(0, |[block, _]| *block);
            self.entries[in_last as usize] = [to.0 + 1, self.accesses];
            if is_written {
                self.live.insert(address);
            }
        }
        self.accesses += 1;
    }

    /// The blocks of a range have no contents any more. Where they are, they stay.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        self.live.remove_all(range);
    }

    /// What is kept of blocks of the last tree in a state.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Puts that back. Answers whether there is such a block, and such a leaf.
    #[must_use]
    pub(super) fn set_entry(&mut self, block: u64, entry: Entry) -> bool {
        match self.entries.get_mut(block as usize) {
            Some(known) if entry[0] <= self.leaves_of_last => {
                *known = entry;
                true
            }
            _ => false,
        }
    }
}
