//! The newest superblock that the client has seen, in a small file of its directory. With it the
//! client detects storage that shows an older superblock, whose key slots may have been removed
//! since.
//!
//! ```text
//! magic │ version │ sequence number │ HMAC of the superblock │ HMAC of these fields
//! ```
//!
//! The key of the HMAC follows from the volume key, so the file of another volume is refused like a
//! changed one.
//!
//! The sequence number alone is not enough: a change that was lost before it was acknowledged
//! leaves a different superblock with the next number.
//!
//! Next to the file is a copy of the superblock itself, as storage holds it. A
//! [rescue](crate::rescue) uses the copy if storage shows no superblock. If a secret opens no
//! superblock in storage, [unlocking](crate::unlock) checks with the copy whether the secret is
//! wrong or storage is old. Storage knows the bytes of the copy already. The copy is replaced
//! before the file names another superblock, and each use checks the copy against the file. So a
//! removed key cannot open an outdated copy.
//!
//! # Order
//!
//! A superblock is durable in all copies before the file names it. The file names it, durably,
//! before a change is acknowledged.
//!
//! - *Crash before the copies are durable*: the file names the old superblock. Storage holds the
//!   old one or the new one, and both are accepted. The new one may be in a cache only, so the next
//!   opening writes it again before the file names it.
//! - *Crash before the file is durable*: it names the old superblock or the new one, because it is
//!   replaced as a whole. All copies hold the new one, which is accepted either way.
//! - *After that*, only the new superblock or a later one is accepted.
//!
//! So no crash locks the owner out, and an acknowledged change is never undone.

use oblivio_core::records::RecordStore;
use ring::hmac;

use crate::error::{VolumeError, VolumeErrorKind};
use crate::keys::VolumeKey;
use crate::keys::fields::{FieldReader, FieldWriter};
use crate::state_dir::{self, StateDir};
use crate::superblock::{
    LockedSuperblock, MAC_BYTES, SUPERBLOCK_BYTES, Superblock, Unlocked, copies,
};

const NAME: &str = "superblock";
const COPY_NAME: &str = "superblock-copy";

const MAGIC: [u8; 8] = *b"oblnewsb";
const VERSION: u32 = 1;
const CLAIM_BYTES: usize = 8 + 4 + 8 + MAC_BYTES;
const BYTES: usize = CLAIM_BYTES + MAC_BYTES;

/// The age of a superblock, compared with the newest that the client has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuperblockAge {
    Same,
    Newer,
}

/// Refuses a superblock that is older than the newest that the client has seen, or a different one
/// with the same number. Changes nothing.
pub(crate) fn check(dir: &dyn StateDir, owner: &Unlocked) -> Result<(), VolumeError> {
    age(dir, owner).map(drop)
}

/// Makes the superblock that storage shows the newest one, in all copies and in the client's
/// directory. Returns the number of damaged copies; 0, without a count, if the superblock is newer
/// than the directory's, because all copies are then written again.
pub(crate) fn adopt(
    store: &mut (impl RecordStore + ?Sized),
    dir: &mut dyn StateDir,
    owner: &Unlocked,
) -> Result<usize, VolumeError> {
    let mended = match age(dir, owner)? {
        SuperblockAge::Same => copies::repair(store, &owner.superblock)?,
        SuperblockAge::Newer => {
            copies::rewrite_copies(store, &owner.superblock)?;
            0
        }
    };
    // Written even if the file names it already: a failed sync may have left the file in a cache.
    record(dir, owner)?;
    Ok(mended)
}

/// The number of damaged copies of the superblock. After an interrupted change, authentic copies of
/// the previous superblock do not count as damaged.
///
/// # Errors
/// As [`check`].
pub(crate) fn damaged_copies(
    store: &mut (impl RecordStore + ?Sized),
    dir: &dyn StateDir,
    owner: &Unlocked,
) -> Result<usize, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let age = age(dir, owner)?;
    let is_right = |copy: &LockedSuperblock| {
        copy.is(superblock) || age == SuperblockAge::Newer && copy.is_authentic(volume_key)
    };
    let found = copies::read_copies(store);
    Ok(found.each().iter().filter(|copy| !copy.as_ref().is_ok_and(is_right)).count())
}

/// Copies a superblock that is durable in storage to the client's directory, and names it there as
/// the newest.
pub(crate) fn record(dir: &mut dyn StateDir, owner: &Unlocked) -> Result<(), VolumeError> {
    let copy = owner.superblock.encode();
    let has_it = state_dir::read_small(dir, COPY_NAME, SUPERBLOCK_BYTES)?
        .is_some_and(|there| there[..] == copy[..]);
    if !has_it {
        state_dir::replace(dir, COPY_NAME, &copy[..])?;
    }
    Ok(state_dir::replace(dir, NAME, &encode(&owner.superblock, &owner.volume_key))?)
}

/// The copy of the superblock in the client's directory, locked; `None` if there is no complete
/// copy.
pub(crate) fn copy(dir: &dyn StateDir) -> Result<Option<LockedSuperblock>, VolumeError> {
    let bytes = state_dir::read_small(dir, COPY_NAME, SUPERBLOCK_BYTES)?;
    Ok(bytes.and_then(|bytes| LockedSuperblock::decode(&bytes).ok()))
}

/// The MAC of the superblock that the client's directory names, if the directory can be read.
pub(crate) fn named(dir: &dyn StateDir, volume_key: &VolumeKey) -> Option<[u8; MAC_BYTES]> {
    read_note(dir, volume_key).ok().map(|(_, mac)| mac)
}

fn age(dir: &dyn StateDir, owner: &Unlocked) -> Result<SuperblockAge, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let (sequence, mac) = read_note(dir, volume_key)?;
    match superblock.sequence().cmp(&sequence) {
        std::cmp::Ordering::Greater => Ok(SuperblockAge::Newer),
        std::cmp::Ordering::Equal if *superblock.mac() == mac => Ok(SuperblockAge::Same),
        _ => Err(older_superblock()),
    }
}

/// The error for a superblock that is older than the one that the client's directory names, or
/// differs from it.
pub(crate) fn older_superblock() -> VolumeError {
    VolumeError::new(
        VolumeErrorKind::StoreRolledBack,
        "the superblock is not the newest that this client has seen: its key slots were \
         rolled back. Restore the latest copy of the volume",
    )
}

/// The sequence number and the MAC of the superblock that the client's directory names.
fn read_note(
    dir: &dyn StateDir,
    volume_key: &VolumeKey,
) -> Result<(u64, [u8; MAC_BYTES]), VolumeError> {
    let bytes = state_dir::read_small(dir, NAME, BYTES)?.ok_or_else(|| {
        damaged("the client's directory does not say which superblock is the newest")
    })?;
    if let Some(version) = bytes.get(8..12).filter(|_| bytes.starts_with(&MAGIC))
        && *version != VERSION.to_le_bytes()
    {
        return Err(VolumeError::new(
            VolumeErrorKind::UnknownVersion,
            "another version of this program noted the newest superblock in the client's \
             directory: use that version, or a newer one",
        ));
    }
    let claim = (bytes.len() == BYTES)
        .then(|| bytes.split_at(CLAIM_BYTES))
        .filter(|(claim, mac)| hmac::verify(&key(volume_key), claim, mac).is_ok())
        .map(|(claim, _)| claim)
        .ok_or_else(|| {
            damaged("the note of the newest superblock in the client's directory was changed")
        })?;
    let mut fields = FieldReader::new(claim);
    let _magic_and_version: [u8; 12] = fields.take();
    Ok((fields.u64(), fields.take()))
}

fn encode(superblock: &Superblock, volume_key: &VolumeKey) -> Vec<u8> {
    let mut fields = FieldWriter::default();
    fields.put(&MAGIC);
    fields.put(&VERSION.to_le_bytes());
    fields.put(&superblock.sequence().to_le_bytes());
    fields.put(superblock.mac());
    let mut bytes = fields.finish();
    let mac = hmac::sign(&key(volume_key), &bytes);
    bytes.extend_from_slice(mac.as_ref());
    bytes
}

fn key(volume_key: &VolumeKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &*volume_key.derive("newest superblock"))
}

fn damaged(defect: &str) -> VolumeError {
    VolumeError::new(
        VolumeErrorKind::StateDamaged,
        format!(
            "{defect}: the directory is damaged or does not belong to this key. Restore it as it \
             was when the volume was last used"
        ),
    )
}
