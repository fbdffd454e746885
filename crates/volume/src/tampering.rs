//! That storage was found to be changed is kept in the client's directory: the next opening would repeat the
//! accesses that found it, and stop at the same place. It waits until the owner says that storage holds
//! again what it held.

use crate::error::{VolumeError, VolumeErrorKind};
use crate::state_dir::{self, StateDir};

/// That it is there says that something was found. It holds what that was, for people.
const NAME: &str = "tampering-found";

/// What is found is said in fewer bytes.
const FOUND_BYTES_MAX: usize = 4096;

/// Refuses to repeat what failed, unless the owner says so.
pub(crate) fn check(dir: &dyn StateDir, after_tampering: bool) -> Result<(), VolumeError> {
    if after_tampering || !is_noted(dir)? {
        return Ok(());
    }
    let found = match found(dir)? {
        Some(found) => format!(". What was found then: {found}"),
        None => String::new(),
    };
    Err(VolumeError::new(
        VolumeErrorKind::Tampered,
        format!(
            "storage was found to be changed when the volume was last used. Bring it back as it \
             was then, and open the volume as one that was tampered with (a backup from before the \
             last opening is too old); or save what is left with `oblivio rescue`{found}"
        ),
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
        let Ok(mut file) = dir.create(NAME) else { return };
        // That something was found counts more than what.
        let _ = dir.sync_names();
        let found: Vec<_> = error.to_string().bytes().take(FOUND_BYTES_MAX).collect();
        let _ = file.append(&found).and_then(|()| file.sync());
    }
}

/// What was found, for people. None if nothing was, or it was not kept what.
///
/// # Errors
/// When the directory cannot be read.
pub fn found(dir: &dyn StateDir) -> Result<Option<String>, VolumeError> {
    let found = state_dir::read_small(dir, NAME, FOUND_BYTES_MAX)?.unwrap_or_default();
    let found = String::from_utf8_lossy(&found);
    let found: String = found.chars().filter(|it| !it.is_control()).collect();
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// What the owner of share servers is told when what failed passes now.
pub(crate) fn warning_of_servers(found: Option<&str>) -> String {
    format!(
        "what failed when the volume was last used passes now. If no server was repaired or \
         brought back since, one of them spoils blocks and undoes it again, and learns which \
         accesses are for blocks. Do not go on with these servers: save what the volume holds, and \
         make a new volume on others. What was found then: {}",
        found.unwrap_or("it was not kept")
    )
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
