//! That storage was found to be changed is kept in the client's directory: the next opening would repeat the
//! accesses that found it, and stop at the same place. It waits until the owner says that storage holds
//! again what it held.

use crate::error::{VolumeError, VolumeErrorKind};
use crate::state_dir::StateDir;

/// An empty file. What matters is that it is there.
const NAME: &str = "tampering-found";

/// Refuses to repeat what failed, unless the owner says so.
pub(crate) fn check(dir: &dyn StateDir, after_tampering: bool) -> Result<(), VolumeError> {
    if after_tampering || !is_noted(dir)? {
        return Ok(());
    }
    Err(VolumeError::new(
        VolumeErrorKind::Tampered,
        "storage was found to be changed when the volume was last used. Bring it back as it was then, \
         and open the volume as one that was tampered with (a backup from before the last opening is too old); or \
         save what is left with `oblivio rescue`",
    ))
}

/// Refuses to change keys. The owner may yet bring back the store of before: to a client that knows a newer
/// superblock, it would be an older store.
pub(crate) fn check_before_key_change(dir: &dyn StateDir) -> Result<(), VolumeError> {
    if !is_noted(dir)? {
        return Ok(());
    }
    Err(VolumeError::new(
        VolumeErrorKind::Tampered,
        "storage was found to be changed when the volume was last used. Put that right before you change its \
         keys: bring it back as it was, and check the volume as one that was tampered with; or save what is \
         left with `oblivio rescue`, and make a new volume",
    ))
}

/// Notes what an operation found, if it is that. What cannot be noted is found again by the next opening.
pub(crate) fn note(dir: &mut dyn StateDir, error: &VolumeError) {
    if error.kind() == VolumeErrorKind::Tampered && matches!(is_noted(dir), Ok(false)) {
        let _ = dir.create(NAME).and_then(|_| dir.sync_names());
    }
}

/// Storage holds again what it held.
pub(crate) fn forget(dir: &mut dyn StateDir) -> Result<(), VolumeError> {
    if is_noted(dir)? {
        dir.remove(NAME)?;
        dir.sync_names()?;
    }
    Ok(())
}

/// Whether storage was found to be changed, and the owner has not said since that it holds again what it held.
///
/// # Errors
/// When the directory cannot be read.
pub fn is_noted(dir: &dyn StateDir) -> Result<bool, VolumeError> {
    Ok(dir.names()?.iter().any(|name| name == NAME))
}
