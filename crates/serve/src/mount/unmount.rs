//! Unmounting what this or another process serves.

use std::fs;
use std::path::Path;

use super::MountError;
use super::mountinfo::{self, DeviceNumber};
use super::registry::Registry;
use crate::fuse::{self, UMOUNT};

/// Unmounts what a process serves on `directory`, and waits until that process is done with it. When
/// the process died, takes down what it left.
///
/// # Errors
/// When nothing is served there, or it is in use.
pub fn unmount_served(directory: &Path, registry: &Registry) -> Result<(), MountError> {
    let Some(served) = registry.find(directory)? else {
        return Err(MountError::NotServed(directory.to_path_buf()));
    };
    unmount_ours(served.directory(), &served.disk(), false)?;
    served.wait_until_released()
}

/// Unmounts what is seen at `directory`, if it is a file system on `disk` or shows a disk itself.
/// Lazily, it disappears at once and ends with its last user.
pub(super) fn unmount_ours(directory: &Path, disk: &Path, lazily: bool) -> Result<(), MountError> {
    let unmounted = match seen_at(directory, disk)? {
        Seen::Disk => fuse::unmount_fuse(directory, lazily),
        Seen::Filesystem => {
            let lazy = lazily.then_some("--lazy".as_ref());
            let arguments: Vec<_> = lazy.into_iter().chain([directory.as_os_str()]).collect();
            fuse::unmount_with(UMOUNT, &arguments, directory)
        }
        Seen::Other => Ok(()),
    };
    match unmounted {
        // Somebody else was faster.
        Err(_) if seen_at(directory, disk)? == Seen::Other => Ok(()),
        result => result,
    }
}

#[derive(PartialEq, Eq)]
enum Seen {
    /// A disk as a file.
    Disk,
    /// A file system on the disk in question.
    Filesystem,
    /// Nothing of ours.
    Other,
}

fn seen_at(directory: &Path, disk: &Path) -> Result<Seen, MountError> {
    let top = mountinfo::top_at(directory)?;
    Ok(match top {
        Some(top) if top.source == fuse::SOURCE => Seen::Disk,
        Some(top) if stands_on(&top.number, disk) => Seen::Filesystem,
        _ => Seen::Other,
    })
}

fn stands_on(DeviceNumber(number): &DeviceNumber, disk: &Path) -> bool {
    let file = fs::read_to_string(format!("/sys/dev/block/{number}/loop/backing_file"));
    file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == disk)
}
