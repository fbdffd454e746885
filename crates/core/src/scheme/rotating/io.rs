//! Trips between the client and a store whose buckets are authenticated and never overwritten in
//! place.

use super::super::{RawConfig, TreeConfig};
use super::places::{Places, Version};
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
        if store.shape(*tree) != Some(&shape(config)?) {
            return Err(Error::new(
                ErrorKind::StoreMismatch,
                format!(
                    "the store's tree {} does not have the shape of this configuration: make the \
                     store with the configuration's rotating_shape()",
                    tree.0
                ),
            ));
        }
        Ok(Self {
            places: Places::new(geometry, *tree_top_levels),
            geometry: geometry.clone(),
            format: AuthenticatedFormat::new(&config.tree),
            tree: *tree,
            store,
            sealer,
            pieces: Vec::new(),
            versions: Vec::new(),
            tables: Vec::new(),
        })
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

    /// The trip of an access-only access: reads the whole path to `leaf`, opens its headers and one
    /// slot, and answers whether that is the block `wanted`, which then is in `block`.
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
    ) -> Result<bool, Error> {
        self.aim(g, leaf);
        let Self { geometry, format, store, sealer, pieces, versions, tables, places, .. } = self;
        let frames = read_checked(store, pieces, versions, format, geometry)?;
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
        Ok(found.is_some())
    }

    /// Reads the path to `leaf`, opens all of it into the transit area of `blocks`, and hands over
    /// each block, dummies left out, the root's first.
    pub(super) fn open_path(
        &mut self,
        g: u64,
        leaf: Leaf,
        blocks: &mut BlockRoom,
        each: impl FnMut(Entry),
    ) -> Result<(), Error> {
        self.aim(g, leaf);
        self.open_trip(g, blocks, each)
    }

    /// Reads the whole tree, level by level from the root down, and names each copy of a block.
    /// `progress` is told how many buckets have been read.
    pub(super) fn visit_blocks(
        &mut self,
        g: u64,
        blocks: &mut BlockRoom,
        mut each: impl FnMut(BucketId, Entry),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut visited = 0;
        for level in self.places.levels() {
            for index in 0..1 << level {
                self.versions.clear();
                self.versions.push(self.places.version(g, Leaf(index), level));
                self.lay_pieces();
                self.open_trip(g, blocks, |entry| each(BucketId::new(level, index), entry))?;
                visited += 1;
                progress(visited);
            }
        }
        Ok(())
    }

    /// Eviction `g` seals what `plan` holds for the storage levels of its path, and writes it.
    pub(super) fn seal_path(
        &mut self,
        g: u64,
        plan: &PathPlan,
        blocks: &BlockRoom,
    ) -> Result<(), Error> {
        let Self { places, geometry, format, tree, store, sealer, pieces, tables, .. } = self;
        pieces.clear();
        pieces.extend(places.levels().map(|level| Piece {
            tree: *tree,
            bucket: places.written(g, level),
            part: Part::Whole,
        }));
        let mut filled = false;
        store.write(pieces, &mut |mut blanks| {
            filled = true;
            for (i, level) in places.levels().enumerate() {
                let bucket = plan.bucket(usize::from(level), geometry);
                let part = |part| Sealing { eviction: g, level, part };
                format.put_tables(tables, bucket);
                sealer.seal(part(SealedPart::Header), tables, &mut blanks, i, 0);
                for (slot, entry) in bucket.iter().enumerate() {
                    let offset = format.slot_offset(bucket.len(), slot);
                    let part = part(SealedPart::Slot(slot as u16));
                    sealer.seal(part, blocks.get(entry.place), &mut blanks, i, offset);
                }
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
        let Self { geometry, format, store, sealer, pieces, versions, tables, .. } = self;
        let frames = read_checked(store, pieces, versions, format, geometry)?;
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
        let Self { versions, pieces, tree, .. } = self;
        pieces.clear();
        pieces.extend(versions.iter().map(|version| Piece {
            tree: *tree,
            bucket: version.place,
            part: Part::Whole,
        }));
    }

    fn open_trip(
        &mut self,
        g: u64,
        blocks: &mut BlockRoom,
        mut each: impl FnMut(Entry),
    ) -> Result<(), Error> {
        let Self { geometry, format, store, sealer, pieces, versions, tables, places, .. } = self;
        let frames = read_checked(store, pieces, versions, format, geometry)?;
        let opener = Opener { geometry, format, sealer, places, g };
        for (i, version) in versions.iter().enumerate().filter(|(_, version)| version.is_written) {
            opener.open_header(version, frames.get(i), tables)?;
            let level = usize::from(version.level);
            for slot in 0..geometry.slots(level) {
                let place = blocks.in_transit(geometry.path_slots_above(level) + slot);
                opener.open_slot(version, frames.get(i), slot, blocks.get_mut(place))?;
                let (address, leaf) = opener.name(version, tables, slot)?;
                if address != Entry::DUMMY_ADDRESS {
                    each(Entry { address, leaf, place });
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
    versions: &[Version],
    format: &AuthenticatedFormat,
    geometry: &Geometry,
) -> Result<Frames<'s>, Error> {
    let frames = store.read(pieces)?;
    let bytes = |version: &Version| format.bucket_bytes(geometry.slots(usize::from(version.level)));
    let as_asked = frames.len() == pieces.len()
        && versions.iter().enumerate().all(|(i, version)| frames.get(i).len() == bytes(version));
    if as_asked {
        Ok(frames)
    } else {
        Err(Error::new(ErrorKind::Corrupt, "storage returned more or fewer bytes than were asked"))
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
