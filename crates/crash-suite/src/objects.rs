//! A volume in objects, in the simulated world. Its client dies at any request, answers get lost,
//! and bodies arrive in part.
//!
//! The objects are in a [`MemoryService`], which outlives every crash. The store of the world holds
//! nothing: each request to the service is an operation of the world, so the world decides at which
//! request the client dies or an error occurs.

use std::ops::Range;

use bytes::Bytes;
use oblivio_core::store::{BucketStore, TreeShape};
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_store::objects::memory::{Faults, MemoryObjects, MemoryService};
use oblivio_store::objects::{Answer, Listed, ObjectName, Objects, Prefix, Synced, Ticket};
use oblivio_store::packed::Remains;
use oblivio_store::{OpenError, PackedMode, PackedOptions, PackedStore};
use oblivio_testkit::crash::CrashStore;
use oblivio_volume::device::{DiskError, DiskErrorKind};

/// Maximum bytes of the entries of a chunk. These volumes are so small that the default would never
/// be reached.
const CHUNK_BYTES: usize = 2_000;

/// Maximum bytes of trees that are kept in heads: superblocks and anchors.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// Bytes of chunks that trigger a flush, if the service may lose objects that are not synced.
const UNSYNCED_BYTES_MAX: usize = 40_000;

/// A service with the objects of one volume.
pub(crate) struct CloudService {
    service: MemoryService,
    /// Whether the service loses objects that are not synced, as a Redis cluster does.
    loses: bool,
    is_created: bool,
}

impl CloudService {
    pub(crate) fn new(seed: u64, loses: bool) -> Self {
        Self { service: MemoryService::new(seed), loses, is_created: false }
    }

    /// Opens the volume's store, or creates it.
    pub(crate) fn connect(
        &mut self,
        store: CrashStore,
        shapes: &[TreeShape],
    ) -> Result<PackedStore, DiskError> {
        let options = PackedOptions::default()
            .with_chunk_bytes(CHUNK_BYTES)
            .with_small_bytes_max(SMALL_BYTES_MAX)
            .with_unsynced_bytes_max(self.loses.then_some(UNSYNCED_BYTES_MAX));
        let failed = |error: OpenError| DiskError::new(DiskErrorKind::Failed, error.to_string());
        let remains = PackedStore::remains(Box::new(self.service.client())).map_err(failed)?;
        if !self.is_created && remains == Remains::Objects {
            // As the owner does after an interrupted creation.
            PackedStore::remove(Box::new(self.service.client())).map_err(failed)?;
        }
        let objects = Box::new(WorldObjects { objects: self.service.client(), world: store });
        let opened = match self.is_created {
            true => PackedStore::open(objects, PackedMode::Write, &options).map(|(store, _)| store),
            false => PackedStore::create(objects, shapes, &options),
        };
        if opened.is_ok() && !self.is_created {
            self.is_created = true;
            let mut faults = Faults::default();
            (faults.lost_answers, faults.late_creations) = (5, 5);
            // S3 servers create cut-off objects. Redis does not, but may lose objects.
            (faults.torn_bodies, faults.losses) = if self.loses { (0, 2) } else { (5, 0) };
            self.service.set_faults(faults);
        }
        opened.map_err(failed)
    }
}

/// A client whose requests are operations of the world.
struct WorldObjects {
    objects: MemoryObjects,
    world: CrashStore,
}

impl WorldObjects {
    /// Counts a request. If the machine dies at it, requests in flight take effect at random.
    fn step(&mut self) -> Result<(), StoreError> {
        let stepped = self.world.read(&[]).map(drop);
        if stepped.is_err() && self.world.world().is_off() {
            self.objects.die();
        }
        stepped.map_err(|error| StoreError::new(StoreErrorKind::Unreachable, error.to_string()))
    }
}

impl Objects for WorldObjects {
    fn begin_get(&mut self, name: ObjectName, range: Range<u64>) -> Ticket {
        self.objects.begin_get(name, range)
    }

    fn begin_create(&mut self, name: ObjectName, parts: Vec<Bytes>) -> Ticket {
        let ticket = self.objects.begin_create(name, parts);
        // If the client dies here, waiting for the answer fails.
        let _ = self.step();
        ticket
    }

    fn wait(&mut self, ticket: Ticket) -> Result<Answer, StoreError> {
        self.step()?;
        self.objects.wait(ticket)
    }

    fn forget(&mut self, ticket: Ticket) {
        self.objects.forget(ticket);
    }

    fn list(
        &mut self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError> {
        self.step()?;
        self.objects.list(prefix, after)
    }

    fn delete(&mut self, names: &[ObjectName]) -> Result<(), StoreError> {
        let half = names.len() / 2;
        self.objects.delete(&names[..half])?;
        self.step()?;
        self.objects.delete(&names[half..])
    }

    fn sync(&mut self) -> Result<Synced, StoreError> {
        self.step()?;
        self.objects.sync()
    }
}
