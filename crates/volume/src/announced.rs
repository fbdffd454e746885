//! The checkpoint that an opening announces, in a small file of the client's directory: an anchor, as
//! storage will show it.
//!
//! An opening makes the evictions since the last checkpoint again, under keys that only its process knows.
//! If it is interrupted, nobody can tell any more that storage has seen them; a copy of the directory that
//! does not know of them would be taken for the latest. So before the first of them storage shows an anchor
//! that no such copy knows.
//!
//! # Order
//!
//! The file is durable before the anchor is written, and the anchor before anything is done again.
//!
//! - *Crash before the anchor is durable*: storage shows it or the one before. Nothing was done again.
//! - *Crash after it*: the next opening finds the anchor that it announced, and announces the same again,
//!   because it does the same again.
//! - *After the checkpoint with which the opening ends*: that has a higher number. The file says nothing
//!   any more, and is removed.

use crate::anchor::{self, AnchorKey};
use crate::error::VolumeError;
use crate::state::file::damaged;
use crate::state::record::CheckpointName;
use crate::state_dir::{self, StateDir};

const NAME: &str = "announced";

/// The checkpoint that was announced after `latest`, if one was.
pub(crate) fn read(
    dir: &dyn StateDir,
    key: &AnchorKey,
    latest: &CheckpointName,
) -> Result<Option<CheckpointName>, VolumeError> {
    let Some(bytes) = state_dir::read_small(dir, NAME, anchor::BYTES)? else {
        return Ok(None);
    };
    let announced = key.read(&bytes).ok_or_else(|| {
        damaged("what the client's directory says of its last opening was changed")
    })?;
    Ok(Some(announced).filter(|announced| announced.number > latest.number))
}

/// Announces a checkpoint. Durable when this returns.
pub(crate) fn write(
    dir: &mut dyn StateDir,
    key: &AnchorKey,
    announced: &CheckpointName,
) -> Result<(), VolumeError> {
    Ok(state_dir::replace(dir, NAME, &key.bytes(announced))?)
}

/// A later checkpoint is durable.
pub(crate) fn forget(dir: &mut dyn StateDir) -> Result<(), VolumeError> {
    Ok(dir.remove(NAME)?)
}
