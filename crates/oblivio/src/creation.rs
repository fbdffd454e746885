//! Creates volumes.

use std::error::Error as _;
use std::fs;
use std::io;
use std::iter::successors;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use oblivio_core::durable::Contents;
use oblivio_store::StoreOptions;
use oblivio_volume::keys::{Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::state_dir::StateDir;
use oblivio_volume::superblock::{Superblock, Unlocked, VolumeParams};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Coins, Volume, VolumeError, VolumeOptions};

use crate::error::{Error, ErrorKind};
use crate::home;
use crate::location::Location;

/// Creates the key and the superblock of a new volume, which `secret` can unlock. `cost` is the
/// cost of trying a passphrase, and `label` is the label of the key slot.
///
/// # Errors
/// [`Input`](crate::ErrorKind::Input) if the secret or the label has a wrong length.
pub fn owner(
    params: VolumeParams,
    secret: &Secret,
    cost: Cost,
    label: &str,
    coins: &mut Coins,
) -> Result<Unlocked, Error> {
    let volume_key = VolumeKey::draw(coins);
    let slot = NewSlot { secret, cost, label };
    let superblock =
        Superblock::create(params, &volume_key, &slot, coins).map_err(VolumeError::from)?;
    Ok(Unlocked { superblock, volume_key, slot: 0 })
}

/// A volume to create: its location, owner and contents.
pub struct Creation<'a> {
    /// The location of the new volume. Nothing may exist there.
    pub location: &'a Location,
    /// Options of the store.
    pub storage: &'a StoreOptions,
    /// The client's directory. Created if missing.
    pub state: &'a Path,
    /// The unlocked superblock of the new volume.
    pub owner: &'a Unlocked,
    /// Options of the volume.
    pub options: VolumeOptions,
    /// Initial contents. `None` for zeros.
    pub contents: Option<&'a mut dyn Contents>,
}

impl Creation<'_> {
    /// Creates storage and the client's directory, and passes the open volume to `finish`. The
    /// volume stays if `finish` succeeds.
    ///
    /// # Errors
    /// Any kind. On an error, removes the new storage, unless another process has replaced it
    /// meanwhile. Also removes all files in a client's directory that was empty before, and a
    /// client's directory that was missing before. If storage cannot be removed, the error says so.
    pub fn make<T>(
        self,
        coins: Coins,
        finish: impl FnOnce(Volume) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Self { location, storage, state, owner, options, contents } = self;
        let had_directory = state.symlink_metadata().is_ok();
        let dir = Box::new(home::create(state)?);
        // The directory is locked, so if it was empty, its later contents are ours.
        let was_empty = dir.names().is_ok_and(|names| names.is_empty());
        let made = (|| {
            let store = location.create(&shapes(owner.superblock.params())?, storage)?;
            let files = files(location);
            let made = Volume::create_with(store, dir, owner, options, coins, contents);
            made.map_err(Error::from)
                .and_then(finish)
                .map_err(|error| remove_failed((location, state), &files, error))
        })();
        if made.is_err() && was_empty {
            let _ = match had_directory {
                true => remove_entries(state),
                false => fs::remove_dir_all(state),
            };
        }
        made
    }
}

/// Removes storage that did not become a volume, and returns the error to report.
fn remove_failed((location, state): (&Location, &Path), made: &[FileId], error: Error) -> Error {
    // Another process has replaced the storage, perhaps by another volume of the same name.
    if error.kind() == ErrorKind::Locked || files(location) != made {
        return error;
    }
    match location.remove() {
        Ok(()) if error.kind() == ErrorKind::NoSpace => {
            let what = match system_error(&error) {
                // The message of `error` advises what helps an existing volume.
                Some(cause) => format!(
                    "no room for {location} or its client's directory {} ({cause}): make room, or \
                     allow longer files",
                    state.display()
                ),
                None => error.to_string(),
            };
            let message = format!("{what}. Nothing is left of the new volume: create it again");
            Error::new(ErrorKind::NoSpace, message)
        }
        Ok(()) => error,
        Err(why) => {
            let kind = error.kind();
            Error::new(
                kind,
                format!(
                    "{error}. What was created could not be removed ({why}): run `oblivio remove \
                     {location}`"
                ),
            )
        }
    }
}

/// The I/O error that caused `error`, if any.
fn system_error(error: &Error) -> Option<&io::Error> {
    let mut causes = successors(error.source(), |&cause| cause.source());
    causes.find_map(|cause| cause.downcast_ref::<io::Error>())
}

/// Identifies a file regardless of its name: device and inode numbers. `None` if there is no file.
type FileId = Option<(u64, u64)>;

/// The local files of a location. Empty for a server, which decides itself who may remove a volume.
fn files(location: &Location) -> Vec<FileId> {
    match location {
        Location::Store(store) => files_of_store(store),
        Location::Shares(_) => Vec::new(),
    }
}

fn files_of_store(store: &oblivio_store::Location) -> Vec<FileId> {
    use oblivio_store::Location::{File, Stripe};
    match store {
        File(path) => vec![path.metadata().ok().map(|it| (it.dev(), it.ino()))],
        Stripe(members) => members.list().iter().flat_map(files_of_store).collect(),
        _ => Vec::new(),
    }
}

fn remove_entries(directory: &Path) -> io::Result<()> {
    fs::read_dir(directory)?.try_for_each(|entry| fs::remove_file(entry?.path()))
}
