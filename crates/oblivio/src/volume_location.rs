//! The location of a volume, with functions that create and open the volume.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use oblivio_store::StoreOptions;
use oblivio_volume::keys::{Cost, Secret, UnlockLimits};
use oblivio_volume::plan::ArrayRequirements;
use oblivio_volume::superblock::VolumeParams;
use oblivio_volume::unlock::NewerCopies;
use oblivio_volume::{Coins, DiskOptions, Lengths, Recovery, VolumeOptions};
use rustix::time::{ClockId, clock_gettime};

use crate::creation::{self, Creation};
use crate::error::{Error, ErrorKind};
use crate::location::Location;
use crate::opening::{self, UnlockRequest, UnlockedStore};
use crate::requirements::requirements;
use crate::volume::Volume;

/// Milliseconds that one passphrase attempt takes on the machine that creates the volume.
const UNLOCK_MILLIS: u32 = 1000;

/// The location of a volume, and the options that differ from the defaults.
///
/// ```
/// use oblivio::{Secret, VolumeLocation};
///
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(&folder)?;
/// let location = VolumeLocation::new("disk.obl")?.with_state("client").with_cache(1 << 20);
/// let secret = Secret::key_file(&[7; 32]);
/// location.create(&secret, 4 << 20)?.close()?;
/// assert_eq!(location.open(&secret)?.bytes(), 4 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct VolumeLocation {
    location: Location,
    state: Option<PathBuf>,
    storage: StoreOptions,
    options: VolumeOptions,
    disk: DiskOptions,
}

impl VolumeLocation {
    /// The volume at a path, or at a URL as for the program `oblivio`: see [`Location`].
    ///
    /// # Errors
    /// [`Input`](crate::ErrorKind::Input) for an empty location or an invalid URL.
    pub fn new(location: impl AsRef<OsStr>) -> Result<Self, Error> {
        Ok(Self {
            location: Location::parse(location.as_ref())?,
            state: None,
            storage: StoreOptions::default(),
            options: VolumeOptions::default(),
            disk: DiskOptions::default(),
        })
    }

    /// Sets the client's directory, instead of [the default one](crate::home). It must not be where
    /// storage is.
    #[must_use]
    pub fn with_state(self, directory: impl Into<PathBuf>) -> Self {
        Self { state: Some(directory.into()), ..self }
    }

    /// Sets the bytes of the cache. Storage does not see requests that the cache answers. With 0,
    /// each block of a request is an access.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.disk.cache_bytes_max = bytes;
        self
    }

    /// Sets the options of storage.
    #[must_use]
    pub fn with_storage(self, storage: StoreOptions) -> Self {
        Self { storage, ..self }
    }

    /// Sets the options of the volume.
    #[must_use]
    pub fn with_options(self, options: VolumeOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the options of the disk: cache and schedule.
    #[must_use]
    pub fn with_disk(self, disk: DiskOptions) -> Self {
        Self { disk, ..self }
    }

    /// Creates a volume of `bytes` bytes, rounded up to whole blocks, and opens it. It reads as
    /// zeros.
    ///
    /// With a passphrase, this and each opening take about a second and up to 1 GiB of memory,
    /// which makes guessing expensive. A key file takes neither.
    ///
    /// # Errors
    /// [`Input`](crate::ErrorKind::Input) if the location is not vacant, or if the options or the
    /// size are invalid. Also returns errors of storage and of the client's directory. On an error,
    /// removes what it has created; if storage cannot be removed, the error says so.
    pub fn create(&self, secret: &Secret, bytes: u64) -> Result<Volume, Error> {
        self.create_as(secret, &requirements(bytes, self.location.kind()))
    }

    /// Creates a volume that meets `requirements`. The function
    /// [`requirements`](crate::requirements()) gives the defaults.
    ///
    /// # Errors
    /// See [`Self::create`].
    pub fn create_as(
        &self,
        secret: &Secret,
        requirements: &ArrayRequirements,
    ) -> Result<Volume, Error> {
        self.check()?;
        let params = VolumeParams::plan(requirements)?;
        // Before a passphrase is stretched. The store refuses an existing volume again.
        self.location.check_vacant()?;
        let cost = match secret {
            Secret::Passphrase(_) => Cost::calibrate(UNLOCK_MILLIS, now)?,
            Secret::KeyFile(_) => Cost::FLOOR,
        };
        let mut coins = Coins::from_system()?;
        let owner = creation::owner(params, secret, cost, "", &mut coins)?;
        let state = opening::state_of(self.state.as_deref(), owner.superblock.volume_id())?;
        let creation = Creation {
            location: &self.location,
            storage: &self.storage,
            state: &state,
            owner: &owner,
            options: self.options(),
            contents: None,
        };
        creation.make(coins, |volume| {
            Volume::start(volume, &self.disk, state.clone(), Recovery::default())
        })
    }

    /// Opens an existing volume. A volume that was not closed is recovered: it holds everything
    /// that was flushed.
    ///
    /// # Errors
    /// Any kind, including errors of writing: opening writes to storage.
    pub fn open(&self, secret: &Secret) -> Result<Volume, Error> {
        self.check()?;
        let request = UnlockRequest {
            location: &self.location,
            state: self.state.as_deref(),
            limits: UnlockLimits::default(),
            newer: NewerCopies::Refuse,
        };
        let UnlockedStore { store, owner, state, dir, .. } =
            request.unlock(&self.storage, || Ok::<_, Error>(secret.clone()))?;
        let coins = Coins::from_system()?;
        let (volume, recovery) =
            oblivio_volume::Volume::open(store, Box::new(dir), &owner, self.options(), coins)?;
        Volume::start(volume, &self.disk, state, recovery)
    }
}

impl VolumeLocation {
    /// Refuses options that do not fit a volume in use, before storage is accessed.
    fn check(&self) -> Result<(), Error> {
        let StoreOptions { read_only, beside_writer, allow_incomplete, .. } = self.storage;
        if read_only || beside_writer || allow_incomplete {
            let message = "an open volume writes to storage, even if it is only read: leave out \
                           read_only, beside_writer and allow_incomplete";
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(self.disk.schedule.map_or(Ok(()), |schedule| schedule.check())?)
    }

    /// The volume's options. At a fixed rate, records in the client's directory have a constant
    /// length.
    fn options(&self) -> VolumeOptions {
        match self.disk.schedule {
            Some(_) => self.options.with_lengths(Lengths::Constant),
            None => self.options,
        }
    }
}

/// The time since a fixed moment.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
