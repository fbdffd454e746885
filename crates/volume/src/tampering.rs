//! The note in the client's directory that storage was found to be changed. The next opening would
//! repeat the accesses that detected the change and stop at the same point. So openings are refused
//! until the owner states that storage was restored.

use crate::error::{VolumeError, VolumeErrorKind};
use crate::state_dir::{self, StateDir};

/// The name of the note. The file exists if tampering was found, and holds the message.
const NAME: &str = "tampering-found";

/// Maximum number of bytes of the message.
const FOUND_BYTES_MAX: usize = 4096;

/// Refuses to repeat the accesses that found tampering, unless the owner states that storage was
/// restored.
pub(crate) fn check(dir: &dyn StateDir, after_tampering: bool) -> Result<(), VolumeError> {
    if after_tampering || !is_recorded(dir)? {
        return Ok(());
    }
    let found = match found(dir)? {
        Some(found) => format!(". What was found then: {found}"),
        None => String::new(),
    };
    Err(VolumeError::new(
        VolumeErrorKind::Tampered,
        format!(
            "storage was found to be changed when the volume was last used. Restore it as it \
             was then, and open the volume with `after_tampering` (a backup from before the \
             last opening is too old); or save what is left with `oblivio rescue`{found}"
        ),
    ))
}

/// Refuses to change keys while the note exists. The owner may still restore the earlier store: a
/// client that knows a newer superblock would refuse it as older.
pub(crate) fn check_before_key_change(dir: &dyn StateDir) -> Result<(), VolumeError> {
    if !is_recorded(dir)? {
        return Ok(());
    }
    Err(VolumeError::new(
        VolumeErrorKind::Tampered,
        "storage was found to be changed when the volume was last used. Resolve this before you \
         change its keys: restore storage, and check the volume with `after_tampering`; or \
         save what is left with `oblivio rescue`, and make a new volume",
    ))
}

/// Notes the error of an operation if it is tampering. If the note cannot be written, the next
/// opening finds the tampering again.
pub(crate) fn record(dir: &mut dyn StateDir, error: &VolumeError) {
    if error.kind() == VolumeErrorKind::Tampered && matches!(is_recorded(dir), Ok(false)) {
        let Ok(mut file) = dir.create(NAME) else { return };
        // That something was found matters more than the message.
        let _ = dir.sync_names();
        let found: Vec<_> = error.to_string().bytes().take(FOUND_BYTES_MAX).collect();
        let _ = file.append(&found).and_then(|()| file.sync());
    }
}

/// The message about the tampering that was found. `None` if none was found or the message was not
/// saved.
///
/// # Errors
/// When the directory cannot be read.
pub fn found(dir: &dyn StateDir) -> Result<Option<String>, VolumeError> {
    let found = state_dir::read_small(dir, NAME, FOUND_BYTES_MAX)?.unwrap_or_default();
    let found = String::from_utf8_lossy(&found);
    let found: String = found.chars().filter(|it| !it.is_control()).collect();
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// The warning to an owner of share servers if the operation that had found tampering now succeeds.
pub(crate) fn warning_of_servers(found: Option<&str>) -> String {
    format!(
        "what failed when the volume was last used passes now. If no server was repaired or \
         restored since, one of them damages blocks and undoes it again, and so learns which \
         accesses are for blocks. Stop using these servers: save what the volume holds, and \
         make a new volume on others. What was found then: {}",
        found.unwrap_or("no message was kept")
    )
}

/// Removes the note, after an opening has succeeded.
pub(crate) fn clear(dir: &mut dyn StateDir) -> Result<(), VolumeError> {
    if is_recorded(dir)? {
        dir.remove(NAME)?;
        dir.sync_names()?;
    }
    Ok(())
}

/// Whether the note exists: storage was found to be changed, and no opening has succeeded since.
///
/// # Errors
/// When the directory cannot be read.
pub fn is_recorded(dir: &dyn StateDir) -> Result<bool, VolumeError> {
    Ok(dir.names()?.iter().any(|name| name == NAME))
}
