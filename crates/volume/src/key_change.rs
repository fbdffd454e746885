//! How an owner changes who may open a volume.

use oblivio_core::BucketStore;
use oblivio_core::durable::AnyStore;

use crate::anchor;
use crate::error::VolumeError;
use crate::keys::VolumeKey;
use crate::ledger::{LedgerKeys, Past};
use crate::newest;
use crate::state_dir::StateDir;
use crate::superblock::{Superblock, Unlocked, copies};
use crate::tampering;
use crate::volume::seal_key;

/// Lets `change` add or remove key slots of a volume that nobody has open, and makes the outcome the
/// superblock that counts. Once this has returned, the client that owns `dir` takes no older one.
///
/// Storage may show a superblock of before, with slots that were removed: the directory is asked
/// first, and `change` is not called if storage or the directory went back.
///
/// # Errors
/// What `change` returns; nothing was changed then. [`VolumeErrorKind::StoreRolledBack`] and the other
/// kinds with which an opening refuses storage or a directory, [`VolumeErrorKind::Tampered`] also where that was
/// found before and not put right; any other when the change may have been
/// made or not: the next opening goes on with what is there.
///
/// [`VolumeErrorKind::StoreRolledBack`]: crate::VolumeErrorKind::StoreRolledBack
/// [`VolumeErrorKind::Tampered`]: crate::VolumeErrorKind::Tampered
pub fn change_slots<T, E: From<VolumeError>>(
    store: impl BucketStore + Send + 'static,
    dir: &mut dyn StateDir,
    owner: &mut Unlocked,
    change: impl FnOnce(&mut Superblock, &VolumeKey) -> Result<T, E>,
) -> Result<T, E> {
    let mut store = check_past(Box::new(store), dir, owner)?;
    // It may be in a cache alone, and the one before it be all that is durable: that is not overwritten first.
    newest::adopt(&mut store, dir, owner)?;
    let outcome = change(&mut owner.superblock, &owner.volume_key)?;
    copies::write_copies(&mut store, &owner.superblock).map_err(VolumeError::from)?;
    newest::record(dir, owner)?;
    Ok(outcome)
}

/// A directory that is not the latest may not know of the newest superblock either.
fn check_past(
    mut store: AnyStore,
    dir: &dyn StateDir,
    owner: &Unlocked,
) -> Result<AnyStore, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let keys = LedgerKeys::new(volume_key);
    let config = superblock.params().config()?;
    let past = Past::read(dir, &keys, &superblock.volume_id())?;
    newest::check(dir, owner)?;
    tampering::check_before_key_change(dir)?;
    past.known(dir, &keys)?.check(anchor::read(&mut store, &keys.anchor)?)?;
    let mut history = past.history;
    let mut array = history.array(&*config, seal_key(volume_key), store)?;
    history.refuse_if_behind(&mut *array, false)?;
    Ok(array.into_store())
}
