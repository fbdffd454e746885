//! Checks whether a new volume fits where it is created.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use oblivio::Location;
use oblivio_core::store::TreeShape;
use oblivio_volume::plan::StateRoom;
use oblivio_volume::volume::shapes;
use rustix::fs::{StatFs, statfs};

use super::plan::{VolumePlan, size};
use crate::error::CliError;
use crate::output;

/// The file system type that `statfs` reports for ext2, ext3 and ext4.
const EXT_MAGIC: u64 = 0xEF53;

/// Maximum number of blocks of a file on ext4, which numbers them with 32 bits.
const EXT_FILE_BLOCKS_MAX: u64 = (1 << 32) - 1;

/// Maximum bytes of a file on ext4 with blocks of 4 KiB, the usual size.
pub(super) const EXT4_FILE_BYTES_MAX: u64 = EXT_FILE_BLOCKS_MAX * 4096;

/// Refuses a volume whose files the file system does not support. Only warns if there may be too
/// little space: files are small at first, so the user can still free space.
pub(super) fn check_store(plan: &VolumePlan, location: &Location) -> Result<(), CliError> {
    let advice = "choose a smaller --size, or another file system, such as XFS";
    for SpaceNeed { there, path, bytes } in space_needs(location, &shapes(&plan.params)?, advice)? {
        there.remark_on("the volume", path, bytes);
    }
    Ok(())
}

/// Like [`check_store`] for a copy of a volume, which needs the space that the volume uses now.
pub(super) fn check_copy(
    location: &Location,
    shapes: &[TreeShape],
    bytes_now: u64,
) -> Result<(), CliError> {
    let needs = space_needs(location, shapes, "choose another file system, such as XFS")?;
    let whole: u64 = needs.iter().map(|need| need.bytes).sum();
    for SpaceNeed { there, path, bytes } in needs {
        let part = u128::from(bytes) * u128::from(bytes_now) / u128::from(whole.max(1));
        there.remark_on("the copy", path, u64::try_from(part).unwrap_or(u64::MAX));
    }
    Ok(())
}

/// Space that a volume needs on one file system.
struct SpaceNeed<'l> {
    there: FileSystem,
    /// Path of the volume's first file on this file system.
    path: &'l Path,
    /// Final bytes of all of the volume's files on this file system.
    bytes: u64,
}

/// The space needed on each file system. Files on one file system share its space.
fn space_needs<'l>(
    location: &'l Location,
    shapes: &[TreeShape],
    advice: &str,
) -> Result<Vec<SpaceNeed<'l>>, CliError> {
    let mut needs: Vec<SpaceNeed<'_>> = Vec::new();
    for (path, bytes) in location.files_needed(shapes)? {
        let Some(there) = FileSystem::of(path) else { continue };
        if there.is_ext() && bytes > EXT_FILE_BLOCKS_MAX * there.stat.f_bsize as u64 {
            return Err(CliError::Input(format!(
                "the file system of {} does not support files as large as this volume may become \
                 ({}): {advice}",
                path.display(),
                size(bytes as f64)
            )));
        }
        match needs.iter_mut().find(|known| known.there.device == there.device) {
            Some(known) => known.bytes = known.bytes.saturating_add(bytes),
            None => needs.push(SpaceNeed { there, path, bytes }),
        }
    }
    Ok(needs)
}

/// Warns if there may be too little space for the client's directory. Every file system supports
/// files of its sizes.
pub(super) fn check_state(plan: &VolumePlan, state: &Path) {
    let StateRoom { in_use_bytes_max, .. } = plan.state_room;
    if let Some(there) = FileSystem::of(state) {
        there.remark_on("the client's directory", state, in_use_bytes_max);
    }
}

struct FileSystem {
    stat: StatFs,
    /// The system's device number of the file system.
    device: u64,
}

impl FileSystem {
    /// The file system of the nearest folder above `path` that exists.
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
        // A file system in memory without a limit reports zero blocks.
        let is_bounded = self.stat.f_blocks > 0;
        if is_bounded && free < bytes {
            output::print_remark(&format!(
                "{} are free where {} is, less than {what} may need ({}): make room before it is \
                 used up",
                size(free as f64),
                path.display(),
                size(bytes as f64)
            ));
        }
    }
}
