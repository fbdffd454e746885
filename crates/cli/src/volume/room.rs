//! Whether there is room for a new volume where it is made.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use oblivio::Location;
use oblivio_core::store::TreeShape;
use oblivio_volume::plan::StateRoom;
use oblivio_volume::volume::shapes;
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

/// Refuses a volume of which a file cannot be made where it is wanted, and remarks on room that may not suffice.
/// Files are small at first, so there may be more room in time.
pub(super) fn check_store(plan: &Plan, location: &Location) -> Result<(), CliError> {
    let advice = "choose a smaller --size, or another file system, such as XFS";
    for Need { there, path, bytes } in needs(location, &shapes(&plan.params)?, advice)? {
        there.remark_on("the volume", path, bytes);
    }
    Ok(())
}

/// The same for a copy of a volume, which takes as much as the volume does by now.
pub(super) fn check_copy(
    location: &Location,
    shapes: &[TreeShape],
    bytes_now: u64,
) -> Result<(), CliError> {
    let needs = needs(location, shapes, "choose another file system, such as XFS")?;
    let whole: u64 = needs.iter().map(|need| need.bytes).sum();
    for Need { there, path, bytes } in needs {
        let part = u128::from(bytes) * u128::from(bytes_now) / u128::from(whole.max(1));
        there.remark_on("the copy", path, u64::try_from(part).unwrap_or(u64::MAX));
    }
    Ok(())
}

/// What a file system must have room for.
struct Need<'l> {
    there: FileSystem,
    /// Of the first file there.
    path: &'l Path,
    /// Of all files there, in the end.
    bytes: u64,
}

/// Files on one file system share its room.
fn needs<'l>(
    location: &'l Location,
    shapes: &[TreeShape],
    advice: &str,
) -> Result<Vec<Need<'l>>, CliError> {
    let mut needs: Vec<Need<'_>> = Vec::new();
    for (path, bytes) in location.files_needed(shapes)? {
        let Some(there) = FileSystem::of(path) else { continue };
        if there.is_ext() && bytes > EXT_FILE_BLOCKS_MAX * there.stat.f_bsize as u64 {
            return Err(CliError::Input(format!(
                "the file system of {} has no files as large as this volume may become ({}): {advice}",
                path.display(),
                size(bytes as f64)
            )));
        }
        match needs.iter_mut().find(|known| known.there.device == there.device) {
            Some(known) => known.bytes = known.bytes.saturating_add(bytes),
            None => needs.push(Need { there, path, bytes }),
        }
    }
    Ok(needs)
}

/// The same for the client's directory, which any file system has room for.
pub(super) fn check_state(plan: &Plan, state: &Path) {
    let StateRoom { in_use_bytes_max, .. } = plan.state_room;
    if let Some(there) = FileSystem::of(state) {
        there.remark_on("the client's directory", state, in_use_bytes_max);
    }
}

struct FileSystem {
    stat: StatFs,
    /// The number that the system gives it.
    device: u64,
}

impl FileSystem {
    /// Of the nearest folder above `path` that exists.
    fn of(path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        path.ancestors().skip(1).find_map(|folder| {
            let device = folder.metadata().ok()?.dev();
            statfs(folder).ok().map(|stat| Self { stat, device })
        })
    }

    fn is_ext(&self) -> bool {
        self.stat.f_type as u64 == EXT_MAGIC
    }

    fn remark_on(&self, what: &str, path: &Path, bytes: u64) {
        let free = self.stat.f_bavail.saturating_mul(self.stat.f_bsize as u64);
        // A file system in memory that has no bound says that it has no blocks.
        let is_bounded = self.stat.f_blocks > 0;
        if is_bounded && free < bytes {
            output::remark(&format!(
                "{} are free where {} is, less than {what} may take ({}): make room before it is used up",
                size(free as f64),
                path.display(),
                size(bytes as f64)
            ));
        }
    }
}
