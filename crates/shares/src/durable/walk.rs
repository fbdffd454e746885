//! All slots of all servers: whether their shares fit each other and hold the blocks that the
//! client and blocks of the map tell of.

use oblivio_core::seal::BlockSealer;
use oblivio_core::{BucketId, Error, ErrorKind};
use zeroize::Zeroizing;

use super::access::SAYS_NO_LEAF;
use super::array::ShareArray;
use super::fetch::{Fetched, fetch};
use super::known::Positions;
use super::opener::{Found, Opener};
use super::parts::BRING_BACK;
use super::servers;
use crate::map_trees::map_block::Mapped;
use crate::message::{Point, Slots};
use crate::tree::Tree;

/// What is wrong where some of the shares are those of another block.
pub(super) const DO_NOT_FIT: &str = "shares of a block do not fit each other";

/// That a share of this server is.
pub(super) fn does_not_fit(server: &str) -> Error {
    let message = format!(
        "a share of {server} does not fit those of the others: make its shares anew all the same (`oblivio shares repair`)"
    );
    Error::new(ErrorKind::Corrupt, message)
}

/// How many slots of a bucket may hold something at a point. The others are zeros, or nothing that
/// counts. Public.
pub(super) fn slots(tree: Tree, at: Point, bucket: BucketId) -> usize {
    if bucket == BucketId::ROOT {
        return at.written;
    }
    if tree.is_filled(bucket, at.evictions) { tree.slots() } else { 0 }
}

/// The buckets of which some slots may hold something at a point, the root first.
pub(super) fn buckets_with_slots(tree: Tree, at: Point) -> impl Iterator<Item = BucketId> {
    tree.buckets().filter(move |bucket| slots(tree, at, *bucket) > 0)
}

/// Blocks, in any order: how many, and a sum over all of them of what follows from a key, the block
/// and its entry. Servers do not know the key, so two sums are the same if the blocks are, and else
/// by chance alone. It takes no memory for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    blocks: u64,
    sum: u128,
}

/// The addresses of blocks by bucket and slot, in order, if the client knows them. Secret.
type Places = Zeroizing<Vec<[u64; 3]>>;

impl ShareArray {
    /// Checks all slots of all trees: that shares fit each other, and that each tree holds the
    /// blocks of which the tree before it tells, each once, as they were written last, and no
    /// others. Returns how many blocks have contents.
    pub(super) fn check_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        self.look()?;
        if self.trust.is_any_answer_wrong() {
            return Err(self.corrupt(0, "share servers have answered wrong"));
        }
        let at = self.known.at();
        self.catch_up(at)?;
        if let Some(parts) = self.parts.iter().find(|parts| !parts.are_all_current()) {
            let advice = format!("All servers are checked: {BRING_BACK}");
            return Err(parts.error(&*self.store, &advice));
        }
        let last = self.trees.len() - 1;
        let mut expected = Sum::default();
        for (block, mapped) in self.known.all_mapped() {
            self.add(&mut expected, last, block, mapped);
        }
        let places = match &self.known.positions {
            Positions::OnClient(map) => map.places(),
            Positions::InTrees(_) => Places::default(),
        };
        let mut read = 0;
        let mut next = || {
            read += 1;
            progress(read);
        };
        for tree in (0..=last).rev() {
            let [found, told] = self.check_tree(tree, at, &places, &mut next)?;
            if found != expected {
                let what = "share servers do not hold the blocks that were written last";
                return Err(self.corrupt(tree, what));
            }
            expected = told;
        }
        Ok((0..self.params.blocks).filter(|it| self.known.is_live(*it)).count() as u64)
    }

    fn add(&self, to: &mut Sum, tree: usize, address: u64, Mapped { leaf, write }: Mapped) {
        let entry = Zeroizing::new([tree as u64, address, leaf.0, write].map(u64::to_le_bytes));
        let seed = self.sealer.seed(&[b"entry".as_slice(), &entry.concat()].concat());
        let (low, _) =
            seed.split_first_chunk().map_or(([0; 16], &[][..]), |(it, rest)| (*it, rest));
        to.blocks += 1;
        to.sum = to.sum.wrapping_add(u128::from_le_bytes(low));
    }

    /// What a tree holds, and what its blocks tell of the next.
    fn check_tree(
        &mut self,
        tree: usize,
        at: Point,
        places: &Places,
        next: &mut dyn FnMut(),
    ) -> Result<[Sum; 2], Error> {
        let (shape, slot_bytes) = (self.trees[tree].tree, self.trees[tree].fetched_bytes());
        let parties = self.params.parties;
        let all = vec![true; parties.servers()];
        let [mut found, mut told] = [Sum::default(); 2];
        for bucket in buckets_with_slots(shape, at) {
            let in_bucket = slots(shape, at, bucket);
            for run in Slots::runs(bucket, in_bucket, Slots::at_once(slot_bytes)) {
                let mut servers = self.servers(tree);
                let fetched = fetch(&mut servers, &all, at, run, slot_bytes);
                if !fetched.failed.is_empty() {
                    return Err(servers::failure(&*servers, fetched.failed, BRING_BACK));
                }
                for place in 0..run.count {
                    let decoded = fetched.decoded(parties, place).ok();
                    let Some(decoded) = decoded.filter(|decoded| decoded.liars.is_empty()) else {
                        return Err(self.not_fitting(tree, &fetched, place));
                    };
                    let slot = Zeroizing::new(decoded.block);
                    let at = (bucket, run.first + place);
                    let found_in = self.block_in(tree, at, &slot, places);
                    let do_shares_fit = true;
                    let found_in = found_in.map_err(|wrong| {
                        self.suspicious(tree, &wrong, vec![bucket], do_shares_fit)
                    })?;
                    let Some(Found { address, mapped, block }) = found_in else { continue };
                    self.add(&mut found, tree, address, mapped);
                    self.add_told(&mut told, tree, address, &block)?;
                }
            }
            next();
        }
        Ok([found, told])
    }

    /// The block in a slot; `None` if there is none that counts.
    ///
    /// # Errors
    /// What is wrong with it.
    fn block_in(
        &self,
        tree: usize,
        (bucket, slot): (BucketId, usize),
        held: &[u8],
        places: &Places,
    ) -> Result<Option<Found>, String> {
        let map = match &self.known.positions {
            Positions::OnClient(map) => map,
            Positions::InTrees(map) => {
                let Self { sealer, labels, .. } = self;
                let opener = Opener { levels: &map.levels, sealer, labels };
                return opener.block_in(tree, bucket, held);
            }
        };
        let here = [bucket.0, slot as u64];
        let place = places.binary_search_by(|it| it[..2].cmp(&here)).ok();
        let known = place.map(|place| places[place][2]);
        let Some((address, mapped)) = known.and_then(|it| Some((it, map.mapped(it)?))) else {
            return Ok(None);
        };
        let name = self.known.name(tree, Some(address), mapped.write);
        match self.sealer.open(held) {
            Some(opened) if opened.name() == name => {
                let block = Zeroizing::new(opened.bytes().to_vec());
                Ok(Some(Found { address, mapped, block }))
            }
            _ => Err("a block is not what was written".into()),
        }
    }

    /// What is wrong where shares of a slot do not fit each other. It is said whose, if the seal of
    /// its block tells: what slots say before that is not sealed.
    fn not_fitting(&mut self, tree: usize, fetched: &Fetched, place: usize) -> Error {
        let sealed = self.trees[tree].metadata_bytes..self.trees[tree].slot_bytes;
        let is_sound = |held: &[u8]| is_sealed(&self.sealer, held);
        let wrong =
            fetched.wrong(self.params.parties, place, &sealed, is_sound).unwrap_or_default();
        if let Err(error) = self.found_wrong(&wrong) {
            return error;
        }
        match wrong.first() {
            Some(wrong) => does_not_fit(&self.store.name(usize::from(*wrong) - 1)),
            None => self.corrupt(tree, DO_NOT_FIT),
        }
    }

    /// What a block of the map tells of blocks of the tree after it.
    fn add_told(&self, to: &mut Sum, tree: usize, address: u64, block: &[u8]) -> Result<(), Error> {
        let (Positions::InTrees(map), Some(below)) = (&self.known.positions, tree.checked_sub(1))
        else {
            return Ok(());
        };
        let format = map.levels.level(below).map;
        for entry in 0..format.entries() {
            let mapped = format.get(block, entry);
            let mapped = mapped.map_err(|_| self.corrupt(tree, SAYS_NO_LEAF))?;
            if let Some(mapped) = mapped {
                self.add(to, below, address * format.entries() as u64 + entry as u64, mapped);
            }
        }
        Ok(())
    }
}

/// Whether it is what some slot holds: a block, or zeros.
pub(super) fn is_sealed(sealer: &BlockSealer, held: &[u8]) -> bool {
    held.iter().all(|byte| *byte == 0) || sealer.open(held).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Preset;

    /// What follows from counters is what evictions, one after the other, do.
    #[test]
    fn the_buckets_that_hold_something_follow_from_the_count_of_evictions() {
        for height in 1..=5 {
            let tree = Tree::new(height, Preset::SMALL).unwrap();
            let mut holds = std::collections::HashSet::new();
            for evictions in 0..100 {
                let at = Point { evictions, written: 3 };
                for bucket in tree.buckets() {
                    let expected = match bucket.level() {
                        0 => 3,
                        _ if holds.contains(&bucket) => tree.slots(),
                        _ => 0,
                    };
                    assert_eq!(slots(tree, at, bucket), expected, "{bucket} after {evictions}");
                }
                for triplet in tree.triplets(evictions) {
                    holds.remove(&triplet.source);
                    holds.insert(triplet.destination);
                    holds.insert(triplet.sibling);
                }
            }
        }
    }
}
