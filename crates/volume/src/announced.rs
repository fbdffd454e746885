//! The checkpoint that an opening announces: a small file in the client's directory that holds its
//! anchor, with the bytes that storage will show.
//!
//! An opening repeats the evictions since the last checkpoint under keys that only its process
//! knows. If the opening is interrupted, the directory alone does not show that storage has seen
//! these evictions. An older copy of the directory would then pass for the latest. So before the
//! first of them, storage gets an anchor that no older copy knows.
//!
//! # Order
//!
//! The file is durable before the anchor is written, and the anchor before any eviction is
//! repeated.
//!
//! - *Crash before the anchor is durable*: storage shows this anchor or the previous one. No
//!   eviction was repeated.
//! - *Crash after the anchor is durable*: storage shows it. The next opening finds it in the file
//!   and announces it again, because the opening repeats the same evictions.
//! - *After the checkpoint that ends the opening*: its number is higher. The file is obsolete and
//!   is removed.

use crate::anchor::{self, AnchorKey};
use crate::error::VolumeError;
use crate::state::file::damaged;
use crate::state::record::CheckpointName;
use crate::state_dir::{self, StateDir};

const NAME: &str = "announced";

/// The announced checkpoint, if the file holds one later than `latest`.
pub(crate) fn read(
    dir: &dyn StateDir,
    key: &AnchorKey,
    latest: &CheckpointName,
) -> Result<Option<CheckpointName>, VolumeError> {
    let Some(bytes) = state_dir::read_small(dir, NAME, anchor::BYTES)? else {
        return Ok(None);
    };
    let announced = key.read(&bytes).ok_or_else(|| {
        damaged("the checkpoint announced in the client's directory (`announced`) was changed")
    })?;
    Ok(Some(announced).filter(|announced| announced.number > latest.number))
}

/// Announces a checkpoint. The announcement is durable when this returns.
pub(crate) fn write(
    dir: &mut dyn StateDir,
    key: &AnchorKey,
    announced: &CheckpointName,
) -> Result<(), VolumeError> {
    Ok(state_dir::replace(dir, NAME, &key.bytes(announced))?)
}

/// Removes the announcement, once a later checkpoint is durable.
pub(crate) fn forget(dir: &mut dyn StateDir) -> Result<(), VolumeError> {
    Ok(dir.remove(NAME)?)
}
