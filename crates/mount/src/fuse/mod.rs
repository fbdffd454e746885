//! A disk as a file: a FUSE file system that holds the single file `disk`, the raw image.
//!
//! The kernel does not cache the file. Its users (a file system on a loop device, a virtual
//! machine) already have a cache, and writes to a cached file would be serialized. Many requests
//! are in flight, and the device's callback answers each.

mod attributes;
mod error;
mod image;
mod program;
mod users;

use std::ffi::OsStr;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use oblivio_volume::device::{BlockDevice, DiskOp, call};

pub use self::attributes::DISK_NAME;
pub use self::error::MountError;
use self::image::Image;
pub(crate) use self::program::{FUSERMOUNT, Program, UMOUNT};
use self::users::Users;
use crate::mountinfo::{self, DeviceNumber};

/// The source of the mount, as the kernel shows it.
pub(crate) const SOURCE: &str = "oblivio";

/// The page size in bytes. The kernel requests whole pages, so a device must accept requests of
/// this size.
const PAGE_BYTES: u32 = 4096;

/// Time for the kernel to release an unmounted file system.
const LETTING_GO: Duration = Duration::from_secs(5);

/// Maximum number of retries of unmounting while the mount is busy. A process that is being started
/// holds its parent's open files until it executes its program.
const BUSY_MAX: u32 = 10;

/// The pause between attempts to unmount.
const MOMENT: Duration = Duration::from_millis(25);

/// Time for the session to end once no process has the file open.
const ENDING: Duration = Duration::from_millis(500);

/// Options for showing a disk as a file.
#[derive(Clone, Debug, Default)]
pub struct FuseOptions {
    /// Whether writing to the file is refused.
    pub read_only: bool,
}

/// A disk that is shown as a file. Unmounted when dropped.
pub struct FuseMount {
    directory: PathBuf,
    /// The kernel's device number of the mount. `None` if it is unknown.
    number: Option<DeviceNumber>,
    session: Option<BackgroundSession>,
    users: Arc<Users>,
    device: Arc<dyn BlockDevice>,
}

/// Shows `device` as the file `disk` in `directory`. Only the calling user can access it.
///
/// # Errors
/// If FUSE is not available, `directory` is not a directory, or the device's longest request is
/// shorter than a page.
pub fn mount_raw(
    device: Arc<dyn BlockDevice>,
    directory: &Path,
    options: &FuseOptions,
) -> Result<FuseMount, MountError> {
    let directory = mount_point(directory)?;
    if device.request_bytes_max() < PAGE_BYTES {
        return Err(MountError::UnfitDisk(
            "its longest request is shorter than a page of 4096 bytes",
        ));
    }
    if !Path::new("/dev/fuse").exists() {
        return Err(MountError::NoFuse);
    }
    if !rustix::process::geteuid().is_root() {
        program::FUSERMOUNT.find()?;
    }
    let users = Arc::new(Users::default());
    let image = Image::new(Arc::clone(&device), options, Arc::clone(&users));
    let mounted = fuser::spawn_mount(image, &directory, &config(options));
    let session = Some(mounted.map_err(MountError::Fuse)?);
    let mut mount = FuseMount { directory, number: None, session, users, device };
    mount.number = mountinfo::top_at(&mount.directory)?.map(|top| top.number);
    Ok(mount)
}

/// The canonical path of `directory`, as the kernel shows it.
pub(crate) fn mount_point(directory: &Path) -> Result<PathBuf, MountError> {
    let canonical = directory.canonicalize();
    let is_there = canonical.ok().filter(|path| path.is_dir());
    is_there.ok_or_else(|| MountError::NotADirectory(directory.to_path_buf()))
}

fn config(options: &FuseOptions) -> Config {
    let mut config = Config::default();
    let access = if options.read_only { MountOption::RO } else { MountOption::RW };
    config.mount_options = vec![
        MountOption::FSName(SOURCE.to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoExec,
        access,
    ];
    config.acl = SessionACL::Owner;
    config
}

impl FuseMount {
    /// The path of the file that shows the disk.
    pub fn disk(&self) -> PathBuf {
        self.directory.join(DISK_NAME)
    }

    /// Waits, for at most `patience`, until the file system is unmounted. Returns whether it is
    /// unmounted.
    pub fn wait_until_unmounted(&self, patience: Duration) -> bool {
        self.users.wait_until_ended(patience)
    }

    /// Waits, for at most `patience`, until no process has the file open. Returns `false` after a
    /// timeout.
    pub(crate) fn wait_until_unused(&self, patience: Duration) -> bool {
        self.users.wait_until_none(patience)
    }

    /// Unmounts the file system, unless it has been unmounted already, and flushes the disk. If the
    /// mount is in use, it stays mounted; try again later.
    ///
    /// # Errors
    /// If the mount is in use, or unmounting or the flush fails.
    pub fn unmount(&mut self) -> Result<(), MountError> {
        if self.session.is_none() {
            return Ok(());
        }
        if self.is_topmost()? {
            unmount_fuse(&self.directory, false)?;
        }
        if !self.users.wait_until_ended(LETTING_GO) {
            return Err(MountError::Busy(self.directory.clone()));
        }
        let ended = self.session.take().map_or(Ok(()), BackgroundSession::join);
        call(&*self.device, DiskOp::Flush).map_err(MountError::Disk)?;
        ended.map_err(MountError::Fuse)
    }

    fn is_topmost(&self) -> Result<bool, MountError> {
        let top = mountinfo::top_at(&self.directory)?;
        Ok(self.number.is_some() && top.map(|top| top.number) == self.number)
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        if self.is_topmost().unwrap_or(false) {
            // A destructor cannot report the error.
            let _ = unmount_fuse(&self.directory, true);
        }
        if !self.users.wait_until_ended(ENDING) {
            // Serve the processes that have the file open. Dropping the session now would unmount
            // whatever is at that path by then.
            mem::forget(session);
        }
    }
}

/// Unmounts a FUSE file system. With `lazily`, it disappears at once and ends when no process uses
/// it any more.
pub(crate) fn unmount_fuse(directory: &Path, lazily: bool) -> Result<(), MountError> {
    let (program, lazy) = if rustix::process::geteuid().is_root() {
        (UMOUNT, "--lazy")
    } else {
        (program::FUSERMOUNT, "-z")
    };
    let mut arguments = vec![];
    if program == program::FUSERMOUNT {
        arguments.push("-u".as_ref());
    }
    if lazily {
        arguments.push(lazy.as_ref());
    }
    arguments.push(directory.as_os_str());
    unmount_with(program, &arguments, directory)
}

/// Runs `program` to unmount `directory`. Retries at most [`BUSY_MAX`] times while the mount is
/// busy.
pub(crate) fn unmount_with(
    program: Program,
    arguments: &[&OsStr],
    directory: &Path,
) -> Result<(), MountError> {
    let unmount = || {
        let unmounted = program.run(arguments).map(drop);
        unmounted.map_err(|error| error.or_busy(directory))
    };
    for _ in 0..BUSY_MAX {
        match unmount() {
            Err(MountError::Busy(_)) => thread::sleep(MOMENT),
            result => return result,
        }
    }
    unmount()
}
