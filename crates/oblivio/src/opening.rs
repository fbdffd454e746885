//! Opens stores and unlocks volumes, given their location and secret.

use std::path::{Path, PathBuf};

use oblivio_core::durable::find_number;
use oblivio_core::store::BucketStore;
use oblivio_shares::remote::SharedStore;
use oblivio_store::{
    BoxedStore, Condition, OpenErrorKind, OpenedStore, RemoteMode, StoreKind, StoreOptions,
};
use oblivio_volume::keys::{Secret, SecretKind, UnlockLimits};
use oblivio_volume::state_dir::{FsStateDir, StateDir};
use oblivio_volume::superblock::{
    LockedSuperblock, SuperblockError, SuperblockErrorKind, Unlocked, VolumeId, VolumeParams,
};
use oblivio_volume::unlock::{self, NewerCopies, UnlockError};
use oblivio_volume::volume::{explain_rollback, shapes};
use oblivio_volume::{Volume, VolumeError};

use crate::error::{Error, ErrorKind};
use crate::home;
use crate::location::Location;

/// An unlocked store, and the client's directory of its volume.
pub struct UnlockedStore {
    /// The open store.
    pub store: BoxedStore,
    /// The condition in which the store was found.
    pub condition: Condition,
    /// The owner of the volume, with the authenticated superblock and the volume key.
    pub owner: Unlocked,
    /// Path of the client's directory.
    pub state: PathBuf,
    /// The client's directory, locked. On servers, it was locked before the store was opened to
    /// write. It is open read-only if the store is, or if [`UnlockRequest::newer`] is
    /// [`LeaveOut`](NewerCopies::LeaveOut).
    pub dir: FsStateDir,
}

/// A request to unlock a volume: its location, limits and options.
pub struct UnlockRequest<'a> {
    /// The location of the volume.
    pub location: &'a Location,
    /// The client's directory, if it is not [the default one](home::client_directory).
    pub state: Option<&'a Path>,
    /// Limits on the slots to try and on their cost.
    pub limits: UnlockLimits,
    /// The treatment of superblocks of newer programs.
    pub newer: NewerCopies,
}

/// The public superblock of a volume, and the condition of the store that holds it. A volume on
/// files may be in use meanwhile.
///
/// # Errors
/// If storage cannot be opened, or holds no volume; [`Locked`](ErrorKind::Locked) if another
/// process is creating the volume.
pub fn read_public(location: &Location) -> Result<(LockedSuperblock, Condition), Error> {
    let (superblock, condition) =
        open_when_created(location, || read_public_while_in_use(location))?;
    check_parties(location, superblock.unauthenticated_params())?;
    Ok((superblock, condition))
}

fn read_public_while_in_use(location: &Location) -> Result<(LockedSuperblock, Condition), Error> {
    let OpenedStore { mut store, condition } = location.open(&options_while_in_use())?;
    let superblock =
        unlock::read_public(&mut store).map_err(|error| no_superblock(error, location.kind()))?;
    Ok((superblock, condition))
}

/// Opens share servers read-only to check whether `server` needs repair: see
/// [`Location::open_to_repair`].
///
/// # Errors
/// Errors of [`Location::open_to_repair`]; [`Locked`](ErrorKind::Locked) if another process is
/// creating the volume.
pub fn look_to_repair(
    location: &Location,
    server: usize,
    options: &StoreOptions,
) -> Result<SharedStore, Error> {
    open_when_created(location, || {
        Ok(location.open_to_repair(server, RemoteMode::Look, options)?)
    })
}

/// Whether the creation of a volume was finished. Determined if the volume cannot be opened or has
/// no superblock.
enum CreationState {
    /// Creation was not finished. Holds the error to report.
    Unfinished(Error),
    /// Creation was finished.
    Finished,
    /// Whether creation was finished could not be determined.
    Unknown,
}

impl CreationState {
    /// Examines the location of a volume after `error` was found: it could not be opened, or has no
    /// superblock. This process must not have the volume open to write.
    fn at(location: &Location, error: &Error) -> Self {
        use ErrorKind::{Input, Tampered, UnknownVersion};
        // Do not wait for an unreachable server again.
        if !matches!(error.kind(), Tampered | Input | UnknownVersion) {
            return Self::Unknown;
        }
        let stores = match location.remnants() {
            Ok(remnants) => remnants.stores,
            Err(locked) if locked.kind() == OpenErrorKind::Locked => {
                return Self::Unfinished(locked.into());
            }
            Err(_) => return Self::Unknown,
        };
        let mut unfinished = Self::Unknown;
        for mut store in stores {
            match unlock::read_public(&mut store) {
                Ok(_) => return Self::Finished,
                Err(error) if error.kind() == SuperblockErrorKind::NotAVolume => {
                    unfinished = Self::Unfinished(no_superblock(error, location.kind()));
                }
                Err(_) => return Self::Unknown,
            }
        }
        match location.kind() {
            // For other stores, the error of opening says more.
            StoreKind::Shares { .. } => unfinished,
            _ => Self::Unknown,
        }
    }
}

/// Opens a volume. If its creation is in progress or was not finished, reports that. A server waits
/// a moment for the creating client; if the creation is finished then, opens the volume again.
fn open_when_created<T>(
    location: &Location,
    open: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let error = match open() {
        Err(error) => error,
        opened => return opened,
    };
    match CreationState::at(location, &error) {
        CreationState::Unfinished(unfinished) => Err(unfinished),
        CreationState::Finished => open(),
        CreationState::Unknown => Err(error),
    }
}

/// The error to report for a volume that was opened and has no superblock, as `error` says.
fn unfinished_error(location: &Location, error: Error) -> Error {
    let is_there = || read_public_while_in_use(location).is_ok();
    match CreationState::at(location, &error) {
        CreationState::Unfinished(unfinished) => unfinished,
        CreationState::Finished if is_there() => {
            Error::new(ErrorKind::Locked, "the volume has just been created: try again")
        }
        CreationState::Finished | CreationState::Unknown => error,
    }
}

/// Options to read a volume while another process may be writing to it.
fn options_while_in_use() -> StoreOptions {
    StoreOptions::default().with_read_only(true).with_beside_writer(true)
}

impl UnlockRequest<'_> {
    /// Opens the store, and unlocks its superblock. `secret` is called at most once, and only after
    /// a superblock was found.
    ///
    /// # Errors
    /// Errors of the store, of the superblock, of the client's directory, and of `secret`.
    pub fn unlock<E: From<Error>>(
        &self,
        options: &StoreOptions,
        secret: impl FnOnce() -> Result<Secret, E>,
    ) -> Result<UnlockedStore, E> {
        // Look first: a refused command must not take the volume from a client that uses it.
        let open = || self.location.open(options).map_err(Error::from);
        let look = || self.location.look(options).map_err(Error::from);
        let looked = if options.read_only { None } else { open_when_created(self.location, look)? };
        let is_looked_at = looked.is_some();
        let (mut found, is_alone) = match looked {
            Some(looked) => (looked, false),
            None if options.read_only => {
                let opened = open_when_created(self.location, open);
                (opened.or_else(|error| self.open_without_header(options, error))?, false)
            }
            // The volume is open exclusively, so no other process is creating it.
            None => (open()?, true),
        };
        let without = |error| if is_alone { error } else { unfinished_error(self.location, error) };
        let is_cut_off = found.condition.is_cut_off;
        let owner = match self.owner_in(&mut found.store, is_cut_off, secret, without) {
            Ok(owner) => owner,
            Err(UnlockFailure::StoreIsOlder(newest, error)) => {
                return Err(convert(match self.directory(newest.superblock.volume_id()) {
                    Some(dir) => explain_rollback(found.store, &dir, &newest, error),
                    None => error,
                }));
            }
            Err(UnlockFailure::Other(error)) => return Err(error),
        };
        let state = state_of(self.state, owner.superblock.volume_id())?;
        // The lock of the directory keeps other clients out until the volume is open.
        let dir = match self.newer {
            NewerCopies::Refuse if !options.read_only => home::open(&state)?,
            _ => home::open_to_read(&state)?,
        };
        if is_looked_at {
            match self.newer {
                NewerCopies::Refuse => {
                    Volume::check_before_opening(found.store, &dir, &owner).map_err(convert)?;
                }
                // A rescue accepts storage of any age.
                NewerCopies::LeaveOut => drop(found.store),
            }
            found = open()?;
        }
        let OpenedStore { store, condition } = found;
        Ok(UnlockedStore { store, condition, owner, state, dir })
    }

    /// Opens a file with a damaged header read-only, with the shapes from the superblock in the
    /// client's directory. `error` is the error of opening the file by its header.
    fn open_without_header(
        &self,
        options: &StoreOptions,
        error: Error,
    ) -> Result<OpenedStore, Error> {
        if !matches!(error.kind(), ErrorKind::Input | ErrorKind::Tampered) {
            return Err(error);
        }
        let Some(copy) = self.client_copy() else { return Err(error) };
        let shapes = shapes(copy.unauthenticated_params())?;
        // A file of another length is a different file, named by mistake.
        let whole = options.clone().with_allow_incomplete(false);
        match self.location.open_without_header(&shapes, &whole) {
            Ok(Some(opened)) => Ok(opened),
            Err(why) if why.kind() == OpenErrorKind::Truncated => Err(Error::new(
                error.kind(),
                format!("{why}. If it is another file, check the path"),
            )),
            _ => Err(error),
        }
    }

    /// The copy of the superblock in the client's directory, if a rescue names the directory. The
    /// default directory is not known without a superblock.
    fn client_copy(&self) -> Option<LockedSuperblock> {
        if self.newer == NewerCopies::Refuse {
            return None;
        }
        // If the directory cannot be read, the error of storage says more.
        let dir = home::open_to_read(self.state?).ok()?;
        unlock::client_copy(&dir).ok()?
    }

    /// Unlocks a volume on files that another process has open. The result is authentic, but may
    /// not be the newest: the client's directory, which would show that, is in use.
    ///
    /// # Errors
    /// Errors of the store, of the superblock, and of `secret`.
    pub fn owner_while_in_use<E: From<Error>>(
        &self,
        secret: impl FnOnce() -> Result<Secret, E>,
    ) -> Result<(Unlocked, Condition), E> {
        // Report a missing superblock before the prompt for a secret.
        read_public(self.location)?;
        let OpenedStore { mut store, condition } =
            self.location.open(&options_while_in_use()).map_err(convert)?;
        Ok((self.owner_of(&mut store, condition.is_cut_off, secret)?, condition))
    }

    /// Unlocks the volume in a store that is open for inspection or for reading. `is_cut_off` is
    /// the field of the store's [`Condition`].
    ///
    /// # Errors
    /// Errors of the superblock, and of `secret`; [`Locked`](ErrorKind::Locked) while another
    /// client creates the volume; [`StoreRolledBack`](ErrorKind::StoreRolledBack) if the secret
    /// opens only the newer superblock that the client's directory names.
    pub fn owner_of<E: From<Error>>(
        &self,
        store: &mut impl BucketStore,
        is_cut_off: bool,
        secret: impl FnOnce() -> Result<Secret, E>,
    ) -> Result<Unlocked, E> {
        let without = |error| unfinished_error(self.location, error);
        self.owner_in(store, is_cut_off, secret, without).map_err(|error| match error {
            UnlockFailure::StoreIsOlder(_, error) => convert(error),
            UnlockFailure::Other(error) => error,
        })
    }

    /// Unlocks the volume. `without` maps the error of a store without a superblock.
    fn owner_in<E: From<Error>>(
        &self,
        store: &mut impl BucketStore,
        is_cut_off: bool,
        secret: impl FnOnce() -> Result<Secret, E>,
        without: impl FnOnce(Error) -> Error,
    ) -> Result<Unlocked, UnlockFailure<E>> {
        let mut kind = None;
        let secret = || secret().inspect(|secret| kind = Some(secret.kind()));
        let client_copy = self.client_copy();
        let directory = |volume| -> Option<Box<dyn StateDir>> {
            self.directory(volume).map(|dir| Box::new(dir) as _)
        };
        let client_copy = client_copy.as_ref();
        let unlocked =
            unlock::unlock(store, self.limits, self.newer, client_copy, directory, secret);
        let owner = unlocked.map_err(|error| {
            UnlockFailure::Other(match error {
                UnlockError::StoreIsOlder { newest, error } => {
                    return UnlockFailure::StoreIsOlder(newest, error);
                }
                UnlockError::NoSuperblock(_) if is_cut_off => {
                    let or_copy = match self.state {
                        Some(_) => "",
                        None => ", or name the client's directory, which has another copy",
                    };
                    E::from(Error::new(
                        ErrorKind::Tampered,
                        format!(
                            "the file was cut off, and no copy of the superblock is left: restore \
                             it from a backup{or_copy}"
                        ),
                    ))
                }
                UnlockError::NoSuperblock(error) => {
                    without(no_superblock(error, self.location.kind())).into()
                }
                UnlockError::NoSecret(error) => error,
                UnlockError::NotUnlocked(error) => not_unlocked(error, kind).into(),
            })
        })?;
        let checked = check_parties(self.location, owner.superblock.params());
        checked.map_err(|error| UnlockFailure::Other(error.into()))?;
        Ok(owner)
    }

    /// The client's directory of a volume, open read-only. `None` if it does not open; if it is in
    /// use, a later opening of the volume fails.
    fn directory(&self, volume: VolumeId) -> Option<FsStateDir> {
        home::open_to_read(&state_of(self.state, volume).ok()?).ok()
    }
}

/// The reason why [`UnlockRequest::owner_in`] returns no owner.
enum UnlockFailure<E> {
    /// The secret opens only the superblock that the client's directory names.
    StoreIsOlder(Box<Unlocked>, VolumeError),
    /// Any other error.
    Other(E),
}

/// The client's directory of a volume: the named one, or the default one.
///
/// # Errors
/// [`Input`](ErrorKind::Input) if there is neither.
pub fn state_of(named: Option<&Path>, volume: VolumeId) -> Result<PathBuf, Error> {
    let named = named.map(Path::to_owned);
    named.or_else(|| home::client_directory(volume)).ok_or_else(|| {
        let message = "there is no home directory: name the client's directory";
        Error::new(ErrorKind::Input, message)
    })
}

/// Refuses a location that does not name the share servers of the volume: one server alone by its
/// own URL or by the path of its file, or `shares://` with another number of servers or of
/// colluding servers.
///
/// # Errors
/// [`Input`](ErrorKind::Input) if the location does not name them.
pub fn check_parties(location: &Location, params: &VolumeParams) -> Result<(), Error> {
    let facts = params.config()?.facts();
    let is_other = |name, named: usize| {
        find_number(&facts, name).filter(|of_volume| *of_volume != named as u64)
    };
    let refused = |message| Err(Error::new(ErrorKind::Input, message));
    let StoreKind::Shares { servers, colluding } = location.kind() else {
        return match find_number(&facts, "servers") {
            Some(of_volume) => refused(format!(
                "{location} holds only the records of a volume that is on {of_volume} share \
                 servers: name the volume by its shares:// URL, with all {of_volume} servers"
            )),
            None => Ok(()),
        };
    };
    if let Some(of_volume) = is_other("servers", servers) {
        return refused(format!(
            "the volume is on {of_volume} share servers, but {servers} are named: name all of \
             them, in the order of creation"
        ));
    }
    if let Some(of_volume) = is_other("colluding", colluding) {
        return refused(format!(
            "{of_volume} of the servers of this volume may collude, but the URL means {colluding} \
             (the default without collude=): write &collude={of_volume}"
        ));
    }
    Ok(())
}

/// Adds advice to an error of unlocking.
fn not_unlocked(error: SuperblockError, kind: Option<SecretKind>) -> Error {
    match error.kind() {
        SuperblockErrorKind::WrongKey => {
            let what = match kind {
                Some(SecretKind::KeyFile) => "the key file is wrong",
                _ => "the passphrase is wrong",
            };
            let message = format!("{what}: {error}. `oblivio key list` lists the key slots");
            Error::new(ErrorKind::WrongKey, message)
        }
        SuperblockErrorKind::TooCostly => Error::new(
            ErrorKind::Input,
            format!(
                "{error}. `oblivio key list` lists the cost of each slot; one of them can be \
                 named, and more memory can be allowed"
            ),
        ),
        _ => VolumeError::from(error).into(),
    }
}

/// The error, with advice, for a store that has the right format but no superblock.
pub fn no_superblock(error: SuperblockError, kind: StoreKind) -> Error {
    if error.kind() != SuperblockErrorKind::NotAVolume {
        return VolumeError::from(error).into();
    }
    let what = match kind {
        // Copies are never on share servers.
        StoreKind::Shares { .. } => {
            "If servers are missing or were away, bring all back first: the others may not agree \
             on it. If its creation was interrupted, it never was a volume: remove what is left of \
             it, and create it again. Otherwise restore its servers from backups"
        }
        _ => {
            "If it is an incomplete copy, go on with the copy. If it never was a volume, because \
             its creation was interrupted, `oblivio remove` removes it. Otherwise restore it from \
             a backup"
        }
    };
    let message = format!("the store has the form of a volume, but no superblock. {what}");
    Error::new(ErrorKind::Tampered, message)
}

/// Converts an error to the caller's error type, by way of [`Error`].
fn convert<E: From<Error>>(error: impl Into<Error>) -> E {
    E::from(error.into())
}
