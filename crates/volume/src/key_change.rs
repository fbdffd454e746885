//! Adding and removing key slots of a volume.

use oblivio_core::BucketStore;
use oblivio_core::durable::AnyStore;

use crate::error::VolumeError;
use crate::keys::VolumeKey;
use crate::ledger::{LedgerKeys, SavedState};
use crate::newest;
use crate::state_dir::StateDir;
use crate::superblock::{Superblock, Unlocked, copies};
use crate::tampering;
use crate::volume::match_records;

/// Lets `change` add or remove key slots of a volume that is not open, and stores the result as the
/// newest superblock. Once this returns, the client that owns `dir` refuses older superblocks.
///
/// Storage may show an older superblock, with slots that were removed. So the directory is compared
/// first, and `change` is not called if storage or the directory was rolled back.
///
/// # Errors
/// The errors of `change`, after which nothing was changed. [`VolumeErrorKind::StoreRolledBack`]
/// and the other kinds with which an opening refuses storage or a directory.
/// [`VolumeErrorKind::Tampered`] also if tampering was recorded and is not resolved. After any
/// other error the change may or may not have been made; the next opening adopts the newest
/// superblock that storage shows.
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
    // The newest superblock may be in a cache only, and only the previous one durable. The newest
    // must be durable before the previous one is overwritten.
    newest::adopt(&mut store, dir, owner)?;
    let outcome = change(&mut owner.superblock, &owner.volume_key)?;
    copies::write_copies(&mut store, &owner.superblock).map_err(VolumeError::from)?;
    newest::record(dir, owner)?;
    Ok(outcome)
}

/// Checks that the directory is the latest: an older one might not know the newest superblock.
fn check_past(
    store: AnyStore,
    dir: &dyn StateDir,
    owner: &Unlocked,
) -> Result<AnyStore, VolumeError> {
    let keys = LedgerKeys::new(&owner.volume_key);
    let saved = SavedState::read(dir, &keys, &owner.superblock.volume_id())?;
    let mut matched = match_records(store, dir, owner, &keys, saved)?;
    tampering::check_before_key_change(dir)?;
    matched.history.refuse_if_behind(&mut *matched.array, false)?;
    Ok(matched.array.into_store())
}
