//! The records of a volume, for a server that has none.

use oblivio_core::BucketStore;
use oblivio_core::records::RecordPlace;

use crate::anchor;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::ledger::LedgerKeys;
use crate::superblock::{Unlocked, copies};

/// The newest authentic superblock and anchors that storage shows, where they belong. Needs no
/// client's directory: they may be older than those that it knows.
///
/// # Errors
/// When storage fails, or shows no superblock of this owner any more.
pub fn authentic_records(
    store: &mut (impl BucketStore + ?Sized),
    owner: &Unlocked,
) -> Result<Vec<(RecordPlace, Vec<u8>)>, VolumeError> {
    let keys = LedgerKeys::new(&owner.volume_key);
    let copies = copies::read_copies(store);
    let superblock = copies.newest_of(owner).ok_or_else(|| {
        let message =
            "storage shows no superblock of this volume any more: bring back the servers that did";
        VolumeError::new(VolumeErrorKind::Tampered, message)
    })?;
    let mut records = anchor::authentic_records(store, &keys.anchor)?;
    records.extend(copies::places().map(|place| (place, superblock.to_vec())));
    Ok(records)
}
