//! Reads the remaining data of a damaged volume. Slots may hold several copies of a block, and the
//! position map tells which copy is the latest.

use oblivio_core::durable::{Salvage, SparseAddressSet};
use oblivio_core::{BucketId, Error, Leaf};
use zeroize::Zeroizing;

use super::array::ShareArray;
use super::client_state::Positions;
use super::opener::{LiveBlock, Opener};
use super::quorum_point::{PointFinder, QuorumPoint, RootRule};
use super::salvage_reader::{SalvageReader, SlotContents};
use super::servers::TreeServers;
use crate::map_trees::map_block::{MapFormat, Mapped};
use crate::message::TreePoint;

/// Stands for the last write of a block that has no position according to the map. No write has
/// this number.
const NO_POSITION_WRITE: u64 = u64::MAX;

/// The writes that a tree must hold, according to the entries in the previous tree.
struct ExpectedWrites {
    /// For each block, the number of its last write. Copies with lower numbers are outdated.
    /// Secret.
    writes: Zeroizing<Vec<u64>>,
    /// The blocks without a known entry, because their map block was not found or is older than
    /// expected.
    unknown: SparseAddressSet,
}

impl ExpectedWrites {
    fn unknown(blocks: u64) -> Self {
        let mut unknown = SparseAddressSet::new(blocks);
        unknown.insert_all(0..blocks);
        Self { writes: Zeroizing::new(vec![0; blocks as usize]), unknown }
    }

    /// Records the entries of map block `address`, which was found.
    fn record_map_block(&mut self, map: MapFormat, address: u64, block: &[u8]) {
        let entries = map.entries() as u64;
        let blocks = address * entries..((address + 1) * entries).min(self.writes.len() as u64);
        for (entry, block_of) in blocks.enumerate() {
            let Ok(mapped) = map.get(block, entry) else { continue };
            self.writes[block_of as usize] =
                mapped.map_or(NO_POSITION_WRITE, |mapped| mapped.write);
            self.unknown.remove_all(block_of..block_of + 1);
        }
    }

    /// Whether the map has a newer write of the block than `write`. Removing a block's position
    /// counts as a newer write.
    fn has_newer(&self, address: u64, write: u64) -> bool {
        !self.unknown.contains(address) && self.writes[address as usize] > write
    }

    /// Whether a copy of a block with write number `write` counts: it is not older than the map's
    /// entry, and it is newer than each copy found so far. Records a copy that counts.
    fn accept(&mut self, address: u64, write: u64) -> bool {
        let least = &mut self.writes[address as usize];
        let counts = write >= *least;
        if counts {
            *least = write + 1;
        }
        counts
    }
}

/// The blocks that a salvage has found so far.
#[derive(Clone)]
struct SalvageProgress {
    found: SparseAddressSet,
    /// The blocks that were found, but of which a newer version may exist.
    doubtful: SparseAddressSet,
}

impl ShareArray {
    /// Passes each found block to `each`, unless the map names a newer write. The servers may be
    /// ahead of the client's saved state. A block without a known entry, because its map block was
    /// rolled back or lost, is reported as possibly old.
    pub(super) fn salvage_all(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        // In a wrong order, the servers' shares would appear damaged.
        self.check_order()?;
        let blocks = self.params.blocks;
        let mut salvaged = SalvageProgress {
            found: SparseAddressSet::new(blocks),
            doubtful: SparseAddressSet::new(blocks),
        };
        let (points, expected) = (self.points(0), self.expected_of_last());
        if let Some(of_data) = points.last(&mut self.servers(0), None, damaged) {
            let mut read = 0;
            let mut next = || {
                read += 1;
                progress(read);
            };
            let (is_whole, named) = self.salvage_at(
                &of_data,
                (expected, None),
                &mut salvaged,
                each,
                damaged,
                &mut next,
            )?;
            // Read all trees at the earlier point for blocks that were not found: the map of the
            // later point would reject their older copies.
            if !is_whole && let Some(earlier) = points.before(&of_data, &mut self.servers(0)) {
                let named = match self.state.positions {
                    // A copy counts only if it is newer than one already found.
                    Positions::OnClient(_) => (named, None),
                    Positions::InTrees(_) => (self.expected_of_last(), Some(&named)),
                };
                let damaged = &mut |_: &Error| ();
                let nothing = &mut || ();
                self.salvage_at(&earlier, named, &mut salvaged, each, damaged, nothing)?;
            }
        }
        let SalvageProgress { found, doubtful } = salvaged;
        Ok(Salvage::new(blocks, found, doubtful, self.state.live()))
    }

    /// Salvages the data of one point, for the blocks not found so far. `later` holds the map's
    /// entries at a later point, which may name newer writes. Returns whether no slot was damaged,
    /// and the map's entries for the data.
    fn salvage_at(
        &mut self,
        of_data: &QuorumPoint,
        (mut expected, later): (ExpectedWrites, Option<&ExpectedWrites>),
        salvaged: &mut SalvageProgress,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        next: &mut dyn FnMut(),
    ) -> Result<(bool, ExpectedWrites), Error> {
        let last = self.trees.len() - 1;
        let live = self.state.live();
        let before = salvaged.clone();
        let is_on_client = !self.params.is_in_trees();
        let mut is_whole = true;
        for tree in (1..=last).rev() {
            let Some(level) = self.params.levels().map(|levels| *levels.level(tree - 1)) else {
                break;
            };
            let (map, mut named) = (level.map, ExpectedWrites::unknown(level.blocks));
            if let Some(agreed) = self.map_quorum_point(tree, of_data.at)? {
                let take = &mut |LiveBlock { address, mapped, block }: LiveBlock| {
                    if expected.accept(address, mapped.write) && !expected.unknown.contains(address)
                    {
                        named.record_map_block(map, address, &block);
                    }
                };
                if !self.read_all((tree, &agreed), take, damaged, next)? {
                    // An eviction neither loses nor creates blocks.
                    let of_tree = self.points(tree);
                    let earlier = of_tree.before(&agreed, &mut self.servers(tree));
                    let earlier = earlier.filter(|_| agreed.at.written == 0);
                    is_whole &= match earlier {
                        Some(earlier) => {
                            self.read_all((tree, &earlier), take, &mut |_| (), &mut || ())?
                        }
                        None => false,
                    };
                }
            }
            expected = named;
        }
        let take = &mut |LiveBlock { address, mapped, block }: LiveBlock| {
            if !live.contains(address) {
                return;
            }
            let is_unknown = expected.unknown.contains(address)
                || later.is_some_and(|later| later.has_newer(address, mapped.write));
            let is_better = is_on_client
                || !before.found.contains(address)
                || before.doubtful.contains(address) && !is_unknown;
            if is_better && expected.accept(address, mapped.write) {
                salvaged.found.insert(address);
                match is_unknown {
                    true => salvaged.doubtful.insert(address),
                    false => salvaged.doubtful.remove_all(address..address + 1),
                }
                each(address, &block);
            }
        };
        is_whole &= self.read_all((0, of_data), take, damaged, next)?;
        Ok((is_whole, expected))
    }

    /// The entries that the client keeps for the last tree. The servers may hold newer writes.
    fn expected_of_last(&self) -> ExpectedWrites {
        let mut writes = Zeroizing::new(vec![0; self.state.entries() as usize]);
        for (block, mapped) in self.state.all_mapped() {
            writes[block as usize] = mapped.write;
        }
        ExpectedWrites { unknown: SparseAddressSet::new(writes.len() as u64), writes }
    }

    /// Returns a finder of the points that enough servers have in a tree.
    fn points(&self, tree: usize) -> PointFinder {
        let (parties, tree) = (self.params.parties, self.trees[tree].tree);
        let roots = if self.params.is_in_trees() { RootRule::Marked } else { RootRule::AppendOnly };
        PointFinder { parties, tree, roots, durable: self.state.point_after(self.durable_accesses) }
    }

    /// The last point that enough servers have in a map tree. If this point is one access ahead of
    /// the data, the point `data_at` is preferred if enough servers have it in this tree: the data
    /// lacks the access in progress, and the later map would make the older copies of the accessed
    /// block seem outdated.
    fn map_quorum_point(
        &mut self,
        tree: usize,
        data_at: TreePoint,
    ) -> Result<Option<QuorumPoint>, Error> {
        let points = self.points(tree);
        let servers = &mut self.servers(tree);
        // Problems with servers were already reported for the data.
        let last = points.last(servers, None, &mut |_| ());
        let is_further = |at: TreePoint| {
            at == TreePoint { written: data_at.written + 1, ..data_at }
                && at.written <= points.tree.accesses()
        };
        Ok(match last {
            Some(QuorumPoint { at, .. }) if is_further(at) => {
                points.last(servers, Some(data_at), &mut |_| ())
            }
            last => last,
        })
    }

    /// Passes the live block in each slot of a tree to `take`. Returns whether no slot was damaged.
    fn read_all(
        &mut self,
        (number, agreed): (usize, &QuorumPoint),
        take: &mut dyn FnMut(LiveBlock),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(),
    ) -> Result<bool, Error> {
        let Self { params, store, trees, sealer, labels, state, .. } = self;
        let positions = &state.positions;
        let (tree, slot_bytes) = (trees[number].tree, trees[number].fetched_bytes());
        let reader = SalvageReader { parties: params.parties, tree, slot_bytes, agreed };
        let decode = |bucket: BucketId, slot: &[u8]| match positions {
            Positions::OnClient(_) => match sealer.open(slot) {
                Some(opened) => {
                    let (name, block) = (opened.name(), Zeroizing::new(opened.bytes().to_vec()));
                    // A copy counts wherever it is.
                    let mapped = Mapped { leaf: Leaf(0), write: name.number };
                    SlotContents::Block(LiveBlock { address: name.address, mapped, block })
                }
                None if slot.iter().all(|byte| *byte == 0) => SlotContents::Empty,
                None => SlotContents::Damaged,
            },
            Positions::InTrees(map) => {
                let opener = Opener { levels: &map.levels, sealer, labels };
                match opener.block_in(number, bucket, slot) {
                    Ok(Some(found)) => SlotContents::Block(found),
                    Ok(None) => SlotContents::Empty,
                    Err(_) => SlotContents::Damaged,
                }
            }
        };
        let servers = &mut TreeServers { servers: &mut **store, tree: number as u8 };
        Ok(reader.read(servers, &decode, take, damaged, progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy that is older than the map's entry, or not newer than a copy found before, does not
    /// count; a newer copy does. No copy of a block without a position counts.
    #[test]
    fn only_the_first_of_the_latest_copies_counts() {
        let writes = Zeroizing::new(vec![5, NO_POSITION_WRITE]);
        let mut expected = ExpectedWrites { unknown: SparseAddressSet::new(2), writes };
        let taken = [4, 5, 5, 6, 5].map(|write| expected.accept(0, write));
        assert_eq!(taken, [false, true, false, true, false]);
        assert!(!expected.accept(1, 9), "the block has no position");
    }
}
