//! From parameters to a volume that there is.

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

/// The owner of a new volume, who opens it with `secret`. To try a passphrase costs what `cost` says.
///
/// # Errors
/// [`Input`](crate::ErrorKind::Input) for a secret or a label of another length than they may have.
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

/// A new volume: what it is to hold from its beginning, and who owns it.
pub struct Creation<'a> {
    /// Where it is to be. There is nothing yet.
    pub location: &'a Location,
    /// How storage is used.
    pub storage: &'a StoreOptions,
    /// The client's directory. Made if it is missing.
    pub state: &'a Path,
    /// Who owns it.
    pub owner: &'a Unlocked,
    /// How it is run.
    pub options: VolumeOptions,
    /// What it is to hold. Without it, zeros.
    pub contents: Option<&'a mut dyn Contents>,
}

impl Creation<'_> {
    /// Makes storage and directory, and has `finish` do the rest with the open volume: whether there is a volume in the end is what that answers.
    ///
    /// # Errors
    /// Any. What was made is removed again, since it would be in the way of the next attempt, unless somebody else has taken its place meanwhile. The error says what could
    /// not be removed.
    pub fn make<T>(
        self,
        coins: Coins,
        finish: impl FnOnce(Volume) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Self { location, storage, state, owner, options, contents } = self;
        let had_directory = state.symlink_metadata().is_ok();
        let dir = Box::new(home::create(state)?);
        // Who has the directory has found it empty, so what is in it later is this one's.
        let was_empty = dir.names().is_ok_and(|names| names.is_empty());
        let made = (|| {
            let store = location.create(&shapes(owner.superblock.params())?, storage)?;
            let files = files(location);
            let made = Volume::create_with(store, dir, owner, options, coins, contents);
            made.map_err(Error::from)
                .and_then(finish)
                .map_err(|error| undone((location, state), &files, error))
        })();
        if made.is_err() && was_empty {
            let _ = match had_directory {
                true => empty(state),
                false => fs::remove_dir_all(state),
            };
        }
        made
    }
}

/// Removes storage that did not become a volume.
fn undone((location, state): (&Location, &Path), made: &[FileId], error: Error) -> Error {
    // Whoever has taken it over has a volume there, perhaps another one of the same name.
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
                    "{error}. What was made of it could not be removed ({why}): `oblivio remove {location}` does"
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

/// Which file it is, whatever its name: its device and its number.
type FileId = Option<(u64, u64)>;

/// The files that there are at a location. A server knows by itself who may remove what.
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

fn empty(directory: &Path) -> io::Result<()> {
    fs::read_dir(directory)?.try_for_each(|entry| fs::remove_file(entry?.path()))
}
