//! From the records of a file to the state at the last checkpoint, and what came after it.

use oblivio_core::front::Kept;
use oblivio_core::geometry::Leaf;
use oblivio_core::posmap::{LivePosMap, Mapping};
use oblivio_core::scheme::Sighting;
use oblivio_core::store::BucketStore;
use oblivio_core::{EraSealer, MasterKey, RotatingConfig, RotatingOram};

use super::file::{Position, StateReader, damaged};
use super::record::{ClientBlock, Head, Record};
use crate::coins::Coins;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::volume::{TREES, VolumeOram};

/// What a state file says, but for what is large: blocks, and what has to be done again, are read
/// when they are needed.
pub(crate) struct History {
    pub(crate) head: Head,
    /// Where the file's first record starts.
    first: Position,
    is_flat: bool,
    /// Where the last complete state starts and ends.
    state: (Position, Position),
    /// What came in after the last complete state.
    pub(crate) pending: Pending,
    /// Bytes at the end of the file that do not open.
    pub(crate) bytes_ignored: u64,
    reader: StateReader,
}

/// How much is to be done again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) records: u64,
    pub(crate) accesses: u64,
    /// Evictions ahead of their time.
    pub(crate) evictions: u64,
}

impl Pending {
    pub(crate) fn is_any(&self) -> bool {
        self.records > 0
    }

    fn add(&mut self, record: &Record) {
        self.records += 1;
        match record {
            Record::Batch(accesses) => self.accesses += accesses.len() as u64,
            Record::Evict => self.evictions += 1,
            _ => (),
        }
    }
}

impl History {
    /// Looks through a whole file of a volume.
    pub(crate) fn read(
        mut reader: StateReader,
        config: &RotatingConfig,
    ) -> Result<Self, VolumeError> {
        let (first, is_flat) = (reader.position(), config.recursion.is_none());
        let Outline { complete, pending, .. } = Outline::read(&mut reader, is_flat)?;
        let bytes_ignored = reader.bytes_left();
        let (head, state) =
            complete.ok_or_else(|| damaged("the client's state is not complete"))?;
        Ok(Self { head, first, is_flat, state, pending, bytes_ignored, reader })
    }

    /// The position map, or the entries of it that are on the client.
    pub(super) fn table(&mut self, config: &RotatingConfig) -> Result<LivePosMap, VolumeError> {
        let leaf_level = config.raw.tree.geometry.leaf_level();
        let table = LivePosMap::new(config.client_entries()?, leaf_level)?;
        let mut map = BoundedMap { map: table, leaf_level };
        // A flat map follows from that of the snapshot and what came in since; the entries on the client
        // of one that lies in the tree are told anew by each state.
        self.reader.go_to(if self.is_flat { self.first } else { self.state.0 });
        while self.reader.position() < self.state.1
            && let Some(record) = self.reader.next()?
        {
            map.apply(record)?;
        }
        Ok(map.map)
    }

    /// The ORAM as it was at the last checkpoint. Nothing is read from `store`.
    pub(crate) fn oram<S: BucketStore>(
        &mut self,
        config: &RotatingConfig,
        seal_key: MasterKey,
        store: S,
        coins: Coins,
    ) -> Result<VolumeOram<S>, VolumeError> {
        let Head { evictions, accesses_since_eviction, ref eras, .. } = self.head;
        let sealer = EraSealer::new(seal_key, TREES.slots, eras.clone());
        let kept = Kept { evictions, accesses_since_eviction, table: self.table(config)? };
        let mut oram = RotatingOram::resume(config, sealer, store, kept, coins)?;
        self.bring_back(&mut oram)?;
        Ok(oram)
    }

    /// Puts back what was on the client: blocks, and notes on taken slots.
    fn bring_back<S: BucketStore>(&mut self, oram: &mut VolumeOram<S>) -> Result<(), VolumeError> {
        self.each_kept(|record| match record {
            Record::Block(ClientBlock { home, address, leaf, bytes }) => {
                Ok(oram.bring_back(home, address, leaf, &bytes)?)
            }
            Record::Taken(slots) => {
                Ok(slots.into_iter().try_for_each(|slot| oram.bring_back_taken(slot))?)
            }
            _ => Ok(()),
        })
    }

    /// Whether storage has seen an eviction that this history does not know of. `oram` is in the state of the
    /// last checkpoint; nothing is changed.
    pub(crate) fn sight<S: BucketStore>(
        &self,
        oram: &mut VolumeOram<S>,
    ) -> Result<Sighting, VolumeError> {
        // In an honest past, storage saw nothing before the directory held it, unless moves were synced late.
        if self.head.may_lose_moves {
            return Ok(Sighting::NotYet);
        }
        let Pending { accesses, evictions, .. } = self.pending;
        let next = oram.backend().evictions_after(accesses, evictions);
        Ok(oram.backend_mut().sight(next)?)
    }

    /// Refuses to go on from this history if storage has seen more, or if nobody can tell.
    pub(crate) fn refuse_if_behind<S: BucketStore>(
        &self,
        oram: &mut VolumeOram<S>,
        after_tampering: bool,
    ) -> Result<(), VolumeError> {
        match self.sight(oram)? {
            Sighting::Seen => Err(VolumeError::new(
                VolumeErrorKind::StateRolledBack,
                "storage has seen accesses that the client's directory does not know of: it was \
                 restored from a copy made before them, or its end is damaged. Use the latest \
                 directory; what this one knows of, `oblivio rescue` gives back",
            )),
            Sighting::Unclear if !after_tampering => Err(VolumeError::new(
                VolumeErrorKind::Tampered,
                "what would tell whether the client's directory is the latest is damaged in storage. \
                 Bring the store back as it was; or, if you know that the directory is the latest, open \
                 the volume with --after-tampering",
            )),
            Sighting::Unclear | Sighting::NotYet => Ok(()),
        }
    }

    /// Hands over the records of the last complete state.
    pub(super) fn each_kept(
        &mut self,
        mut each: impl FnMut(Record) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        self.reader.go_to(self.state.0);
        while self.reader.position() < self.state.1
            && let Some(record) = self.reader.next()?
        {
            each(record)?;
        }
        Ok(())
    }

    /// Hands over what came in after the last checkpoint, to be done again.
    pub(crate) fn each_pending(
        &mut self,
        mut repeat: impl FnMut(Record) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        self.reader.go_to(self.state.1);
        while let Some(record) = self.reader.next()? {
            match record {
                // A state that is not complete: nothing comes after it.
                Record::Head(_) => return Ok(()),
                record => {
                    repeat(record)?;
                }
            }
        }
        Ok(())
    }
}

/// Which records there are, and whether they are in order.
struct Outline {
    /// The last complete state.
    complete: Option<(Head, (Position, Position))>,
    /// One of which not all records have come.
    incomplete: Option<(Head, Position)>,
    pending: Pending,
}

impl Outline {
    fn read(reader: &mut StateReader, is_flat: bool) -> Result<Self, VolumeError> {
        let mut outline = Self { complete: None, incomplete: None, pending: Pending::default() };
        loop {
            let start = reader.position();
            let Some(record) = reader.next()? else {
                return Ok(outline);
            };
            let Self { complete, incomplete, pending } = &mut outline;
            match (record, incomplete.is_some(), complete.is_some()) {
                (Record::Head(head), false, _) => *incomplete = Some((head, start)),
                (Record::Block(_), true, _) => (),
                (Record::Taken(_), true, _) if !is_flat => (),
                // Only a snapshot has a map: a checkpoint's follows from what came in before it,
                // unless most of it lies in the tree.
                (Record::Map { .. }, true, is_checkpoint) if !(is_flat && is_checkpoint) => (),
                (Record::End, true, _) => {
                    *complete =
                        incomplete.take().map(|(head, start)| (head, (start, reader.position())));
                    *pending = Pending::default();
                }
                (
                    record @ (Record::Batch(_)
                    | Record::Forget { .. }
                    | Record::Evict
                    | Record::InPlace { .. }),
                    false,
                    true,
                ) => pending.add(&record),
                _ => return Err(damaged("the client's state holds a record out of place")),
            }
        }
    }
}

/// A position map that refuses what is out of bounds.
struct BoundedMap {
    map: LivePosMap,
    leaf_level: u8,
}

impl BoundedMap {
    fn set_all(&mut self, start: u64, mappings: Vec<Option<Mapping>>) -> Result<(), VolumeError> {
        for (i, mapping) in mappings.into_iter().enumerate() {
            if let Some(mapping) = mapping {
                let address = start.checked_add(i as u64).ok_or_else(out_of_bounds)?;
                self.set(address, mapping)?;
            }
        }
        Ok(())
    }

    /// What a record does to the map, without storage.
    fn apply(&mut self, record: Record) -> Result<(), VolumeError> {
        match record {
            Record::Map { start, mappings } => self.set_all(start, mappings),
            Record::Batch(accesses) => accesses.iter().try_for_each(|access| {
                if access.step.is_of_nothing() {
                    return Ok(());
                }
                let was_alive = self.map.get(access.step.address).is_some_and(|old| old.live);
                let live = was_alive || access.data.is_some();
                self.set(access.step.address, Mapping { leaf: access.step.to, live })
            }),
            Record::Forget { start, end } if start <= end && end <= self.map.capacity() => {
                self.map.forget(start..end);
                Ok(())
            }
            Record::Forget { .. } => Err(out_of_bounds()),
            _ => Ok(()),
        }
    }

    fn set(&mut self, address: u64, mapping: Mapping) -> Result<(), VolumeError> {
        let Mapping { leaf: Leaf(leaf), .. } = mapping;
        if address < self.map.capacity() && leaf >> self.leaf_level == 0 {
            self.map.set(address, mapping);
            Ok(())
        } else {
            Err(out_of_bounds())
        }
    }
}

pub(crate) fn out_of_bounds() -> VolumeError {
    damaged("the client's state names a block or a leaf that does not exist")
}
