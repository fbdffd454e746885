//! The volumes of a server, by client and name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_core::store::TreeShape;
use oblivio_shares::host::Host;
use oblivio_shares::message::{Refusal as NotSetUp, Setup};
use oblivio_store::StoreKind;
use oblivio_wire::keys::PublicKey;
use oblivio_wire::{FailureKind, Opened};

use super::BucketLimits;
use super::clock;
use super::peer_links::SharedVolumeId;
use super::refusal::Refusal;
use super::share_host::ComputeRequest;
use super::volume::{ConnectionId, Role, Volume};
use super::volume_storage::VolumeCatalog;

/// The volumes of one client.
pub(super) struct ClientVolumes {
    catalog: Box<dyn VolumeCatalog>,
    /// The client's key, by which other servers refer to it; `None` in a server without keys.
    pub(super) owner: Option<PublicKey>,
    quota_bytes: Option<u64>,
    limits: BucketLimits,
    /// Volumes that are in use or were used recently.
    volumes: Mutex<BTreeMap<String, Arc<Volume>>>,
    /// Locked during a creation, so that the quota is checked against a stable count.
    making: Mutex<()>,
}

impl ClientVolumes {
    pub(super) fn new(
        catalog: Box<dyn VolumeCatalog>,
        owner: Option<PublicKey>,
        quota_bytes: Option<u64>,
        limits: &BucketLimits,
    ) -> Self {
        Self {
            catalog,
            owner,
            quota_bytes,
            limits: limits.clone(),
            volumes: Mutex::default(),
            making: Mutex::default(),
        }
    }

    fn volumes(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Volume>>> {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume named `name`. It need not exist.
    pub(super) fn volume(&self, name: &str) -> Arc<Volume> {
        let mut volumes = self.volumes();
        let entry = volumes.entry(name.to_owned());
        entry.or_insert_with(|| Arc::new(Volume::new(self.catalog.storage(name)))).clone()
    }

    /// Whether a volume named `name` exists.
    pub(super) fn has(&self, name: &str) -> Result<bool, Refusal> {
        Volume::new(self.catalog.storage(name)).is_there()
    }

    /// Creates a volume, if the client's quota allows it.
    pub(super) fn create(
        &self,
        volume: &Volume,
        who: ConnectionId,
        shapes: &[TreeShape],
    ) -> Result<Opened, Refusal> {
        let _one_at_a_time = self.making();
        volume.create(who, shapes, || self.check_room(shapes))
    }

    fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a message of the client to the share computations of a volume.
    pub(super) fn compute(
        &self,
        volume: &Volume,
        name: &str,
        who: (ConnectionId, Role),
        request: ComputeRequest<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let computing = request.service.computing()?;
        let client = self.owner.ok_or_else(Refusal::computes_nothing)?;
        let volume_id = SharedVolumeId { client, name: name.to_owned() };
        // After a successful check, `making` stays locked until the setup has created its files.
        let making = RefCell::new(None);
        let check = |setup: &Setup| {
            computing.check(setup)?;
            *making.borrow_mut() = None;
            let one_at_a_time = self.making();
            self.check_quota(Host::file_bytes(setup)).map_err(|Refusal { kind, message }| {
                NotSetUp { kind: kind.store_kind(), why: message }
            })?;
            *making.borrow_mut() = Some(one_at_a_time);
            Ok(())
        };
        volume.compute(who, &volume_id, request, &check)
    }

    /// Checks that the client may create a volume with these `shapes`. A volume counts with its
    /// full size.
    fn check_room(&self, shapes: &[TreeShape]) -> Result<(), Refusal> {
        let volumes = self.check_quota(StoreKind::File.bytes_needed(shapes)?)?;
        let volumes_max = self.limits.volumes_per_client_max;
        if volumes >= volumes_max {
            let message = format!("a client may have {volumes_max} volumes; remove one");
            return Err(Refusal::new(FailureKind::Full, message));
        }
        Ok(())
    }

    /// Checks that `needed` more bytes are within the quota. Returns the client's number of
    /// volumes.
    fn check_quota(&self, needed: u64) -> Result<usize, Refusal> {
        let (volumes, used) = self
            .catalog
            .used()
            .map_err(|cause| Refusal::io("count the volumes of a client", &cause))?;
        let left = self.quota_bytes.map(|quota| quota.saturating_sub(used));
        match left {
            Some(left) if needed > left => {
                let message = format!(
                    "the volume would take {needed} bytes, but only {left} bytes of this \
                     client's quota are left"
                );
                Err(Refusal::new(FailureKind::Full, message))
            }
            _ => Ok(volumes),
        }
    }

    /// The number of open stores.
    pub(super) fn stores_open(&self) -> usize {
        self.volumes().values().filter(|volume| volume.is_open()).count()
    }

    /// Closes stores that have been idle for long, and the longest idle ones if there are too many.
    pub(super) fn close_idle(&self) {
        let until = clock::now().saturating_sub(self.limits.stores_kept_for);
        let mut volumes = self.volumes();
        let idle =
            volumes.values().filter_map(|volume| Some((volume.idle_since()?, volume.clone())));
        let mut idle: Vec<_> = idle.collect();
        idle.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        for (i, (since, volume)) in idle.into_iter().enumerate() {
            if i >= self.limits.idle_stores_per_client_max || since <= until {
                volume.close_if_idle();
            }
        }
        // While the lock is held, no other thread can get a volume that only this map holds.
        volumes.retain(|_, volume| {
            Arc::strong_count(volume) > 1 || volume.is_open() || volume.computes()
        });
    }

    /// Aborts all waiting for other servers, because this server must stop.
    pub(super) fn give_up_computing(&self) {
        self.volumes().values().for_each(|volume| volume.give_up_computing());
    }

    /// Closes all stores that are not in use.
    pub(super) fn close_all(&self) {
        let mut volumes = self.volumes();
        volumes.values().for_each(|volume| volume.close_if_idle());
        volumes.clear();
    }
}
