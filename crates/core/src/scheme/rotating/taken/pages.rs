//! The pages with the marks of taken slots: their places in storage, and the schedule by which
//! evictions sweep (read and rewrite) them.
//!
//! ```text
//! level j of the tree:   b0 b1 … b(W-1) │ bW …          buckets in the order of evictions
//! level j - f of pages:       page 0    │  page 1 …     W = 2^f buckets a page, a bit a slot
//! ```
//!
//! Here `f` is the first level of the data tree that is in storage.
//!
//! The pages form a tree themselves, with one level for each level of the data tree in storage,
//! starting with one page. Every eviction sweeps the next few pages; a round of evictions sweeps
//! each page once. A page has two places, for odd and for even rounds, and a round takes at least
//! `W` evictions. So the previous version stays intact for `W` more evictions, like everything that
//! a state needs (`places`).
//!
//! Places and schedule follow from the number of the eviction, and are public.

use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use super::{TakenSlot, slots_of};
use crate::geometry::{BucketId, Geometry, Leaf, last_eviction_of_bucket};
use crate::pieces::{LevelShape, TreeShape};
use crate::seal::SEAL_BYTES;

/// Usual number of evictions in a round of sweeps. It bounds the number of accesses whose marks
/// wait on the client for the next sweep. A round is shorter if there are fewer pages. It is longer
/// if `W` is larger, or if an eviction would sweep more than [`SWEPT_PAGES_MAX`] pages.
const ROUND_EVICTIONS: u64 = 1 << 16;

/// Maximum number of pages that an eviction sweeps.
const SWEPT_PAGES_MAX: u64 = 1 << 12;

/// The pages of one tree.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// The first level of the data tree that is in storage.
    first_level: u8,
    leaf_level: u8,
    /// Slots per bucket of the data tree, for each level of pages.
    slots: Vec<usize>,
    /// Number of evictions in a round, which sweeps every page once.
    round: u64,
}

/// A version of a page, written by a sweep. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct PageVersion {
    /// The name of the page in the tree of pages.
    pub(in super::super) page: BucketId,
    /// The eviction that swept the page.
    pub(in super::super) eviction: u64,
    /// The index of the page among all pages that the eviction swept.
    pub(in super::super) number: u16,
    /// Whether the eviction was ever made. The first versions in a new tree have not been written.
    pub(in super::super) is_written: bool,
    pub(in super::super) place: BucketId,
}

impl Pages {
    pub(super) fn new(geometry: &Geometry, first_level: u8) -> Self {
        let leaf_level = geometry.leaf_level();
        let levels = usize::from(first_level)..=usize::from(leaf_level);
        let pages: u64 = (2 << (leaf_level - first_level)) - 1;
        let round = pages.next_power_of_two().min(ROUND_EVICTIONS);
        let round = round.max(pages / SWEPT_PAGES_MAX + 1).max(1 << first_level);
        Self { first_level, leaf_level, slots: levels.map(|j| geometry.slots(j)).collect(), round }
    }

    /// The shape of the tree of pages.
    pub(super) fn shape(&self) -> TreeShape {
        let pages = (0..self.slots.len() as u8)
            .map(|level| LevelShape::of_heads(2 << level, self.sealed_bytes(level)));
        TreeShape::new(core::iter::once(LevelShape::of_heads(0, 0)).chain(pages).collect())
    }

    /// Number of evictions in a round, which sweeps every page once.
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    /// Number of buckets that a page covers: `W`.
    pub(super) fn buckets(&self) -> u64 {
        1 << self.first_level
    }

    /// Number of pages.
    fn count(&self) -> u64 {
        (1 << self.slots.len()) - 1
    }

    /// Bytes of a page on `level` of the tree of pages.
    pub(super) fn page_bytes(&self, level: u8) -> usize {
        (self.slots[usize::from(level)] << self.first_level).div_ceil(8)
    }

    pub(super) fn sealed_bytes(&self, level: u8) -> usize {
        SEAL_BYTES + self.page_bytes(level)
    }

    /// The buckets of the data tree that a page covers, in order.
    pub(super) fn buckets_of(&self, page: BucketId) -> impl Iterator<Item = BucketId> + use<> {
        let level = self.first_level + page.level();
        let first = page.index() << self.first_level;
        (first..first + self.buckets()).map(move |index| BucketId::new(level, index))
    }

    /// The page that covers a bucket.
    pub(super) fn page_of(&self, bucket: BucketId) -> BucketId {
        BucketId::new(bucket.level() - self.first_level, bucket.index() >> self.first_level)
    }

    /// The pages that cover buckets of `level` and no bucket before `index`.
    pub(super) fn about_buckets_from(
        &self,
        level: u8,
        index: u64,
    ) -> impl Iterator<Item = BucketId> + use<> {
        let of_pages = level - self.first_level;
        (index.div_ceil(self.buckets())..1 << of_pages)
            .map(move |page| BucketId::new(of_pages, page))
    }

    /// All slots of the buckets of a page.
    pub(super) fn slots_of(&self, page: BucketId) -> RangeInclusive<TakenSlot> {
        let level = self.first_level + page.level();
        let first = page.index() << self.first_level;
        let last = first + self.buckets() - 1;
        slots_of(BucketId::new(level, first), BucketId::new(level, last))
    }

    /// The slots of a bucket whose bits are set in its page.
    pub(super) fn taken_of(
        &self,
        bits: &[u8],
        bucket: BucketId,
    ) -> impl Iterator<Item = TakenSlot> {
        let slots = self.bits_of(bucket).enumerate();
        let taken = slots.filter(|(_, bit)| bits[bit / 8] >> (bit % 8) & 1 == 1);
        taken.map(move |(slot, _)| TakenSlot { bucket, slot: slot as u16 })
    }

    /// Sets the bit of a slot in the page of its bucket.
    pub(super) fn set(&self, bits: &mut [u8], TakenSlot { bucket, slot }: TakenSlot) {
        let bit = self.bits_of(bucket).start + usize::from(slot);
        bits[bit / 8] |= 1 << (bit % 8);
    }

    /// The bits of a bucket's slots in its page.
    fn bits_of(&self, bucket: BucketId) -> Range<usize> {
        let slots = self.slots[usize::from(bucket.level() - self.first_level)];
        let i = (bucket.index() & (self.buckets() - 1)) as usize;
        i * slots..(i + 1) * slots
    }

    /// The pages that `eviction` sweeps, in the versions that it writes.
    pub(super) fn swept_by(&self, eviction: u64) -> impl Iterator<Item = PageVersion> + '_ {
        let each = self.count().div_ceil(self.round);
        let first = (eviction % self.round) * each;
        (first..(first + each).min(self.count()))
            .map(move |number| self.version(BucketId(number), eviction))
    }

    /// The latest version of a page that the evictions before `g` have written.
    pub(super) fn latest(&self, page: BucketId, g: u64) -> PageVersion {
        let turn = page.0 / self.count().div_ceil(self.round);
        let ago = ((g - 1) % self.round + self.round - turn) % self.round;
        self.version(page, (g - 1).saturating_sub(ago))
    }

    fn version(&self, page: BucketId, eviction: u64) -> PageVersion {
        let each = self.count().div_ceil(self.round);
        let odd = (eviction / self.round) & 1;
        PageVersion {
            page,
            eviction,
            number: (page.0 % each) as u16,
            is_written: eviction >= 1 << self.leaf_level,
            place: BucketId::new(page.level() + 1, 2 * page.index() + odd),
        }
    }

    /// The pages that cover the buckets that `eviction` writes. They are the same for `W`
    /// consecutive evictions, of which the first is a multiple of `W`.
    pub(super) fn written_with(&self, eviction: u64) -> impl Iterator<Item = BucketId> + '_ {
        let turn = eviction >> self.first_level;
        (0..self.slots.len() as u8)
            .map(move |level| BucketId::new(level, turn & ((1 << level) - 1)))
    }

    /// Whether `eviction` is the first of `W` evictions with the same pages: see
    /// [`Self::written_with`].
    pub(super) fn begins_pages(&self, eviction: u64) -> bool {
        eviction & (self.buckets() - 1) == 0
    }

    /// Whether a version of a page is current for a bucket when eviction `g` begins: it was
    /// written, and the bucket was not rewritten after that sweep.
    pub(super) fn is_about(&self, version: &PageVersion, bucket: BucketId, g: u64) -> bool {
        let written = last_eviction_of_bucket(g, Leaf(bucket.index()), bucket.level());
        version.is_written && written <= version.eviction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn trees() -> impl Iterator<Item = (Pages, u64)> {
        [(0, 0), (1, 0), (3, 0), (3, 1), (4, 2), (5, 5), (6, 3)]
            .map(|(leaf_level, first_level)| {
                let geometry = Geometry::uniform(leaf_level, 3).unwrap();
                (Pages::new(&geometry, first_level), 1 << leaf_level)
            })
            .into_iter()
    }

    #[test]
    fn pages_of_a_state_survive_w_evictions_like_its_buckets() {
        for (pages, first) in trees() {
            let mut contents = HashMap::new();
            for g in first..first + 150 {
                for state in g.saturating_sub(pages.buckets()).max(first)..=g {
                    for page in (0..pages.count()).map(BucketId) {
                        let version = pages.latest(page, state);
                        assert!(version.eviction < state);
                        if version.is_written {
                            let there = contents.get(&version.place).copied();
                            assert_eq!(there, Some((page, version.eviction)), "{pages:?}");
                        }
                    }
                }
                for version in pages.swept_by(g) {
                    assert!(version.place.index() < 2 << version.page.level());
                    contents.insert(version.place, (version.page, g));
                }
            }
        }
    }

    #[test]
    fn a_round_sweeps_each_page_once() {
        for (pages, _) in trees() {
            let swept = (0..pages.round).flat_map(|e| pages.swept_by(e).map(|v| v.page.0));
            let mut swept: Vec<_> = swept.collect();
            swept.sort_unstable();
            assert_eq!(swept, (0..pages.count()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_bucket_has_a_page_that_is_loaded_when_the_bucket_is_written() {
        for (pages, first) in trees() {
            for eviction in first..first + 100 {
                let at_hand: Vec<_> = pages.written_with(eviction).collect();
                for level in pages.first_level..=pages.leaf_level {
                    let bucket = BucketId::on_path(Leaf(eviction & (first - 1)), level);
                    let page = pages.page_of(bucket);
                    assert!(at_hand.contains(&page));
                    assert!(pages.buckets_of(page).any(|other| other == bucket));
                    assert_eq!(pages.bits_of(bucket).len(), 3);
                    assert!(pages.bits_of(bucket).end <= 8 * pages.page_bytes(page.level()));
                }
            }
        }
    }

    #[test]
    fn a_large_tree_keeps_client_and_sweeps_small() {
        let geometry = Geometry::uniform(27, 5).unwrap();
        let pages = Pages::new(&geometry, 10);
        assert_eq!((pages.round, pages.swept_by(5).count()), (1 << 16, 4));
        let largest = Pages::new(&Geometry::uniform(40, 5).unwrap(), 0);
        assert!(largest.swept_by(0).count() as u64 <= SWEPT_PAGES_MAX);
    }
}
