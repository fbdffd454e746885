//! All slots of all servers: whether their shares fit each other and hold what they have to, and what is left where they do not.

use oblivio_core::durable::{Bits, Salvage};
use oblivio_core::seal::{BlockSealer, OpenedBlock};
use oblivio_core::{BucketId, Error, ErrorKind};
use zeroize::Zeroizing;

use super::access::ShareArray;
use super::agreed::{Points, Roots};
use super::fetch::{Fetched, fetch};
use super::left::{Held, Left};
use super::parts::BRING_BACK;
use super::servers;
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

/// How many slots of a bucket may hold something at a point. The others are zeros, or nothing that counts. Public.
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

impl ShareArray {
    /// Which block is in which slot: bucket, slot and address, in order.
    fn places(&self) -> Zeroizing<Vec<[u64; 3]>> {
        let mut places = Zeroizing::new(Vec::with_capacity(self.known.blocks() as usize));
        for address in 0..self.known.blocks() {
            if let Some(position) = self.known.client.positions().get(address as usize) {
                let bucket = BucketId::on_path(position.leaf, position.level);
                places.push([bucket.0, position.slot as u64, address]);
            }
        }
        places.sort_unstable();
        places
    }

    /// Checks all slots. Returns how many blocks have contents.
    pub(super) fn check_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        self.look()?;
        if self.trust.is_any_answer_wrong() {
            return Err(self.corrupt("share servers have answered wrong"));
        }
        let (tree, at, parties) = (self.params.tree, self.known.client.at(), self.params.parties);
        self.catch_up(at)?;
        if !self.parts.are_all_current() {
            let servers = &mut *self.store;
            return Err(self
                .parts
                .error(servers, &format!("All servers are checked: {BRING_BACK}")));
        }
        let places = self.places();
        let all = vec![true; parties.servers()];
        let slot_bytes = self.params.slot_bytes();
        let at_once = Slots::at_once(slot_bytes);
        let mut found = 0;
        for (read, bucket) in (1..).zip(buckets_with_slots(tree, at)) {
            for run in Slots::runs(bucket, slots(tree, at, bucket), at_once) {
                let fetched = fetch(self.servers(), &all, at, run, slot_bytes);
                if !fetched.failed.is_empty() {
                    return Err(servers::failure(self.servers(), fetched.failed, BRING_BACK));
                }
                for place in 0..run.count {
                    let is_here =
                        |it: &[u64; 3]| it[..2].cmp(&[bucket.0, (run.first + place) as u64]);
                    let address = places.binary_search_by(is_here).ok().map(|at| places[at][2]);
                    self.check_slot(&fetched, (bucket, place), address)?;
                    found += usize::from(address.is_some());
                }
            }
            progress(read);
        }
        match places.len() - found {
            0 => Ok((0..self.known.blocks()).filter(|it| self.known.is_live(*it)).count() as u64),
            lost => Err(Error::new(ErrorKind::Corrupt, format!("{lost} blocks are lost"))),
        }
    }

    /// Checks a slot that was fetched: all shares of it fit each other, and if a block has to be there, it is.
    fn check_slot(
        &mut self,
        fetched: &Fetched,
        (bucket, place): (BucketId, usize),
        address: Option<u64>,
    ) -> Result<(), Error> {
        let (parties, all) = (self.params.parties, 0..self.params.slot_bytes());
        let decoded = fetched.decoded(parties, place).ok();
        let Some(decoded) = decoded.filter(|decoded| decoded.liars.is_empty()) else {
            let wrong = fetched.wrong(parties, place, &all, |it| is_sealed(&self.sealer, it));
            let wrong = wrong.unwrap_or_default();
            self.found_wrong(&wrong)?;
            return Err(match wrong.first() {
                Some(wrong) => does_not_fit(&self.servers().name(usize::from(*wrong) - 1)),
                None => self.corrupt(DO_NOT_FIT),
            });
        };
        let opened = address.map(|_| self.sealer.open(&decoded.block));
        if opened.is_some_and(|it| it.map(|it| it.name()) != self.known.name(address)) {
            let do_shares_fit = true;
            let what = "a block is not what was written";
            return Err(self.suspicious(what, vec![bucket], do_shares_fit));
        }
        Ok(())
    }

    /// Hands over each block that is found, wherever it is: slots bring the names of their blocks. Servers may have gone on since this state.
    pub(super) fn salvage_all(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        // What they hold would be taken for damaged.
        self.check_order()?;
        let (tree, blocks) = (self.params.tree, self.known.blocks());
        let live = self.known.live();
        let mut found = Bits::new(blocks);
        // Of each block, the number of the best copy so far, plus one.
        let mut best = Zeroizing::new(vec![0; blocks as usize]);
        let (parties, slot_bytes) = (self.params.parties, self.params.slot_bytes());
        let kept = self.known.point_after(self.kept);
        let points = Points { parties, tree, roots: Roots::Grow, kept };
        let Some(agreed) = points.last(self.servers(), None, damaged) else {
            return Ok(Salvage::new(blocks, found, Bits::new(blocks), live));
        };
        let left = |agreed| Left { parties, tree, slot_bytes, agreed };
        let Self { store, sealer, known, .. } = self;
        let held = |_: BucketId, slot: &[u8]| match sealer.open(slot) {
            Some(opened) => Held::Block(opened),
            None if slot.iter().all(|byte| *byte == 0) => Held::Nothing,
            None => Held::Damaged,
        };
        let take = &mut |opened: OpenedBlock| {
            let name = opened.name();
            let counts = live.contains(name.address)
                && name.number >= known.number(name.address)
                && name.number >= best[name.address as usize];
            if counts {
                best[name.address as usize] = name.number + 1;
                found.insert(name.address);
                each(name.address, opened.bytes());
            }
        };
        let mut read = 0;
        let progress = &mut || {
            read += 1;
            progress(read);
        };
        let servers = &mut **store;
        let is_whole = left(&agreed).read(servers, &held, take, damaged, progress);
        // What is older than the client knows, or than what was found, does not count.
        if !is_whole && let Some(earlier) = points.before(&agreed, servers) {
            left(&earlier).read(servers, &held, take, &mut |_| (), &mut || ());
        }
        Ok(Salvage::new(blocks, found, Bits::new(blocks), live))
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
