//! Marks of taken slots. They tell an eviction which copies are stale if the position map is in the
//! tree, where it cannot be consulted for every block of a path.
//!
//! An access takes its block out of a slot and writes nothing: the copy stays until its bucket is
//! rewritten. So the slot is marked, with one bit. The tree has too many slots for the client. So
//! the client keeps only the latest *marks*. The older marks are in storage, in sealed `pages`.
//!
//! - An access adds a mark.
//! - Evictions come in runs of `W` (the number of spare places on a level, see `places`). The first
//!   eviction of a run reads the pages about the buckets that the run will write, one page per
//!   level. It adds their bits to the marks. Writing a bucket removes its marks.
//! - Each eviction *sweeps* some pages: reads them, adds the marks of their buckets, and writes
//!   them. The added marks leave the client.
//!
//! So storage sees reads and writes of pages that follow from the number of the eviction, and never
//! where a block was found. The client holds the marks of at most one round of sweeps.

mod pages;

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

pub(super) use pages::PageVersion;
use pages::Pages;
use zeroize::Zeroizing;

use crate::geometry::{BucketId, Geometry};
use crate::pieces::{Part, Piece, TreeId, TreeShape};

/// A slot whose block was taken by an access. Secret, because it reveals on which level the access
/// found the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenSlot {
    /// The bucket of the slot.
    pub bucket: BucketId,
    /// The index of the slot in the bucket.
    pub slot: u16,
}

/// A decrypted page.
pub(super) type Page = Zeroizing<Vec<u8>>;

/// The marks of one tree. Secret.
pub(super) struct TakenSlots {
    tree: TreeId,
    pages: Pages,
    marks: BTreeSet<TakenSlot>,
    /// The pages that the current eviction sweeps, in the versions that were read.
    under_sweep: Vec<(PageVersion, Page)>,
}

impl TakenSlots {
    /// An empty set of marks, for a tree whose levels from `first_level` on are in storage.
    pub(super) fn new(geometry: &Geometry, first_level: u8, tree: TreeId) -> Self {
        let pages = Pages::new(geometry, first_level);
        Self { tree, pages, marks: BTreeSet::new(), under_sweep: Vec::new() }
    }

    /// The shape of the tree of pages.
    pub(super) fn shape(geometry: &Geometry, first_level: u8) -> TreeShape {
        Pages::new(geometry, first_level).shape()
    }

    /// Marks a slot as taken: an access has found its block there.
    pub(super) fn take(&mut self, bucket: BucketId, slot: usize) {
        self.marks.insert(TakenSlot { bucket, slot: slot as u16 });
    }

    /// Whether the block of a slot was taken. The slot must belong to a bucket that the current
    /// eviction writes.
    pub(super) fn is_taken(&self, bucket: BucketId, slot: usize) -> bool {
        self.marks.contains(&TakenSlot { bucket, slot: slot as u16 })
    }

    /// The marks, in order.
    pub(super) fn marks(&self) -> impl Iterator<Item = TakenSlot> + '_ {
        self.marks.iter().copied()
    }

    /// The pages that eviction `g` reads, in the versions that are current when eviction `now`
    /// begins. The pages whose bits `g` adds to the marks come first, then the pages that `g`
    /// sweeps.
    pub(super) fn read_by(&self, g: u64, now: u64) -> impl Iterator<Item = PageVersion> + '_ {
        let begun = self.pages.begins_pages(g).then(|| self.pages.written_with(g));
        let swept = self.pages.swept_by(g).map(|version| version.page);
        begun.into_iter().flatten().chain(swept).map(move |page| self.pages.latest(page, now))
    }

    pub(super) fn piece(&self, version: &PageVersion) -> Piece {
        Piece { tree: self.tree, bucket: version.place, part: Part::Whole }
    }

    pub(super) fn sealed_bytes(&self, version: &PageVersion) -> usize {
        self.pages.sealed_bytes(version.page.level())
    }

    /// The bits of a page that was never swept.
    pub(super) fn blank_page(&self, version: &PageVersion) -> Page {
        Zeroizing::new(vec![0; self.pages.page_bytes(version.page.level())])
    }

    /// Begins eviction `g` with the opened pages of [`Self::read_by`], in that order. A page never
    /// written is zeros.
    pub(super) fn begin_eviction(&mut self, g: u64, opened: Vec<Page>) {
        let versions: Vec<_> = self.read_by(g, g).collect();
        let begun = if self.pages.begins_pages(g) { self.pages.written_with(g).count() } else { 0 };
        self.under_sweep.clear();
        for (i, (version, bits)) in versions.into_iter().zip(opened).enumerate() {
            if i < begun {
                self.add_marks(&version, &bits, g);
            } else {
                self.under_sweep.push((version, bits));
            }
        }
    }

    /// Adds the bits of a page to the marks, except for buckets that the evictions before `g`
    /// rewrote after the page was swept.
    fn add_marks(&mut self, version: &PageVersion, bits: &[u8], g: u64) {
        let from_page = taken_in(&self.pages, version, bits, g);
        self.marks.extend(from_page);
    }

    /// Removes the marks of the buckets that the current eviction writes.
    pub(super) fn rewrite(&mut self, buckets: impl Iterator<Item = BucketId>) {
        for bucket in buckets {
            let removed: Vec<_> = self.marks.range(slots_of(bucket, bucket)).copied().collect();
            removed.iter().for_each(|mark| {
                self.marks.remove(mark);
            });
        }
    }

    /// The pages that eviction `g` sweeps, with their new contents. [`Self::rewrite`] must have
    /// been called. The marks in these pages leave the client, unless later evictions of the same
    /// run will need them.
    pub(super) fn sweep(&mut self, g: u64) -> Vec<(PageVersion, Page)> {
        let Self { pages, marks, under_sweep, .. } = self;
        let mut sweep = |(old, mut bits): (PageVersion, Page), new: PageVersion| {
            let from_page = taken_in(pages, &old, &bits, g + 1);
            let marked: Vec<_> = marks.range(pages.slots_of(old.page)).copied().collect();
            bits.fill(0);
            for mark in from_page.iter().chain(&marked) {
                pages.set(&mut bits, *mark);
            }
            if !pages.written_with(g).any(|page| page == old.page) {
                marked.iter().for_each(|mark| {
                    marks.remove(mark);
                });
            }
            (new, bits)
        };
        let new: Vec<_> = pages.swept_by(g).collect();
        under_sweep.drain(..).zip(new).map(|(old, new)| sweep(old, new)).collect()
    }

    /// The version, current when eviction `g` begins, of the page whose first bucket is `bucket`.
    /// `None` if no page begins there.
    pub(super) fn page_from(&self, bucket: BucketId, g: u64) -> Option<PageVersion> {
        let page = self.pages.page_of(bucket);
        let is_first = bucket.index() & (self.pages.buckets() - 1) == 0;
        is_first.then(|| self.pages.latest(page, g))
    }

    /// The pages that were swept before `g` and hold only buckets of `level` from `index` on.
    pub(super) fn pages_after(
        &self,
        level: u8,
        index: u64,
        g: u64,
    ) -> impl Iterator<Item = PageVersion> + '_ {
        let pages = self.pages.about_buckets_from(level, index);
        pages.map(move |page| self.pages.latest(page, g)).filter(|version| version.is_written)
    }

    /// The taken slots in the buckets of a page when eviction `g` begins, according to the page and
    /// the marks.
    pub(super) fn taken_with(
        &self,
        version: &PageVersion,
        bits: &[u8],
        g: u64,
    ) -> BTreeSet<TakenSlot> {
        let from_page = taken_in(&self.pages, version, bits, g);
        let marked = self.marks.range(self.pages.slots_of(version.page));
        from_page.into_iter().chain(marked.copied()).collect()
    }

    /// Restores a mark. Returns whether the slot exists in storage and was not marked yet.
    pub(super) fn restore_mark(&mut self, mark: TakenSlot, geometry: &Geometry) -> bool {
        let level = mark.bucket.level();
        let is_in_storage = level <= geometry.leaf_level()
            && 1 << level >= self.pages.buckets()
            && usize::from(mark.slot) < geometry.slots(usize::from(level));
        is_in_storage && self.marks.insert(mark)
    }
}

/// Average number of bytes of the pages that one eviction sweeps.
pub(super) fn swept_bytes(geometry: &Geometry, first_level: u8) -> f64 {
    let pages = Pages::new(geometry, first_level);
    pages.shape().tree_bytes() as f64 / 2.0 / pages.round() as f64
}

/// Number of evictions that sweep all pages once.
pub(super) fn round_evictions(geometry: &Geometry, first_level: u8) -> u64 {
    Pages::new(geometry, first_level).round()
}

/// The taken slots according to a page, without the slots of buckets that the evictions before `g`
/// rewrote after the page was swept.
fn taken_in(pages: &Pages, version: &PageVersion, bits: &[u8], g: u64) -> Vec<TakenSlot> {
    let current =
        pages.buckets_of(version.page).filter(|bucket| pages.is_about(version, *bucket, g));
    current.flat_map(|bucket| pages.taken_of(bits, bucket)).collect()
}

/// All slots of the buckets from `first` to `last`, both included.
fn slots_of(first: BucketId, last: BucketId) -> RangeInclusive<TakenSlot> {
    TakenSlot { bucket: first, slot: 0 }..=TakenSlot { bucket: last, slot: u16::MAX }
}
