//! Trips between the client and a store whose buckets are authenticated and never overwritten in
//! place.

use std::collections::BTreeSet;

use super::super::{RawConfig, TreeConfig};
use super::places::{Places, Version};
use super::taken::{PageVersion, TakenSlot, TakenSlots};
use crate::bucket::AuthenticatedFormat;
use crate::error::{Error, ErrorKind, StoreError};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::seal::{AuthenticatedSealing as Sealing, EraSealer, SealedPart};
use crate::stash::{BlockRoom, Entry, PathPlan};
use crate::store::{BucketStore, Frames, LevelShape, Part, Piece, TreeId, TreeShape};

/// The untrusted side of one tree, and what is needed to talk to it.
pub(super) struct RotatingIo<S> {
    pub(super) places: Places,
    geometry: Geometry,
    format: AuthenticatedFormat,
    tree: TreeId,
    store: S,
    sealer: EraSealer,
    /// The trip under way.
    pieces: Vec<Piece>,
    /// The bytes that each piece has.
    piece_bytes: Vec<usize>,
    versions: Vec<Version>,
    /// The tables of the bucket at hand, in clear.
    tables: Vec<u8>,
}

/// What a store must have room for.
pub(super) fn shape(config: &RawConfig) -> Result<TreeShape, Error> {
    config.tree.format()?;
    let TreeConfig { geometry, tree_top_levels, .. } = &config.tree;
    let places = Places::new(geometry, *tree_top_levels);
    let format = AuthenticatedFormat::new(&config.tree);
    let absent = LevelShape {
        buckets: 0,
        slots: 0,
        header_bytes: 0,
        slots_offset: 0,
        slot_bytes: 0,
        bucket_bytes: 0,
    };
    let mut levels = vec![absent; usize::from(Places::store_level(*tree_top_levels))];
    levels.extend(
        places
            .levels()
            .map(|level| format.shape(places.on_level(level), geometry.slots(usize::from(level)))),
    );
    Ok(TreeShape::new(levels))
}

impl<S: BucketStore> RotatingIo<S> {
    /// # Errors
    /// When the configuration contradicts itself, or `store` has no tree of that shape.
    pub(super) fn new(config: &RawConfig, sealer: EraSealer, store: S) -> Result<Self, Error> {
        let RawConfig { tree: TreeConfig { geometry, tree, tree_top_levels, .. }, .. } = config;
        let io = Self {
            places: Places::new(geometry, *tree_top_levels),
            geometry: geometry.clone(),
            format: AuthenticatedFormat::new(&config.tree),
            tree: *tree,
            store,
            sealer,
            pieces: Vec::new(),
            piece_bytes: Vec::new(),
            versions: Vec::new(),
            tables: Vec::new(),
        };
        io.check_shape(*tree, &shape(config)?)?;
        Ok(io)
    }

    /// Refuses a store whose tree `tree` has another shape.
    pub(super) fn check_shape(&self, tree: TreeId, shape: &TreeShape) -> Result<(), Error> {
        if self.store.shape(tree) == Some(shape) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::StoreMismatch,
            format!(
                "the store's tree {} does not have the shape of this configuration: make the store \
                 with the shapes that the configuration gives",
                tree.0
            ),
        ))
    }

    pub(super) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    pub(super) fn into_store(self) -> S {
        self.store
    }

    pub(super) fn sealer(&self) -> &EraSealer {
        &self.sealer
    }

    pub(super) fn sealer_mut(&mut self) -> &mut EraSealer {
        &mut self.sealer
    }

    /// Tells storage that the path to `leaf` will be read, after the evictions before `g`.
    pub(super) fn prefetch(&mut self, g: u64, leaf: Leaf) {
        self.aim(g, leaf);
        self.store.prefetch(&self.pieces);
    }

    /// Tells storage what eviction `g`, the next one, will read.
    pub(super) fn prefetch_eviction(&mut self, g: u64, leaf: Leaf, taken: Option<&TakenSlots>) {
        self.aim(g, leaf);
        if let Some(taken) = taken {
            self.add_pages(taken, taken.read_by(g));
        }
        self.store.prefetch(&self.pieces);
    }

    /// The trip of an access-only access: reads the whole path to `leaf`, opens its headers and one
    /// slot, and answers where that is if it holds the block `wanted`, which then is in `block`.
    ///
    /// Of several copies with this leaf the one nearest the root is the latest: an eviction writes
    /// all of a path, so no bucket is older than one below it. If nothing is wanted or found, some
    /// slot is opened and forgotten, so that the work is the same.
    pub(super) fn read_block(
        &mut self,
        g: u64,
        leaf: Leaf,
        wanted: Option<u64>,
        block: &mut [u8],
    ) -> Result<Option<(BucketId, usize)>, Error> {
        self.aim(g, leaf);
        let Self {
            geometry,
            format,
            store,
            sealer,
            pieces,
            piece_bytes,
            versions,
            tables,
            places,
            ..
        } = self;
        let frames = read_checked(store, pieces, piece_bytes)?;
        let opener = Opener { geometry, format, sealer, places, g };
        let mut found = None;
        let mut some_slot = None;
        for (i, version) in versions.iter().enumerate().filter(|(_, version)| version.is_written) {
            opener.open_header(version, frames.get(i), tables)?;
            some_slot = some_slot.or(Some((i, 0)));
            for slot in 0..geometry.slots(usize::from(version.level)) {
                let name = opener.name(version, tables, slot)?;
                let is_wanted = wanted.is_some_and(|address| name == (address, leaf));
                if is_wanted && found.is_none() {
                    found = Some((i, slot));
                }
            }
        }
        if let Some((i, slot)) = found.or(some_slot) {
            opener.open_slot(&versions[i], frames.get(i), slot, block)?;
        }
        Ok(found.map(|(i, slot)| (versions[i].bucket, slot)))
    }

    /// Reads what eviction `g` reads: the path to `leaf`, and the pages of `taken`. Opens all of it,
    /// the path into the transit area of `blocks`, and hands over each block that was not taken,
    /// dummies left out, the root's first.
    pub(super) fn open_path(
        &mut self,
        g: u64,
        leaf: Leaf,
        blocks: &mut BlockRoom,
        taken: Option<&mut TakenSlots>,
        mut each: impl FnMut(Entry),
    ) -> Result<(), Error> {
        self.aim(g, leaf);
        if let Some(taken) = &taken {
            self.add_pages(taken, taken.read_by(g));
        }
        self.open_trip(g, blocks, taken, |_, entry, _| each(entry))
    }

    /// Reads the whole tree, level by level from the root down, and names each copy of a block that
    /// was not taken, with its bytes. `progress` is told how many buckets have been read.
    pub(super) fn visit_blocks(
        &mut self,
        g: u64,
        blocks: &mut BlockRoom,
        taken: Option<&TakenSlots>,
        mut each: impl FnMut(BucketId, Entry, &[u8]),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut visited = 0;
        let mut taken_here = BTreeSet::new();
        for level in self.places.levels() {
            for index in 0..1 << level {
                let bucket = BucketId::new(level, index);
                if let Some((taken, page)) = taken.and_then(|t| Some((t, t.page_from(bucket, g)?)))
                {
                    taken_here = taken.taken_with(&page, &self.read_page(taken, &page)?, g);
                }
                self.versions.clear();
                self.versions.push(self.places.version(g, Leaf(index), level));
                self.lay_pieces();
                self.open_trip(g, blocks, None, |slot, entry, bytes| {
                    if !taken_here.contains(&TakenSlot { bucket, slot: slot as u16 }) {
                        each(bucket, entry, bytes);
                    }
                })?;
                visited += 1;
                progress(visited);
            }
        }
        Ok(())
    }

    /// Eviction `g` seals what `plan` holds for the storage levels of its path, and the pages that it
    /// sweeps, and writes them.
    pub(super) fn seal_path(
        &mut self,
        g: u64,
        plan: &PathPlan,
        blocks: &BlockRoom,
        taken: Option<&mut TakenSlots>,
    ) -> Result<(), Error> {
        let Self { places, geometry, format, tree, store, sealer, pieces, tables, .. } = self;
        pieces.clear();
        pieces.extend(places.levels().map(|level| Piece {
            tree: *tree,
            bucket: places.written(g, level),
            part: Part::Whole,
        }));
        let path_pieces = pieces.len();
        let mut pages = Vec::new();
        if let Some(taken) = taken {
            let leaf = Leaf(g & (geometry.leaves() - 1));
            taken.rewrite(places.levels().map(|level| BucketId::on_path(leaf, level)));
            pages = taken.sweep(g);
            pieces.extend(pages.iter().map(|(page, _)| taken.piece(page)));
        }
        let mut filled = false;
        store.write(pieces, &mut |mut blanks| {
            filled = true;
            for (i, level) in places.levels().enumerate() {
                let bucket = plan.bucket(usize::from(level));
                let part = |part| Sealing { eviction: g, level, part };
                format.put_tables(tables, bucket);
                sealer.seal(part(SealedPart::Header), tables, &mut blanks, i, 0);
                for (slot, entry) in bucket.iter().enumerate() {
                    let offset = format.slot_offset(bucket.len(), slot);
                    let part = part(SealedPart::Slot(slot as u16));
                    sealer.seal(part, blocks.get(entry.place), &mut blanks, i, offset);
                }
            }
            for (i, (page, bits)) in pages.iter().enumerate() {
                sealer.seal(of_page(page), bits, &mut blanks, path_pieces + i, 0);
            }
            blanks.sealed()
        })?;
        if filled { Ok(()) } else { Err(StoreError::new("it took no bytes of a write").into()) }
    }

    /// Whether storage holds what eviction `g` wrote in the era before the latest. Reads one bucket,
    /// the one on the level of the leaves that is written next.
    pub(super) fn shows_ended_era(&mut self, g: u64) -> Result<bool, Error> {
        let leaf = Leaf(g & (self.geometry.leaves() - 1));
        let level = self.geometry.leaf_level();
        self.versions.clear();
        self.versions.push(self.places.version(g + 1, leaf, level));
        self.lay_pieces();
        let Self { geometry, format, store, sealer, pieces, piece_bytes, tables, .. } = self;
        let frames = read_checked(store, pieces, piece_bytes)?;
        let slots = geometry.slots(usize::from(level));
        tables.resize(format.table_bytes(slots), 0);
        let sealed = &frames.get(0)[..format.header_bytes(slots)];
        let header = Sealing { eviction: g, level, part: SealedPart::Header };
        Ok(sealer.open_in_ended_era(header, sealed, tables))
    }

    /// Returns once all writes so far are durable.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        Ok(self.store.flush()?)
    }

    /// Sets out to the storage levels of the path to `leaf`, as they are after the evictions before
    /// `g`.
    fn aim(&mut self, g: u64, leaf: Leaf) {
        let Self { places, versions, .. } = self;
        versions.clear();
        versions.extend(places.levels().map(|level| places.version(g, leaf, level)));
        self.lay_pieces();
    }

    fn lay_pieces(&mut self) {
        let Self { versions, pieces, piece_bytes, tree, format, geometry, .. } = self;
        pieces.clear();
        piece_bytes.clear();
        for version in versions {
            pieces.push(Piece { tree: *tree, bucket: version.place, part: Part::Whole });
            let slots = geometry.slots(usize::from(version.level));
            piece_bytes.push(format.bucket_bytes(slots));
        }
    }

    /// Adds pages to the trip.
    fn add_pages(&mut self, taken: &TakenSlots, pages: impl Iterator<Item = PageVersion>) {
        for page in pages {
            self.pieces.push(taken.piece(&page));
            self.piece_bytes.push(taken.sealed_bytes(&page));
        }
    }

    /// Reads a page in a trip of its own.
    fn read_page(&mut self, taken: &TakenSlots, page: &PageVersion) -> Result<Vec<u8>, Error> {
        let frames = self.store.read(&[taken.piece(page)])?;
        let sealed = if frames.len() == 1 { frames.get(0) } else { &[] };
        open_page(&self.sealer, taken, page, sealed)
    }

    /// Reads the buckets and pages of a trip. Opens the pages for `taken`, then all buckets, and hands
    /// over each block that was not taken.
    fn open_trip(
        &mut self,
        g: u64,
        blocks: &mut BlockRoom,
        mut taken: Option<&mut TakenSlots>,
        mut each: impl FnMut(usize, Entry, &[u8]),
    ) -> Result<(), Error> {
        let Self {
            geometry,
            format,
            store,
            sealer,
            pieces,
            piece_bytes,
            versions,
            tables,
            places,
            ..
        } = self;
        let frames = read_checked(store, pieces, piece_bytes)?;
        if let Some(taken) = &mut taken {
            let sealed = (versions.len()..).map(|i| frames.get(i));
            let opened = taken.read_by(g).zip(sealed);
            let pages = opened.map(|(page, sealed)| open_page(sealer, taken, &page, sealed));
            let pages = pages.collect::<Result<Vec<_>, _>>()?;
            taken.begin_eviction(g, pages);
        }
        let opener = Opener { geometry, format, sealer, places, g };
        for (i, version) in versions.iter().enumerate().filter(|(_, version)| version.is_written) {
            opener.open_header(version, frames.get(i), tables)?;
            let level = usize::from(version.level);
            for slot in 0..geometry.slots(level) {
                let place = blocks.in_transit(geometry.path_slots_above(level) + slot);
                opener.open_slot(version, frames.get(i), slot, blocks.get_mut(place))?;
                let (address, leaf) = opener.name(version, tables, slot)?;
                let was_taken = taken.as_ref().is_some_and(|t| t.is_taken(version.bucket, slot));
                if address != Entry::DUMMY_ADDRESS && !was_taken {
                    each(slot, Entry { address, leaf, place }, blocks.get(place));
                }
            }
        }
        Ok(())
    }
}

/// Reads the pieces of a trip, and checks that the store returned what was asked for.
fn read_checked<'s, S: BucketStore>(
    store: &'s mut S,
    pieces: &[Piece],
    piece_bytes: &[usize],
) -> Result<Frames<'s>, Error> {
    let frames = store.read(pieces)?;
    let as_asked = frames.len() == pieces.len()
        && piece_bytes.iter().enumerate().all(|(i, bytes)| frames.get(i).len() == *bytes);
    if as_asked {
        Ok(frames)
    } else {
        Err(Error::new(ErrorKind::Corrupt, "storage returned more or fewer bytes than were asked"))
    }
}

fn of_page(page: &PageVersion) -> Sealing {
    let PageVersion { eviction, part, .. } = *page;
    Sealing { eviction, level: page.page.level(), part: SealedPart::Page(part) }
}

/// Opens a page. One that was never swept is zeros.
fn open_page(
    sealer: &EraSealer,
    taken: &TakenSlots,
    page: &PageVersion,
    sealed: &[u8],
) -> Result<Vec<u8>, Error> {
    let mut bits = vec![0; taken.page_bytes(page)];
    let is_genuine = !page.is_written
        || sealed.len() == taken.sealed_bytes(page)
            && sealer.open(of_page(page), sealed, &mut bits);
    if is_genuine {
        Ok(bits)
    } else {
        Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "page {} of the store holds changed bytes, or an older version. The storage is \
                 damaged or was tampered with: nothing of it was used",
                page.place
            ),
        ))
    }
}

/// Opens the buckets of a trip.
struct Opener<'a> {
    geometry: &'a Geometry,
    format: &'a AuthenticatedFormat,
    sealer: &'a EraSealer,
    places: &'a Places,
    /// How many evictions there have been.
    g: u64,
}

impl Opener<'_> {
    fn slots(&self, version: &Version) -> usize {
        self.geometry.slots(usize::from(version.level))
    }

    /// Opens the tables of a bucket.
    fn open_header(
        &self,
        version: &Version,
        frame: &[u8],
        tables: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let slots = self.slots(version);
        tables.resize(self.format.table_bytes(slots), 0);
        let sealed = &frame[..self.format.header_bytes(slots)];
        if self.opens(version.eviction, version, SealedPart::Header, sealed, tables) {
            Ok(())
        } else {
            Err(self.diagnose(version, sealed, tables))
        }
    }

    fn open_slot(
        &self,
        version: &Version,
        frame: &[u8],
        slot: usize,
        block: &mut [u8],
    ) -> Result<(), Error> {
        let offset = self.format.slot_offset(self.slots(version), slot);
        let sealed = &frame[offset..][..self.format.slot_bytes()];
        if self.opens(version.eviction, version, SealedPart::Slot(slot as u16), sealed, block) {
            Ok(())
        } else {
            Err(forged(version, "a block with changed bytes"))
        }
    }

    fn opens(
        &self,
        eviction: u64,
        version: &Version,
        part: SealedPart,
        sealed: &[u8],
        plain: &mut [u8],
    ) -> bool {
        self.sealer.open(Sealing { eviction, level: version.level, part }, sealed, plain)
    }

    /// The address and the leaf in `slot` of opened tables.
    fn name(&self, version: &Version, tables: &[u8], slot: usize) -> Result<(u64, Leaf), Error> {
        let name = self.format.name(tables, self.slots(version), slot, self.geometry);
        name.ok_or_else(|| forged(version, "an address or a leaf that cannot be there"))
    }

    /// What is in the place of a bucket whose header does not open.
    #[cold]
    fn diagnose(&self, version: &Version, sealed: &[u8], tables: &mut [u8]) -> Error {
        /// Openings tried of each kind before giving up.
        const TRIES_MAX: u64 = 1 << 14;
        let Version { level, eviction, .. } = *version;
        if sealed.iter().all(|byte| *byte == 0) {
            return forged(version, "nothing, although it was written: a write was lost");
        }
        let mut is_of = |other: u64| self.opens(other, version, SealedPart::Header, sealed, tables);
        let ring = self.places.on_level(level);
        let older =
            |step: u64| (1..=TRIES_MAX).map_while(move |times| eviction.checked_sub(step * times));
        let first = self.places.first_eviction();
        if older(ring).chain(older(1 << level)).filter(|e| *e >= first).any(&mut is_of) {
            return forged(version, "an older version: storage was rolled back, or lost a write");
        }
        let oldest = self.g.saturating_sub(ring.min(TRIES_MAX)).max(first);
        if (oldest..self.g).any(is_of) {
            return forged(version, "the contents of another bucket");
        }
        forged(version, "changed bytes")
    }
}

/// The error for bytes that are not what the client wrote. It names the defect and the public place,
/// never a value.
#[cold]
fn forged(version: &Version, defect: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "bucket {} of the store holds {defect}. The storage is damaged or was tampered with: \
             nothing of it was used",
            version.place
        ),
    )
}
