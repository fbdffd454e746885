//! Unmounts the file systems that this or another process serves.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::MountError;
use super::mountinfo::{self, DeviceNumber};
use super::registry::Registry;
use crate::fuse::{self, UMOUNT};

/// The interval of checks whether a process has mounted its file system.
const LOOK: Duration = Duration::from_millis(100);

/// The outcome of unmounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmounted {
    /// The serving process has closed its disk.
    Closed,
    /// The disk of the serving process has failed. Flushed data are safe, but later writes may be
    /// lost.
    Failed {
        /// The exit code of the process.
        exit_code: u8,
        /// The reason for the failure.
        why: String,
    },
    /// The serving process had died. Its mounts and devices were removed.
    Abandoned,
    /// The serving process had ended and left nothing mounted: it never mounted a file system, or
    /// the file system was unmounted before.
    NothingLeft,
}

/// Unmounts the disk that a process serves on `directory`, and waits until the process has ended.
/// If the process has died, removes its mounts and loop devices.
///
/// A process that is still opening or already closing its disk has nothing mounted. This function
/// waits at most `patience` for a mount, which it unmounts, or for the end of the process.
///
/// # Errors
/// If no process serves the directory, the mount is in use, or no mount appears within `patience`.
pub fn unmount_served(
    directory: &Path,
    registry: &Registry,
    patience: Duration,
) -> Result<Unmounted, MountError> {
    let Some(served) = registry.find(directory)? else {
        return Err(MountError::NotServed(directory.to_path_buf()));
    };
    let mut looks_left = patience.as_millis() / LOOK.as_millis();
    let mut is_unmounted = unmount_ours(served.directory(), &served.disk(), false)?;
    while !is_unmounted && served.is_alive() {
        if served.is_released()? {
            break;
        }
        if looks_left == 0 {
            let (directory, pid) = (served.directory().to_path_buf(), served.pid());
            return Err(MountError::NotMountedYet { directory, pid });
        }
        looks_left -= 1;
        thread::sleep(LOOK);
        is_unmounted = unmount_ours(served.directory(), &served.disk(), false)?;
    }
    Ok(match served.wait_until_released()? {
        Unmounted::NothingLeft if is_unmounted => Unmounted::Abandoned,
        unmounted => unmounted,
    })
}

/// Unmounts the topmost mount at `directory` if it is a file system on `disk`, or a FUSE mount that
/// shows a disk. Returns whether there was such a mount. With `lazily`, the mount disappears at
/// once and ends when no process uses it any more.
pub(super) fn unmount_ours(
    directory: &Path,
    disk: &Path,
    lazily: bool,
) -> Result<bool, MountError> {
    let unmounted = match top_mount_at(directory, disk)? {
        TopMount::Disk => fuse::unmount_fuse(directory, lazily),
        TopMount::Filesystem => {
            let lazy = lazily.then_some("--lazy".as_ref());
            let arguments: Vec<_> = lazy.into_iter().chain([directory.as_os_str()]).collect();
            fuse::unmount_with(UMOUNT, &arguments, directory)
        }
        TopMount::Other => return Ok(false),
    };
    match unmounted {
        // Another process unmounted it first.
        Err(_) if top_mount_at(directory, disk)? == TopMount::Other => Ok(true),
        result => result.map(|()| true),
    }
}

#[derive(PartialEq, Eq)]
enum TopMount {
    /// A FUSE mount that shows a disk as a file.
    Disk,
    /// A file system on the given disk.
    Filesystem,
    /// No mount, or a mount of another program.
    Other,
}

fn top_mount_at(directory: &Path, disk: &Path) -> Result<TopMount, MountError> {
    let top = mountinfo::top_at(directory)?;
    Ok(match top {
        Some(top) if top.source == fuse::SOURCE => TopMount::Disk,
        Some(top) if is_backed_by(&top.number, disk) => TopMount::Filesystem,
        _ => TopMount::Other,
    })
}

fn is_backed_by(DeviceNumber(number): &DeviceNumber, disk: &Path) -> bool {
    let file = fs::read_to_string(format!("/sys/dev/block/{number}/loop/backing_file"));
    file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == disk)
}
