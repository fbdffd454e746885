//! How an owner changes who may open a volume.

use oblivio_core::BucketStore;
use oblivio_core::durable::AnyStore;

use crate::error::VolumeError;
use crate::keys::VolumeKey;
use crate::ledger::{LedgerKeys, Past};
use crate::newest;
use crate::state_dir::StateDir;
use crate::superblock::{Superblock, Unlocked, copies};
use crate::tampering;
use crate::volume::match_records;

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
    store: AnyStore,
    dir: &dyn StateDir,
    owner: &Unlocked,
) -> Result<AnyStore, VolumeError> {
    let keys = LedgerKeys::new(&owner.volume_key);
    let past = Past::read(dir, &keys, &owner.superblock.volume_id())?;
    let mut matched = match_records(store, dir, owner, &keys, past)?;
    tampering::check_before_key_change(dir)?;
    matched.history.refuse_if_behind(&mut *matched.array, false)?;
    Ok(matched.array.into_store())
}
