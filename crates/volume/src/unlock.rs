//! From storage and a secret to the owner of a volume.
//!
//! # Order, and what storage learns
//!
//! | step | asked of storage |
//! |---|---|
//! | read the superblock's copies | each copy once, in a trip of its own |
//! | refuse storage that shows none | nothing |
//! | ask for the secret | nothing |
//! | try it in key slots, within the bounds of the [`Attempt`] | nothing |
//! | if it opens none, try it in the superblock of the client's directory | nothing |
//!
//! What anyone can see is told before anyone is asked for a secret. Storage sees the same trips whatever the
//! secret is and whatever it opens; it can tell from the time until the next trip which slots were tried.
//!
//! What comes out is authentic, and it may be old: which superblock is the newest, the client's directory
//! knows. Which directory that is follows from the volume's name, which nothing vouches for before. So
//! everything that takes a directory asks it: [`Volume::open`](crate::Volume::open),
//! [`change_slots`](crate::key_change::change_slots), [`needs_recovery`](crate::volume::needs_recovery) and
//! [`rescue`](crate::rescue::rescue()).

use oblivio_core::BucketStore;

use crate::error::VolumeError;
use crate::keys::{Attempt, Budget, Secret};
use crate::newest;
use crate::state_dir::StateDir;
use crate::superblock::copies::{Copies, read_copies};
use crate::superblock::{
    LockedSuperblock, SuperblockError, SuperblockErrorKind, Unlocked, VolumeId,
};

/// Why there is no owner. `E` is what went wrong where the secret was to come from.
#[derive(Debug)]
pub enum UnlockError<E> {
    /// Storage shows no superblock that could be unlocked. Nobody was asked for a secret.
    NoSuperblock(SuperblockError),
    /// There is no secret.
    NoSecret(E),
    /// The secret opens nothing, or it would take too much to find out.
    NotUnlocked(SuperblockError),
    /// The secret opens only the superblock that the client's directory names: storage shows older
    /// ones.
    Older {
        /// The owner by the superblock that the directory names.
        newest: Box<Unlocked>,
        /// A rollback. [`explain_rollback`](crate::volume::explain_rollback) asks storage for its
        /// cause.
        error: VolumeError,
    },
}

/// What to make of copies of the superblock that name a version or a scheme which this program does not know, where
/// others are sound. Anybody can forge such a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewerCopies {
    /// A newer program was here, and knows better what the volume is.
    Refuse,
    /// They are damage: for whoever changes nothing, and takes what is left.
    LeaveOut,
}

/// Unlocks the volume in `store`: the newest superblock that the volume key vouches for.
///
/// `secret` is asked once, after storage has shown a superblock. It may take its time.
/// `client_copy` is unlocked instead if storage shows none.
///
/// `directory` opens the client's directory of a volume. It is asked in two cases:
///
/// - Storage shows several superblocks with the highest number, after a change that was lost was
///   repeated. The one that the directory names counts.
/// - The secret opens no superblock that storage shows. If it opens the newer one of the directory,
///   the error is [`UnlockError::Older`].
///
/// # Errors
/// [`UnlockError`]. Nothing was changed.
pub fn unlock<E>(
    store: &mut impl BucketStore,
    attempt: Attempt,
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
        Some(copy) => copy.unlock_within(&secret, &mut Budget::new(attempt)),
        None => copies.unlock_named(&secret, attempt, |owner| {
            newest::named(&*directory(owner.superblock.volume_id())?, &owner.volume_key)
        }),
    };
    unlocked.map_err(|error| {
        let newest = match error.kind() {
            // The slot that is to be tried may be new, too.
            SuperblockErrorKind::WrongKey | SuperblockErrorKind::InvalidRequest => {
                newest_seen(&copies, directory, &secret, attempt)
            }
            _ => None,
        };
        newest.map_or(UnlockError::NotUnlocked(error), |newest| UnlockError::Older {
            newest: newest.into(),
            error: newest::older_superblock(),
        })
    })
}

/// The owner by the superblock that the client's directory names, if `secret` opens it and `copies`
/// are all older.
fn newest_seen(
    copies: &Copies,
    directory: impl Fn(VolumeId) -> Option<Box<dyn StateDir>>,
    secret: &Secret,
    attempt: Attempt,
) -> Option<Unlocked> {
    let dir = directory(copies.newest().ok()?.unauthenticated_volume_id())?;
    let copy = newest::copy(&*dir).ok()??;
    // The usual case of a wrong key: the slots of this superblock were tried.
    if copies.contain(&copy) {
        return None;
    }
    let newest = copy.unlock_within(secret, &mut Budget::new(attempt)).ok()?;
    // Otherwise a removed key could open an old copy in the directory.
    newest::check(&*dir, &newest).ok()?;
    copies.are_older_than(&newest).then_some(newest)
}

/// The copy of the newest superblock that the client's directory keeps, for a rescue of storage
/// that shows none; `None` if the directory has no whole copy. Nothing vouches for it before it is
/// unlocked and [rescue](crate::rescue::rescue()) has checked it.
///
/// # Errors
/// When the directory cannot be read.
pub fn client_copy(dir: &dyn StateDir) -> Result<Option<LockedSuperblock>, VolumeError> {
    newest::copy(dir)
}

/// What anyone can see of the volume in `store`: its newest superblock, locked. Nothing vouches for it.
///
/// # Errors
/// When storage shows none.
pub fn look(store: &mut impl BucketStore) -> Result<LockedSuperblock, SuperblockError> {
    read_copies(store).newest().cloned()
}
