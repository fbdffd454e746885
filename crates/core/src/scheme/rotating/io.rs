//! Trips between the client and a store whose buckets are authenticated and never overwritten in
//! place.

mod rollback_probe;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use super::super::{RawConfig, TreeConfig};
use super::places::{PlaceRings, Version};
use super::shapes::{RotatingTrees, check_shape, format_of};
use super::stored::Wanted;
use super::taken::{Page, PageVersion, TakenSlot, TakenSlots};
use super::verify::{DiagnosisBudget, Verifier, corrupt_bucket};
use crate::bucket::AuthenticatedFormat;
use crate::error::{Error, ErrorKind, StoreError, StoreErrorKind};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::pieces::{Frames, Part, Piece};
use crate::seal::{BucketKind, BucketName, BucketPieces, EraSealer};
use crate::stash::{BlockArena, Entry, PathPlan};
use crate::store::BucketStore;

pub use rollback_probe::RollbackProbe;

/// The client's side of trips to one tree.
pub(super) struct RotatingIo {
    pub(super) places: PlaceRings,
    pub(super) geometry: Geometry,
    format: AuthenticatedFormat,
    pub(super) trees: RotatingTrees,
    sealer: EraSealer,
    /// The pieces of the trip: the slots of buckets, then their heads, then pages.
    pieces: Vec<Piece>,
    /// The length of each piece.
    piece_bytes: Vec<usize>,
    /// The buckets of the trip.
    versions: Vec<Version>,
    /// The opened table of the current bucket.
    table: Zeroizing<Vec<u8>>,
}

/// A bucket to be written by an eviction, with an entry for every slot: a block or a dummy.
pub(super) struct FilledBucket<E> {
    pub(super) eviction: u64,
    pub(super) level: u8,
    pub(super) entries: E,
}

/// A [`RotatingIo`] with its store, which may also hold other trees.
pub(super) struct RotatingTrips<'a> {
    io: &'a mut RotatingIo,
    store: &'a mut dyn BucketStore,
}

impl RotatingIo {
    /// The client's side of trips to the tree of `config`, which is in `trees` of `store`.
    ///
    /// # Errors
    /// If the configuration contradicts itself, or its trees in `store` have other shapes.
    pub(super) fn new(
        config: &RawConfig,
        trees: RotatingTrees,
        sealer: EraSealer,
        store: &dyn BucketStore,
    ) -> Result<Self, Error> {
        let RawConfig { tree: TreeConfig { geometry, tree_top_levels, .. }, .. } = config;
        let io = Self {
            places: PlaceRings::new(geometry, *tree_top_levels),
            geometry: geometry.clone(),
            format: format_of(&config.tree),
            trees,
            sealer,
            pieces: Vec::new(),
            piece_bytes: Vec::new(),
            versions: Vec::new(),
            table: Zeroizing::default(),
        };
        let [slots, heads] = config.rotating_shapes()?;
        check_shape(store, trees.slots, &slots)?;
        check_shape(store, trees.heads, &heads)?;
        Ok(io)
    }

    /// Trips to `store`. The methods of trips are compiled once, not once per kind of store.
    pub(super) fn over<'a>(&'a mut self, store: &'a mut dyn BucketStore) -> RotatingTrips<'a> {
        RotatingTrips { io: self, store }
    }

    pub(super) fn sealer(&self) -> &EraSealer {
        &self.sealer
    }

    pub(super) fn sealer_mut(&mut self) -> &mut EraSealer {
        &mut self.sealer
    }

    /// Sets the trip to the buckets on the path to `leaf` on all storage levels, in the versions
    /// that are current when eviction `g` begins.
    fn set_path(&mut self, g: u64, leaf: Leaf) {
        let places = self.places;
        self.set_buckets(places.levels().map(|level| places.version(g, leaf, level)));
    }

    /// Sets the trip to `buckets`, without pages.
    fn set_buckets(&mut self, buckets: impl IntoIterator<Item = Version>) {
        self.versions.clear();
        self.versions.extend(buckets);
        let Self { versions, pieces, piece_bytes, trees, format, geometry, .. } = self;
        pieces.clear();
        piece_bytes.clear();
        let mut add_pieces = |tree, bytes: &dyn Fn(usize) -> usize| {
            for version in &*versions {
                pieces.push(Piece { tree, bucket: version.place, part: Part::Whole });
                piece_bytes.push(bytes(geometry.slots(usize::from(version.level))));
            }
        };
        add_pieces(trees.slots, &|slots| format.slots_bytes(slots));
        add_pieces(trees.heads, &|slots| format.head_bytes(slots));
    }

    /// Adds `pages` to the trip, after the buckets.
    fn add_pages(&mut self, taken: &TakenSlots, pages: impl Iterator<Item = PageVersion>) {
        for page in pages {
            self.pieces.push(taken.piece(&page));
            self.piece_bytes.push(taken.sealed_bytes(&page));
        }
    }
}

impl RotatingTrips<'_> {
    /// Announces to storage that the path to `leaf` will be read, in the versions that are current
    /// when eviction `now` begins.
    pub(super) fn prefetch(&mut self, now: u64, leaf: Leaf) {
        self.io.set_path(now, leaf);
        self.store.prefetch(&self.io.pieces);
    }

    /// Announces to storage the pieces that eviction `g` will read, in the versions that are
    /// current when eviction `now` begins.
    pub(super) fn prefetch_eviction(
        &mut self,
        now: u64,
        g: u64,
        leaf: Leaf,
        taken: Option<&TakenSlots>,
    ) {
        self.io.set_path(now, leaf);
        if let Some(taken) = taken {
            self.io.add_pages(taken, taken.read_by(g, now));
        }
        self.store.prefetch(&self.io.pieces);
    }

    /// The trip of an access-only access: reads the whole path to `leaf`, verifies every byte, and
    /// opens one slot. Returns that slot if it holds the block `wanted`, and copies the block to
    /// `block`.
    ///
    /// The whole path is verified before anything is opened, so whether an access fails does not
    /// depend on its request. If several copies have this leaf, the copy nearest to the root is the
    /// latest: an eviction writes a whole path, so no bucket is older than the buckets below it. If
    /// no block is wanted or found, `block` receives the contents of another slot, so that the work
    /// is the same.
    pub(super) fn read_block(
        &mut self,
        g: u64,
        leaf: Leaf,
        wanted: Option<u64>,
        block: &mut [u8],
    ) -> Result<Option<(BucketId, usize)>, Error> {
        self.io.set_path(g, leaf);
        let Self { io, store } = self;
        let RotatingIo {
            places,
            geometry,
            format,
            sealer,
            pieces,
            piece_bytes,
            versions,
            table,
            ..
        } = &mut **io;
        let frames = read_checked(*store, pieces, piece_bytes)?;
        let verifier = Verifier { sealer, places, g };
        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;
        for (i, (version, bucket)) in path.iter().enumerate() {
            bucket.open_table(table);
            for slot in 0..geometry.slots(usize::from(version.level)) {
                let name = name(format, geometry, version, table, slot)?;
                let is_wanted = wanted.is_some_and(|address| name == (address, leaf));
                if is_wanted && found.is_none() {
                    found = Some((i, slot));
                }
            }
        }
        let some_slot = (!path.is_empty()).then_some((0, 0));
        if let Some((i, slot)) = found.or(some_slot) {
            path[i].1.open_slot(slot, block);
        }
        Ok(found.map(|(i, slot)| (path[i].0.bucket, slot)))
    }

    /// Reads what eviction `g` reads: the path to `leaf`, and the pages of `taken` if given. Opens
    /// the pages for `taken`, and the slots of the path into the transit area of `blocks`. Calls
    /// `each` for every block of the path that is not marked as taken, from the highest storage
    /// level down. Skips dummies.
    pub(super) fn open_path(
        &mut self,
        g: u64,
        leaf: Leaf,
        blocks: &mut BlockArena,
        taken: Option<&mut TakenSlots>,
        each: &mut dyn FnMut(Entry),
    ) -> Result<(), Error> {
        self.io.set_path(g, leaf);
        if let Some(taken) = &taken {
            self.io.add_pages(taken, taken.read_by(g, g));
        }
        self.open_trip(g, &mut DiagnosisBudget::default(), blocks, taken, |_, entry, _| each(entry))
    }

    /// Announces to storage that `buckets` will be read.
    pub(super) fn prefetch_buckets(&mut self, buckets: Vec<Version>) {
        self.io.set_buckets(buckets);
        self.store.prefetch(&self.io.pieces);
    }

    /// Reads buckets, in the versions that are current when eviction `g` begins, and verifies all
    /// of them. Then calls `wanted` with the address and leaf of each slot, in order. If `wanted`
    /// returns a place, opens the slot into it. If this opens fewer than `opened_min` slots, opens
    /// further slots, up to this number, and discards their blocks.
    pub(super) fn open_buckets(
        &mut self,
        g: u64,
        buckets: Vec<Version>,
        blocks: &mut BlockArena,
        opened_min: usize,
        wanted: &mut Wanted<'_>,
    ) -> Result<(), Error> {
        self.io.set_buckets(buckets);
        let Self { io, store } = self;
        let RotatingIo {
            places,
            geometry,
            format,
            sealer,
            pieces,
            piece_bytes,
            versions,
            table,
            ..
        } = &mut **io;
        let frames = read_checked(*store, pieces, piece_bytes)?;
        let verifier = Verifier { sealer, places, g };
        let (mut opened, mut others) = (0, Vec::new());
        let verified = verifier.verify_all(versions, &frames)?;
        for (i, (version, bucket)) in verified.iter().enumerate() {
            bucket.open_table(table);
            for slot in 0..geometry.slots(usize::from(version.level)) {
                let (address, leaf) = name(format, geometry, version, table, slot)?;
                if let Some(place) = wanted(blocks, address, leaf) {
                    bucket.open_slot(slot, blocks.get_mut(place));
                    opened += 1;
                } else if others.len() < opened_min {
                    others.push((i, slot));
                }
            }
        }
        let nowhere = blocks.in_transit(0);
        for (i, slot) in others.into_iter().take(opened_min.saturating_sub(opened)) {
            verified[i].1.open_slot(slot, blocks.get_mut(nowhere));
        }
        Ok(())
    }

    /// Reads the whole tree, level by level from the root down. Passes each copy of a block that
    /// was not taken to `each`. Skips buckets that were never written; which buckets these are is
    /// public, and the client knows it from the number of evictions. Passes the number of buckets
    /// read so far to `progress`.
    ///
    /// Calls `damaged` for each bucket, and for each page of `taken`, that cannot be read or is not
    /// authentic. For a page, passes the first bucket that the page covers. But if the page covers
    /// only buckets that were never written, passes the level's first bucket that was never
    /// written. If `damaged` returns an error, the visit ends with this error.
    pub(super) fn visit_blocks(
        &mut self,
        g: u64,
        blocks: &mut BlockArena,
        taken: Option<&TakenSlots>,
        each: &mut dyn FnMut(BucketId, Entry, &[u8]),
        damaged: &mut dyn FnMut(BucketId, Error) -> Result<(), Error>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let (mut visited, mut budget) = (0, DiagnosisBudget::default());
        let mut taken_here = BTreeSet::new();
        let places = self.io.places;
        for level in places.levels() {
            let written = places.written_on(g, level);
            for index in 0..written {
                let bucket = BucketId::new(level, index);
                if let Some((taken, page)) = taken.and_then(|t| Some((t, t.page_from(bucket, g)?)))
                {
                    let bits = match self.read_page(taken, &page) {
                        Ok(bits) => bits,
                        Err(error) => {
                            damaged(bucket, error)?;
                            taken.blank_page(&page)
                        }
                    };
                    taken_here = taken.taken_with(&page, &bits, g);
                }
                self.io.set_buckets([places.version(g, Leaf(index), level)]);
                let opened = self.open_trip(g, &mut budget, blocks, None, |slot, entry, bytes| {
                    if !taken_here.contains(&TakenSlot { bucket, slot: slot as u16 }) {
                        each(bucket, entry, bytes);
                    }
                });
                opened.or_else(|error| damaged(bucket, error))?;
                visited += 1;
                progress(visited);
            }
            let Some(taken) = taken else { continue };
            // Sweeps also write pages that cover only buckets never written: verify these too.
            for page in taken.pages_after(level, written, g) {
                if let Err(error) = self.read_page(taken, &page) {
                    damaged(BucketId::new(level, written), error)?;
                }
            }
        }
        Ok(())
    }

    /// Seals the blocks of `plan` for the storage levels of the path of eviction `g`, and the pages
    /// that `g` sweeps, and writes them.
    pub(super) fn seal_path(
        &mut self,
        g: u64,
        plan: &PathPlan,
        blocks: &BlockArena,
        taken: Option<&mut TakenSlots>,
    ) -> Result<(), Error> {
        let places = self.io.places;
        let filled =
            |level: u8| FilledBucket { eviction: g, level, entries: plan.bucket(level.into()) };
        let buckets: Vec<_> = places.levels().map(filled).collect();
        let leaf = Leaf(g & (self.io.geometry.leaves() - 1));
        let pages = taken.map(|taken| {
            taken.rewrite(places.levels().map(|level| BucketId::on_path(leaf, level)));
            let pages = taken.sweep(g).into_iter();
            pages
                .map(|(page, bits)| (taken.piece(&page), page_name(&page), bits))
                .collect::<Vec<_>>()
        });
        self.seal(&buckets, &pages.unwrap_or_default(), blocks)
    }

    /// Seals buckets and writes them.
    pub(super) fn seal_buckets(
        &mut self,
        buckets: &[FilledBucket<impl AsRef<[Entry]>>],
        blocks: &BlockArena,
    ) -> Result<(), Error> {
        self.seal(buckets, &[], blocks)
    }

    /// Seals `buckets`, and `pages` under the given names, and writes all of them in one trip.
    fn seal(
        &mut self,
        buckets: &[FilledBucket<impl AsRef<[Entry]>>],
        pages: &[(Piece, BucketName, Page)],
        blocks: &BlockArena,
    ) -> Result<(), Error> {
        let Self { io, store } = self;
        let RotatingIo { places, format, trees, sealer, pieces, table, .. } = &mut **io;
        pieces.clear();
        for tree in [trees.slots, trees.heads] {
            pieces.extend(buckets.iter().map(|it| Piece {
                tree,
                bucket: places.written(it.eviction, it.level),
                part: Part::Whole,
            }));
        }
        pieces.extend(pages.iter().map(|(piece, ..)| *piece));
        let mut filled = false;
        store.write(pieces, &mut |mut blanks| {
            filled = true;
            for (i, FilledBucket { eviction, level, entries }) in buckets.iter().enumerate() {
                let entries = entries.as_ref();
                format.put_table(table, entries);
                let name =
                    BucketName { eviction: *eviction, level: *level, kind: BucketKind::Blocks };
                let in_slots = entries.iter().map(|entry| blocks.get(entry.place));
                let pieces = BucketPieces { head: buckets.len() + i, slots: Some(i) };
                sealer.seal(name, table, in_slots, &mut blanks, pieces);
            }
            for (i, (_, name, bits)) in pages.iter().enumerate() {
                let pieces = BucketPieces { head: 2 * buckets.len() + i, slots: None };
                sealer.seal(*name, bits, core::iter::empty(), &mut blanks, pieces);
            }
            blanks.sealed()
        })?;
        if filled {
            Ok(())
        } else {
            Err(StoreError::new(StoreErrorKind::Failed, "it took no bytes of a write").into())
        }
    }

    /// Reads, verifies and opens a page, in a trip of its own. A page that was never swept is
    /// zeros, and needs no trip.
    fn read_page(&mut self, taken: &TakenSlots, page: &PageVersion) -> Result<Page, Error> {
        if !page.is_written {
            return Ok(taken.blank_page(page));
        }
        let frames = read_checked(self.store, &[taken.piece(page)], &[taken.sealed_bytes(page)])?;
        open_page(&self.io.sealer, taken, page, frames.get(0))
    }

    /// Reads the buckets and pages of a trip, and verifies them. Then opens the pages for `taken`
    /// and all buckets, and passes each block that was not taken to `each`, with the index and the
    /// contents of its slot.
    fn open_trip(
        &mut self,
        g: u64,
        budget: &mut DiagnosisBudget,
        blocks: &mut BlockArena,
        mut taken: Option<&mut TakenSlots>,
        mut each: impl FnMut(usize, Entry, &[u8]),
    ) -> Result<(), Error> {
        let Self { io, store } = self;
        let RotatingIo {
            places,
            geometry,
            format,
            sealer,
            pieces,
            piece_bytes,
            versions,
            table,
            ..
        } = &mut **io;
        let frames = read_checked(*store, pieces, piece_bytes)?;
        let verifier = Verifier { sealer, places, g };
        let path = verifier.verify_all_with(budget, versions, &frames)?;
        if let Some(taken) = &mut taken {
            let sealed = (2 * versions.len()..).map(|i| frames.get(i));
            let opened = taken.read_by(g, g).zip(sealed);
            let pages = opened.map(|(page, sealed)| open_page(sealer, taken, &page, sealed));
            let pages = pages.collect::<Result<Vec<_>, _>>()?;
            taken.begin_eviction(g, pages);
        }
        for (version, bucket) in path {
            bucket.open_table(table);
            let level = usize::from(version.level);
            for slot in 0..geometry.slots(level) {
                let place = blocks.in_transit(geometry.path_slots_above(level) + slot);
                bucket.open_slot(slot, blocks.get_mut(place));
                let (address, leaf) = name(format, geometry, version, table, slot)?;
                let was_taken = taken.as_ref().is_some_and(|t| t.is_taken(version.bucket, slot));
                if address != Entry::DUMMY_ADDRESS && !was_taken {
                    each(slot, Entry { address, leaf, place }, blocks.get(place));
                }
            }
        }
        Ok(())
    }
}

/// Reads the pieces of a trip, and checks the number and lengths of the frames.
fn read_checked<'s>(
    store: &'s mut dyn BucketStore,
    pieces: &[Piece],
    piece_bytes: &[usize],
) -> Result<Frames<'s>, Error> {
    let frames = store.read(pieces)?;
    let matches_request = frames.len() == pieces.len()
        && piece_bytes.iter().enumerate().all(|(i, bytes)| frames.get(i).len() == *bytes);
    if matches_request {
        Ok(frames)
    } else {
        Err(Error::new(
            ErrorKind::Corrupt,
            "storage returned more or fewer bytes than were requested",
        ))
    }
}

fn page_name(page: &PageVersion) -> BucketName {
    let PageVersion { eviction, number, .. } = *page;
    BucketName { eviction, level: page.page.level(), kind: BucketKind::Page(number) }
}

/// Verifies and opens a page. A page that was never swept is zeros, whatever `sealed` is.
fn open_page(
    sealer: &EraSealer,
    taken: &TakenSlots,
    page: &PageVersion,
    sealed: &[u8],
) -> Result<Page, Error> {
    let mut bits = taken.blank_page(page);
    if page.is_written {
        let verified = sealer.verify(page_name(page), sealed, &[]).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                format!(
                    "page {} of storage holds changed bytes, or an older version. The storage is \
                     damaged or was tampered with. The page was not used",
                    page.place
                ),
            )
        })?;
        verified.open_table(&mut bits);
    }
    Ok(bits)
}

/// The address and the leaf in `slot` of an opened table. Fails if the bucket cannot hold such a
/// block.
fn name(
    format: &AuthenticatedFormat,
    geometry: &Geometry,
    version: &Version,
    table: &[u8],
    slot: usize,
) -> Result<(u64, Leaf), Error> {
    let slots = geometry.slots(usize::from(version.level));
    let name = format.name(table, slots, slot, geometry);
    name.ok_or_else(|| corrupt_bucket(version, "an address or a leaf that cannot be there"))
}
