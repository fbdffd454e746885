//! Where a volume is, and how it is made and opened.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use oblivio_store::StoreOptions;
use oblivio_volume::keys::{Attempt, Cost, Secret};
use oblivio_volume::plan::ArrayRequirements;
use oblivio_volume::superblock::VolumeParams;
use oblivio_volume::unlock::NewerCopies;
use oblivio_volume::{Coins, DiskOptions, Lengths, Recovery, VolumeOptions};
use rustix::time::{ClockId, clock_gettime};

use crate::creation::{self, Creation};
use crate::error::{Error, ErrorKind};
use crate::location::Location;
use crate::opening::{self, Locked, Unlocking};
use crate::requirements::requirements;
use crate::volume::Volume;

/// Milliseconds that trying a passphrase takes on the machine that made the volume.
const UNLOCK_MILLIS: u32 = 1000;

/// Where a volume is, and what is not as usual with it.
///
/// ```
/// use oblivio::{Place, Secret};
///
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(&folder)?;
/// let place = Place::new("disk.obl")?.with_state("client").with_cache(1 << 20);
/// let secret = Secret::key_file(&[7; 32]);
/// place.create(&secret, 4 << 20)?.close()?;
/// assert_eq!(place.open(&secret)?.bytes(), 4 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Place {
    location: Location,
    state: Option<PathBuf>,
    storage: StoreOptions,
    options: VolumeOptions,
    disk: DiskOptions,
}

impl Place {
    /// A path, or a URL as the program takes it: [`Location`] lists them.
    ///
    /// # Errors
    /// [`Input`](crate::ErrorKind::Input) for a URL that is none.
    pub fn new(location: impl AsRef<OsStr>) -> Result<Self, Error> {
        Ok(Self {
            location: Location::parse(location.as_ref())?,
            state: None,
            storage: StoreOptions::default(),
            options: VolumeOptions::default(),
            disk: DiskOptions::default(),
        })
    }

    /// With this client's directory, and not [that of the user](crate::home). It must not lie where storage is.
    #[must_use]
    pub fn with_state(self, directory: impl Into<PathBuf>) -> Self {
        Self { state: Some(directory.into()), ..self }
    }

    /// With a cache of so many bytes. What it answers, storage does not see; with 0, each block of a request is an access.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.disk.cache_bytes_max = bytes;
        self
    }

    /// With storage that is used so.
    #[must_use]
    pub fn with_storage(self, storage: StoreOptions) -> Self {
        Self { storage, ..self }
    }

    /// With a volume that is run so.
    #[must_use]
    pub fn with_options(self, options: VolumeOptions) -> Self {
        Self { options, ..self }
    }

    /// With a disk that is run so: cache and schedule.
    #[must_use]
    pub fn with_disk(self, disk: DiskOptions) -> Self {
        Self { disk, ..self }
    }

    /// Makes a volume of so many bytes, rounded up to whole blocks, and opens it. It reads as zeros.
    ///
    /// With a passphrase, this and each opening take about a second and up to 1 GiB of memory, so that guesses are expensive. A key file
    /// takes neither.
    ///
    /// # Errors
    /// [`Input`](crate::ErrorKind::Input) if there is something already, or there can be no such volume; those of storage and of the client's
    /// directory. What was made is removed again; where that fails, the error says so.
    pub fn create(&self, secret: &Secret, bytes: u64) -> Result<Volume, Error> {
        self.create_as(secret, &requirements(bytes, self.location.kind()))
    }

    /// Creates a volume that meets `requirements`. The function
    /// [`requirements`](crate::requirements()) gives the defaults.
    ///
    /// # Errors
    /// Those of [`Self::create`].
    pub fn create_as(
        &self,
        secret: &Secret,
        requirements: &ArrayRequirements,
    ) -> Result<Volume, Error> {
        self.check()?;
        let params = VolumeParams::plan(requirements)?;
        // Not to stretch a passphrase in vain. The store will refuse what exists again.
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

    /// Opens a volume that there is. One that was not closed is recovered: it holds all that was flushed.
    ///
    /// # Errors
    /// Each kind has its meaning here: an opening writes, too.
    pub fn open(&self, secret: &Secret) -> Result<Volume, Error> {
        self.check()?;
        let locked = Locked {
            location: &self.location,
            state: self.state.as_deref(),
            attempt: Attempt::default(),
            newer: NewerCopies::Refuse,
        };
        let Unlocking { store, owner, state, dir, .. } =
            locked.unlock(&self.storage, || Ok::<_, Error>(secret.clone()))?;
        let coins = Coins::from_system()?;
        let (volume, recovery) =
            oblivio_volume::Volume::open(store, Box::new(dir), &owner, self.options(), coins)?;
        Volume::start(volume, &self.disk, state, recovery)
    }
}

impl Place {
    /// Refuses what no volume in use can have, before storage is asked anything.
    fn check(&self) -> Result<(), Error> {
        let StoreOptions { read_only, beside_writer, may_be_cut_off, .. } = self.storage;
        if read_only || beside_writer || may_be_cut_off {
            let message = "a volume that is in use is written to, also where it is only read: leave out read_only, beside_writer and may_be_cut_off";
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(self.disk.schedule.map_or(Ok(()), |schedule| schedule.check())?)
    }

    /// At a fixed rate, what goes into the client's directory is as long as the rate makes it.
    fn options(&self) -> VolumeOptions {
        match self.disk.schedule {
            Some(_) => self.options.with_lengths(Lengths::Constant),
            None => self.options,
        }
    }
}

/// Since a moment that does not change.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
