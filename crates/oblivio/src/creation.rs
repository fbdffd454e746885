//! From parameters to a volume that there is.

use std::fs;
use std::path::Path;

use oblivio_core::durable::Contents;
use oblivio_store::{Location, StoreOptions};
use oblivio_volume::keys::{Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::superblock::{Superblock, Unlocked, VolumeParams};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Coins, Volume, VolumeError, VolumeOptions};

use crate::error::Error;
use crate::home;

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
    /// Any. What was made is removed again: it would be in the way of the next attempt.
    pub fn make<T, E: From<Error>>(
        self,
        coins: Coins,
        finish: impl FnOnce(Result<Volume, VolumeError>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Self { location, state, owner, options, contents } = self;
        let had_state = state.exists();
        let made = (|| {
            let failed = |error: VolumeError| E::from(error.into());
            let dir = Box::new(home::create(state)?);
            let shapes = shapes(owner.superblock.params()).map_err(failed)?;
            let store = location.create(&shapes, &StoreOptions::default());
            let store = store.map_err(|error| E::from(error.into()))?;
            let made = Volume::create_with(store, dir, owner, options, coins, contents);
            finish(made).inspect_err(|_| {
                // The store is this one's: otherwise it could not have been made.
                let _ = location.remove();
            })
        })();
        if made.is_err() && !had_state {
            let _ = fs::remove_dir_all(state);
        }
        made
    }
}
