//! The superblock and anchors of a volume, for a server that lacks them.

use oblivio_core::records::{RecordPlace, RecordStore};

use crate::anchor;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::ledger::{LedgerKeys, SavedState};
use crate::newest;
use crate::state_dir::StateDir;
use crate::superblock::{Unlocked, copies};

/// The newest authentic superblock and anchors that storage shows, with their places. They may be
/// older than the ones that the client's directory names: see [`check_newest`]. The superblock is
/// `owner`'s, or a newer one.
///
/// # Errors
/// When storage fails. [`Tampered`](VolumeErrorKind::Tampered) if it shows no superblock of this
/// owner or no anchor.
pub fn authentic_records(
    store: &mut (impl RecordStore + ?Sized),
    owner: &Unlocked,
) -> Result<Vec<(RecordPlace, Vec<u8>)>, VolumeError> {
    let keys = LedgerKeys::new(&owner.volume_key);
    let copies = copies::read_copies(store);
    let superblock = copies.newest_of(owner).ok_or_else(|| {
        let message =
            "storage shows no superblock of this volume any more: reconnect the servers that did";
        VolumeError::new(VolumeErrorKind::Tampered, message)
    })?;
    let mut records = anchor::authentic_records(store, &keys.anchor)?;
    if records.is_empty() {
        let message = "storage shows no anchor of this volume: reconnect the servers that did";
        return Err(VolumeError::new(VolumeErrorKind::Tampered, message));
    }
    records.extend(copies::places().map(|place| (place, superblock.to_vec())));
    Ok(records)
}

/// The age of records from [`authentic_records`], compared with the client's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordsAge {
    /// The records are the newest that the directory names.
    Newest,
    /// The records are one checkpoint older. Either the client crashed before it wrote the latest
    /// anchor to storage, or only servers that do not answer hold newer records.
    Previous,
}

/// Refuses records from [`authentic_records`] that are more than one checkpoint older than those
/// that the client's directory names.
///
/// # Errors
/// [`StoreRolledBack`](VolumeErrorKind::StoreRolledBack) or [`Tampered`](VolumeErrorKind::Tampered)
/// if the records are too old, [`StateRolledBack`](VolumeErrorKind::StateRolledBack) if the
/// directory is older than the records. Other kinds if the directory cannot be read or belongs to
/// another volume.
pub fn check_newest(
    records: &[(RecordPlace, Vec<u8>)],
    dir: &dyn StateDir,
    owner: &Unlocked,
) -> Result<RecordsAge, VolumeError> {
    let keys = LedgerKeys::new(&owner.volume_key);
    let saved = SavedState::read(dir, &keys, &owner.superblock.volume_id())?;
    newest::check(dir, owner)?;
    let known = saved.known(dir, &keys)?;
    let shown = known.check(anchor::newest_of(records, &keys.anchor))?;
    let is_newest = shown == known.latest || known.announced == Some(shown);
    Ok(if is_newest { RecordsAge::Newest } else { RecordsAge::Previous })
}
