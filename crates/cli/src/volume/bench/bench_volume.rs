//! The volume under measurement.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio::Location;
use oblivio::creation;
use oblivio_core::view::{Recorder, Tally};
use oblivio_store::StoreOptions;
use oblivio_volume::device::BlockDevice;
use oblivio_volume::keys::{Cost, Secret};
use oblivio_volume::state_dir::FsStateDir;
use oblivio_volume::superblock::VolumeParams;
use oblivio_volume::volume::shapes;
use oblivio_volume::{Disk, DiskOptions, Volume, VolumeOptions, schemes};
use rand::Rng;
use zeroize::Zeroizing;

use super::super::opening;
use super::spending::{Meter, TimeByPurpose};
use crate::args::BenchArgs;
use crate::error::CliError;
use crate::files;

/// A volume whose file is already unlinked: the system frees it when the process ends. The caller
/// of [`Self::create`] deletes the client's directory.
pub(super) struct BenchVolume {
    disk: Disk,
    seen: Arc<Mutex<Tally>>,
    meter: Meter,
}

impl BenchVolume {
    /// Creates an empty volume, and its client's directory, in the directory `place`.
    pub(super) fn create(place: &Path, args: &BenchArgs) -> Result<Self, CliError> {
        let params = VolumeParams::plan(&schemes::requirements(args.size))?;
        let mut coins = opening::coins()?;
        let mut secret = Zeroizing::new(vec![0; 32]);
        coins.fill_bytes(&mut secret);
        let secret = Secret::KeyFile(secret);
        let owner = creation::owner(params.clone(), &secret, Cost::FLOOR, "", &mut coins)?;

        let path = place.join("volume");
        let options = StoreOptions::default().with_direct(args.direct);
        let store = Location::from(oblivio_store::Location::File(path.clone()))
            .create(&shapes(&params)?, &options)?;
        // Unlink the file at once: the system frees it however the process ends.
        fs::remove_file(&path).map_err(|error| files::cannot_write(&path, &error))?;
        let seen = Arc::new(Mutex::new(Tally::new()));
        let meter = Meter::start();
        let store = Recorder::new(store, meter.on_store(seen.clone()));
        let dir = FsStateDir::create(&place.join("state"))?;
        let options = VolumeOptions::default().with_sync_moves(args.sync_moves.into());
        let volume = Volume::create(store, meter.on_dir(dir), &owner, options, coins)?;
        let cache_bytes_max = cache_bytes(args.size);
        let options = DiskOptions::default().with_cache_bytes_max(cache_bytes_max);
        let disk = Disk::start(volume, &options)?;
        Ok(Self { disk, seen, meter })
    }

    pub(super) fn disk(&self) -> &dyn BlockDevice {
        &self.disk
    }

    pub(super) fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    /// Counts of the calls to storage so far, with their bytes.
    pub(super) fn seen(&self) -> Tally {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time that the thread of the volume has spent so far, by purpose.
    pub(super) fn spent(&self) -> TimeByPurpose {
        self.meter.spent()
    }

    pub(super) fn close(self) -> Result<(), CliError> {
        Ok(self.disk.close()?)
    }
}

/// The default cache size, but at most a 32nd of the disk. With more, the benchmark of a small disk
/// would measure only the cache.
pub(super) fn cache_bytes(disk_bytes: u64) -> u64 {
    DiskOptions::default().cache_bytes_max.min(disk_bytes / 32)
}
