//! Whether there is room for a new volume where it is made.

use std::path::Path;

use oblivio_store::Location;
use oblivio_volume::plan::StateRoom;
use rustix::fs::{StatFs, statfs};

use super::plan::{Plan, size};
use crate::error::CliError;
use crate::output;

/// What `statfs` says of ext2, ext3 and ext4.
const EXT_MAGIC: u64 = 0xEF53;

/// An ext4 numbers the blocks of a file with 32 bits.
const EXT_FILE_BLOCKS_MAX: u64 = (1 << 32) - 1;

/// Bytes of the largest file of an ext4 with the usual blocks of 4 KiB.
pub(super) const EXT4_FILE_BYTES_MAX: u64 = EXT_FILE_BLOCKS_MAX * 4096;

/// Refuses a volume whose file cannot be made where it is wanted, and remarks on room that may not suffice.
/// The file is small at first, so there may be more room in time.
pub(super) fn check_store(plan: &Plan, location: &Location) -> Result<(), CliError> {
    let Some(path) = location.file() else { return Ok(()) };
    let Some(there) = file_system_of(path) else { return Ok(()) };
    let is_ext = there.f_type as u64 == EXT_MAGIC;
    if is_ext && plan.store_bytes > EXT_FILE_BLOCKS_MAX * there.f_bsize as u64 {
        return Err(CliError::Input(format!(
            "the file system of {} has no files as large as this volume may become ({}): choose a \
             smaller --size, or another file system, such as XFS",
            path.display(),
            size(plan.store_bytes as f64)
        )));
    }
    remark_on(&there, "the volume", path, plan.store_bytes);
    Ok(())
}

/// The same for the client's directory, which any file system has room for.
pub(super) fn check_state(plan: &Plan, state: &Path) {
    let StateRoom { in_use_bytes_max, .. } = plan.state_room;
    if let Some(there) = file_system_of(state) {
        remark_on(&there, "the client's directory", state, in_use_bytes_max);
    }
}

/// Of the nearest folder above `path` that exists.
fn file_system_of(path: &Path) -> Option<StatFs> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().skip(1).find_map(|folder| statfs(folder).ok())
}

fn remark_on(there: &StatFs, what: &str, path: &Path, bytes: u64) {
    let free = there.f_bavail.saturating_mul(there.f_bsize as u64);
    // A file system in memory that has no bound says that it has no blocks.
    let is_bounded = there.f_blocks > 0;
    if is_bounded && free < bytes {
        output::remark(&format!(
            "{} are free where {} is, less than {what} may take ({}): make room before it is used up",
            size(free as f64),
            path.display(),
            size(bytes as f64)
        ));
    }
}
