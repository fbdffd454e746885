//! A disk as a mounted file system: the disk as a file (FUSE), the file as a block device (loop),
//! and the kernel's file system on that.
//!
//! Any program can unmount the file system; the loop device and the FUSE mount are then removed
//! automatically. The loop device is set to detach itself after its last use. So the file is closed
//! exactly when the last user of the file system ends, in any mount namespace. The serving process
//! sees that the file was closed, and removes the FUSE mount.
//!
//! # Memory
//! If memory is short, an allocation may wait until dirty pages are written back. If the process
//! serves the file system that owns these pages, it waits for itself, and the file system hangs for
//! ever. A serving process should therefore call [`exempt_from_reclaim`] before it starts any
//! thread. The kernel refuses this without `CAP_SYS_RESOURCE`. In that case, [`refuse_deadlock`]
//! detects the only known case in which the kernel waits: a limited memory cgroup of version 1 (see
//! `docs/adr/0019-mounts-in-memory-cgroups.md`).

mod emptiness;
pub mod fuse;
mod hiding;
mod loop_device;
mod memory_group;
mod mountinfo;
pub mod registry;
mod unmount;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oblivio_volume::device::BlockDevice;
use oblivio_wire::private;

use self::emptiness::Content;
pub use self::hiding::refuse_hiding;
use self::loop_device::LoopDevice;
use self::registry::Registration;
pub use self::unmount::{Unmounted, unmount_served};
pub use crate::fuse::MountError;
use crate::fuse::{FuseMount, FuseOptions, Program, mount_raw};

const MOUNT: Program = Program { name: "mount", package: "mount" };
const MKFS_EXT4: Program = Program { name: "mkfs.ext4", package: "e2fsprogs" };

/// Minimum size of a disk in bytes. On smaller disks, mkfs.ext4 fails half-way.
const FILESYSTEM_BYTES_MIN: u64 = 128 << 10;

/// Minimum number of blocks for a journal. With fewer blocks, mkfs.ext4 creates none.
const JOURNALED_BLOCKS_MIN: u64 = 2048;

/// Time for the kernel to close the disk after the file system is unmounted.
const LETTING_GO: Duration = Duration::from_secs(5);

/// Options for mounting a disk.
#[derive(Clone, Debug, Default)]
pub struct MountOptions {
    /// Whether a file system may be created.
    pub make: MakeFilesystem,
    /// The kind of file system.
    pub filesystem: Filesystem,
    /// Whether no block of the disk has contents, as the volume reports. A disk that reads as zeros
    /// at its start and end may contain data elsewhere.
    pub is_known_empty: bool,
    /// Whether to mount read-only. A file system that was not unmounted cleanly must be mounted for
    /// writing once.
    pub read_only: bool,
}

/// Whether a file system may be created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MakeFilesystem {
    /// Never create a file system. An empty disk is an error.
    #[default]
    Never,
    /// Create a file system if the disk [is known to be empty](MountOptions::is_known_empty).
    IfEmpty,
}

/// The supported file systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filesystem {
    /// The file system ext4 of Linux.
    #[default]
    Ext4,
}

impl Filesystem {
    /// The kernel's name of the file system.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
        }
    }

    /// The block size in bytes of a new file system on `disk`: the disk's block size, within the
    /// limits of ext4. The size is smaller if the disk would have too few blocks for a journal. A
    /// file system without a journal must be repaired by hand after a power loss.
    fn block_bytes(self, disk: &dyn BlockDevice) -> u32 {
        let Self::Ext4 = self;
        let mut block_bytes = disk.block_bytes().clamp(1024, 4096).next_power_of_two();
        while block_bytes > 1024 && disk.bytes() / u64::from(block_bytes) < JOURNALED_BLOCKS_MIN {
            block_bytes /= 2;
        }
        block_bytes
    }

    /// Creates a file system. Does not discard the disk first, because it already reads as zeros.
    fn make(self, device: &LoopDevice, block_bytes: u32) -> Result<(), MountError> {
        let Self::Ext4 = self;
        let block_bytes = block_bytes.to_string();
        let options = ["-q", "-E", "nodiscard", "-b", &block_bytes].map(AsRef::as_ref);
        let arguments = [options.as_slice(), &[device.path().as_os_str()]].concat();
        MKFS_EXT4.run(&arguments).map(drop)
    }
}

/// A mounted file system. Unmounted when dropped.
pub struct FilesystemMount {
    directory: PathBuf,
    private: PathBuf,
    fuse: FuseMount,
    taken_down: bool,
}

/// Mounts the file system of `device` on the directory of `registration`.
///
/// # Errors
/// If a system program or privilege is missing, the disk has other contents, the disk is empty and
/// no file system may be created, or a step fails. Earlier steps are undone.
pub fn mount_filesystem(
    device: Arc<dyn BlockDevice>,
    registration: &Registration,
    options: &MountOptions,
) -> Result<FilesystemMount, MountError> {
    check_system(options.make)?;
    let content = emptiness::look_at(&*device)?;
    let may_make = options.make == MakeFilesystem::IfEmpty && !options.read_only;
    let make = match content {
        Content::Zeros if !options.is_known_empty => return Err(MountError::MayHoldData),
        // Checked before any write: a failed mkfs leaves the disk non-empty.
        Content::Zeros if may_make && device.bytes() < FILESYSTEM_BYTES_MIN => {
            return Err(MountError::TooSmall(FILESYSTEM_BYTES_MIN));
        }
        Content::Zeros if may_make => true,
        Content::Zeros => return Err(MountError::Empty),
        Content::Ext => false,
        Content::Something => {
            return Err(MountError::NotThisFilesystem(options.filesystem.name()));
        }
    };

    let block_bytes = options.filesystem.block_bytes(&*device);
    let private = registration.private_directory();
    private::dir_builder().recursive(true).create(&private).map_err(MountError::file(&private))?;
    let raw = FuseOptions { read_only: options.read_only };
    let fuse = mount_raw(device, &private, &raw)?;
    let directory = registration.directory().to_path_buf();
    // Dropping it undoes the FUSE mount if a later step fails.
    let mount = FilesystemMount { directory, private, fuse, taken_down: false };

    let loop_device = LoopDevice::attach(&mount.fuse.disk())?;
    if make {
        options.filesystem.make(&loop_device, block_bytes)?;
    }
    // Another owner of a key may have put device files or setuid programs on the disk.
    let access = if options.read_only { "ro,nosuid,nodev" } else { "rw,nosuid,nodev" };
    let arguments = ["-t", options.filesystem.name(), "-o", access].map(AsRef::as_ref);
    let places = [loop_device.path().as_os_str(), mount.directory.as_os_str()];
    MOUNT.run(&[arguments.as_slice(), &places].concat())?;
    loop_device.detach_after_last_use()?;
    Ok(mount)
}

/// Checks whether this process can mount a file system at all.
///
/// # Errors
/// If it does not run as root, or a required program is missing.
pub fn check_system(make: MakeFilesystem) -> Result<(), MountError> {
    if !rustix::process::geteuid().is_root() {
        return Err(MountError::NotRoot);
    }
    MOUNT.find()?;
    loop_device::LOSETUP.find()?;
    if make != MakeFilesystem::Never {
        MKFS_EXT4.find()?;
    }
    Ok(())
}

impl FilesystemMount {
    /// The mount point.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits, for at most `patience`, until the file system is unmounted and no process uses it any
    /// more. Returns `false` after a timeout.
    pub fn wait_until_unmounted(&self, patience: Duration) -> bool {
        self.fuse.wait_until_unused(patience)
    }

    /// Unmounts the file system, unless it has been unmounted already. Then removes the loop device
    /// and the FUSE mount, and flushes the disk. If the file system is in use, it stays mounted;
    /// try again later.
    ///
    /// # Errors
    /// If the file system is in use, or the flush fails.
    pub fn unmount(&mut self) -> Result<(), MountError> {
        if !self.fuse.wait_until_unused(Duration::ZERO) {
            unmount::unmount_ours(&self.directory, &self.fuse.disk(), false)?;
        }
        if !self.fuse.wait_until_unused(LETTING_GO) {
            return Err(MountError::Busy(self.directory.clone()));
        }
        self.fuse.unmount()?;
        self.taken_down = true;
        fs::remove_dir(&self.private).map_err(MountError::file(&self.private))
    }
}

impl Drop for FilesystemMount {
    fn drop(&mut self) {
        if !self.taken_down && self.unmount().is_err() {
            // A destructor cannot report the error. Remaining users are served until they stop.
            let _ = unmount::unmount_ours(&self.directory, &self.fuse.disk(), true);
        }
    }
}

/// Exempts this process from waiting for write-back when it allocates memory. Call this function
/// before any thread starts: the exemption holds for this thread, and for threads and programs that
/// it starts later.
///
/// # Errors
/// If the process lacks `CAP_SYS_RESOURCE`, or the kernel is older than Linux 5.6.
pub fn exempt_from_reclaim() -> std::io::Result<()> {
    Ok(rustix::process::configure_io_flusher_behavior(true)?)
}

/// Fails if this process is in a limited memory cgroup of version 1. A process that is not
/// [exempt](exempt_from_reclaim) should call this function before a writable mount.
///
/// # Errors
/// [`MountError::MemoryGroup`].
pub fn refuse_deadlock() -> Result<(), MountError> {
    match memory_group::limited_group() {
        Some(group) => Err(MountError::MemoryGroup { root: group.root, bytes: group.bytes }),
        None => Ok(()),
    }
}
