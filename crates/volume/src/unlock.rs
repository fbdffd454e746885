//! Unlocks a volume with a secret.
//!
//! # Order, and what storage learns
//!
//! | step | request to storage |
//! |---|---|
//! | read the superblock's copies | each copy once, in a trip of its own |
//! | refuse storage that shows none | nothing |
//! | get the secret | nothing |
//! | try it in key slots, within the bounds of the [`UnlockLimits`] | nothing |
//! | if it opens none, try it in the superblock of the client's directory | nothing |
//!
//! Public problems are reported before a secret is requested. Storage sees the same trips for every
//! secret, whether it opens a slot or not. The time until the next trip reveals which slots were
//! tried.
//!
//! The resulting superblock is authentic, but may be old: the client's directory knows which one is
//! the newest. The directory is found by the volume's id, which is not authenticated before
//! unlocking. So every function that takes a directory checks it:
//! [`Volume::open`](crate::Volume::open), [`change_slots`](crate::key_change::change_slots),
//! [`needs_recovery`](crate::volume::needs_recovery) and [`rescue`](crate::rescue::rescue()).

use oblivio_core::BucketStore;

use crate::error::VolumeError;
use crate::keys::{Budget, Secret, UnlockLimits};
use crate::newest;
use crate::state_dir::StateDir;
use crate::superblock::copies::{Copies, read_copies};
use crate::superblock::{
    LockedSuperblock, SuperblockError, SuperblockErrorKind, Unlocked, VolumeId,
};

/// The reason why a volume was not unlocked. `E` is the error of the source of the secret.
#[derive(Debug)]
pub enum UnlockError<E> {
    /// Storage shows no superblock that could be unlocked, and no copy from the client's directory
    /// was passed. No secret was requested.
    NoSuperblock(SuperblockError),
    /// The secret could not be obtained.
    NoSecret(E),
    /// The secret opens no slot or is invalid, trying it would cost too much, or the superblock
    /// that it opens was changed without the volume key.
    NotUnlocked(SuperblockError),
    /// The secret opens only the superblock that the client's directory names. Storage shows older
    /// ones.
    StoreIsOlder {
        /// The volume, unlocked with the superblock that the directory names.
        newest: Box<Unlocked>,
        /// The rollback error. [`explain_rollback`](crate::volume::explain_rollback) asks storage
        /// for the cause.
        error: VolumeError,
    },
}

/// The treatment of copies of the superblock with a version or scheme that this program does not
/// know, if other copies are sound. Such a copy is easy to forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewerCopies {
    /// A newer program changed the volume: refuse it.
    Refuse,
    /// Treat these copies as damaged. Only for callers that change nothing and save data from a
    /// damaged volume.
    LeaveOut,
}

/// Unlocks the volume in `store`, with its newest authentic superblock.
///
/// If storage shows no superblock that could be unlocked, `client_copy` is unlocked instead.
/// `secret` is called at most once, and only if one of the two is available. It may wait for a
/// person.
///
/// `directory` opens the client's directory of a volume. It is called in two cases:
///
/// - Storage shows several superblocks with the highest number, because a lost change was repeated.
///   The directory decides which of them counts.
/// - The secret opens no superblock in storage. If it opens the newer one of the directory, the
///   error is [`UnlockError::StoreIsOlder`].
///
/// # Errors
/// [`UnlockError`]. Nothing was changed.
pub fn unlock<E>(
    store: &mut impl BucketStore,
    limits: UnlockLimits,
    newer: NewerCopies,
    client_copy: Option<&LockedSuperblock>,
    directory: impl Fn(VolumeId) -> Option<Box<dyn StateDir>>,
    secret: impl FnOnce() -> Result<Secret, E>,
) -> Result<Unlocked, UnlockError<E>> {
    let mut copies = read_copies(store);
    if newer == NewerCopies::LeaveOut {
        copies.leave_out_newer();
    }
    let shown = copies.newest().map(drop);
    let client_copy = client_copy.filter(|_| shown.is_err());
    if client_copy.is_none() {
        shown.map_err(UnlockError::NoSuperblock)?;
    }
    let secret = secret().map_err(UnlockError::NoSecret)?;
    let unlocked = match client_copy {
        Some(copy) => copy.unlock_within(&secret, &mut Budget::new(limits)),
        None => copies.unlock_named(&secret, limits, |owner| {
            newest::named(&*directory(owner.superblock.volume_id())?, &owner.volume_key)
        }),
    };
    unlocked.map_err(|error| {
        let newest = match error.kind() {
            // The requested slot may be new, too.
            SuperblockErrorKind::WrongKey | SuperblockErrorKind::InvalidRequest => {
                owner_by_directory(&copies, directory, &secret, limits)
            }
            _ => None,
        };
        newest.map_or(UnlockError::NotUnlocked(error), |newest| UnlockError::StoreIsOlder {
            newest: newest.into(),
            error: newest::older_superblock(),
        })
    })
}

/// Unlocks the superblock that the client's directory names, if all authentic `copies` are older.
/// `None` if they are not, if the directory has no such superblock, or if `secret` does not open
/// it.
fn owner_by_directory(
    copies: &Copies,
    directory: impl Fn(VolumeId) -> Option<Box<dyn StateDir>>,
    secret: &Secret,
    limits: UnlockLimits,
) -> Option<Unlocked> {
    let dir = directory(copies.newest().ok()?.unauthenticated_volume_id())?;
    let copy = newest::copy(&*dir).ok()??;
    // The slots of this superblock were tried already: usually, the secret is wrong.
    if copies.contains(&copy) {
        return None;
    }
    let newest = copy.unlock_within(secret, &mut Budget::new(limits)).ok()?;
    // Without this check, a removed key could open an old copy in the directory.
    newest::check(&*dir, &newest).ok()?;
    copies.are_older_than(&newest).then_some(newest)
}

/// The copy of the newest superblock in the client's directory, for a rescue of storage that shows
/// none. `None` if the directory has no complete copy. It is authentic only after unlocking and the
/// check of [rescue](crate::rescue::rescue()).
///
/// # Errors
/// When the directory cannot be read.
pub fn client_copy(dir: &dyn StateDir) -> Result<Option<LockedSuperblock>, VolumeError> {
    newest::copy(dir)
}

/// The newest superblock in `store`, locked. Public and not authenticated.
///
/// # Errors
/// The errors of [`Copies::newest`].
pub fn read_public(store: &mut impl BucketStore) -> Result<LockedSuperblock, SuperblockError> {
    read_copies(store).newest().cloned()
}
