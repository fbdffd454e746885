//! A disk as a mounted file system: the disk as a file (FUSE), the file as a block device (loop),
//! and the kernel's file system on that.
//!
//! Whoever unmounts the file system, with whatever program, ends it all: the loop device is told to
//! detach itself from its file once nothing uses it, so that the file is closed exactly when the
//! last user of the file system is gone, in any mount namespace. The serving process sees the file
//! closed, and takes down the rest.
//!
//! # Memory
//! If memory is short, a process that asks for some may have to wait until dirty pages are written
//! back. If it serves the file system that those pages belong to, it waits for itself, and the file
//! system hangs for ever. A process that serves one should therefore call [`stay_out_of_reclaim`]
//! before it starts any thread. Without `CAP_SYS_RESOURCE` the kernel refuses that; then
//! [`refuse_deadlock`] refuses the one case in which the kernel is known to wait, a limited memory
//! cgroup of version 1. See `docs/adr/0019-mounts-in-memory-cgroups.md`.

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

/// On less, mkfs.ext4 fails half way.
const FILESYSTEM_BYTES_MIN: u64 = 128 << 10;

/// Of fewer blocks, mkfs.ext4 makes a file system without a journal.
const JOURNALED_BLOCKS_MIN: u64 = 2048;

/// How long the kernel may take to close the disk once the file system is unmounted.
const LETTING_GO: Duration = Duration::from_secs(5);

/// How a disk is mounted.
#[derive(Clone, Debug, Default)]
pub struct MountOptions {
    /// Whether a file system may be made.
    pub make: MakeFilesystem,
    /// The file system.
    pub filesystem: Filesystem,
    /// No block of the disk has contents: whoever keeps its blocks knows. A disk that reads as zeros
    /// where it is looked at may hold data elsewhere.
    pub is_known_empty: bool,
    /// Nothing can be written. A file system that was not unmounted cleanly needs to be written once.
    pub read_only: bool,
}

/// Whether a file system may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MakeFilesystem {
    /// No: an empty disk is an error.
    #[default]
    Never,
    /// If the disk [is known to be empty](MountOptions::is_known_empty).
    IfEmpty,
}

/// The file systems that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filesystem {
    /// Linux's ext4.
    #[default]
    Ext4,
}

impl Filesystem {
    /// What the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
        }
    }

    /// Bytes of its blocks on `disk`: those of the disk's, as far as ext4 has them; fewer where there would be too few
    /// blocks for a journal. Without one, the file system has to be mended by hand after a power loss.
    fn block_bytes(self, disk: &dyn BlockDevice) -> u32 {
        let Self::Ext4 = self;
        let mut block_bytes = disk.block_bytes().clamp(1024, 4096).next_power_of_two();
        while block_bytes > 1024 && disk.bytes() / u64::from(block_bytes) < JOURNALED_BLOCKS_MIN {
            block_bytes /= 2;
        }
        block_bytes
    }

    /// Makes one. The disk reads as zeros already: to discard it first would only cost.
    fn make(self, device: &LoopDevice, block_bytes: u32) -> Result<(), MountError> {
        let Self::Ext4 = self;
        let block_bytes = block_bytes.to_string();
        let options = ["-q", "-E", "nodiscard", "-b", &block_bytes].map(AsRef::as_ref);
        let arguments = [options.as_slice(), &[device.path().as_os_str()]].concat();
        MKFS_EXT4.run(&arguments).map(drop)
    }
}

/// A mounted file system, until it is dropped.
pub struct FilesystemMount {
    directory: PathBuf,
    private: PathBuf,
    fuse: FuseMount,
    taken_down: bool,
}

/// Mounts the file system on `device` on the directory that `registration` names.
///
/// # Errors
/// When the system lacks something, or the disk holds something else, or a step fails. The steps
/// before that are undone.
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
        // Before anything is written: what mkfs leaves behind when it fails is no empty disk.
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
    // Dropped when a later step fails, which undoes this one.
    let mount = FilesystemMount { directory, private, fuse, taken_down: false };

    let loop_device = LoopDevice::attach(&mount.fuse.disk())?;
    if make {
        options.filesystem.make(&loop_device, block_bytes)?;
    }
    // Who else has a key, or had one, may have put devices and programs that become root on the disk.
    let access = if options.read_only { "ro,nosuid,nodev" } else { "rw,nosuid,nodev" };
    let arguments = ["-t", options.filesystem.name(), "-o", access].map(AsRef::as_ref);
    let places = [loop_device.path().as_os_str(), mount.directory.as_os_str()];
    MOUNT.run(&[arguments.as_slice(), &places].concat())?;
    loop_device.detach_after_last_use()?;
    Ok(mount)
}

/// Whether this process can mount a file system at all.
///
/// # Errors
/// When it is not root's, or a program that it takes is missing.
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
    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Waits until somebody unmounted the file system and its last user is gone, but no longer than
    /// `patience`. Says whether that is so.
    pub fn wait_until_unmounted(&self, patience: Duration) -> bool {
        self.fuse.wait_until_unused(patience)
    }

    /// Unmounts the file system, unless somebody did before, takes down what it stood on, and makes
    /// all that was written durable. It stays mounted when it is in use: try again later.
    ///
    /// # Errors
    /// When the file system is in use, or the disk fails to become durable.
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
            // Nobody is left to be told. Who uses it is served until they stop.
            let _ = unmount::unmount_ours(&self.directory, &self.fuse.disk(), true);
        }
    }
}

/// Exempts this process from waiting for pages to be written back when it asks for memory. To be
/// called before any thread starts: it holds for this thread, and for threads and programs that it
/// starts later.
///
/// # Errors
/// If the process lacks `CAP_SYS_RESOURCE`, or the kernel is older than Linux 5.6.
pub fn stay_out_of_reclaim() -> std::io::Result<()> {
    Ok(rustix::process::configure_io_flusher_behavior(true)?)
}

/// Refuses to serve a file system that can be written from a process that is not
/// [exempt](stay_out_of_reclaim), if it is in a limited memory cgroup of version 1.
///
/// # Errors
/// [`MountError::MemoryGroup`].
pub fn refuse_deadlock() -> Result<(), MountError> {
    match memory_group::limited_group() {
        Some(group) => Err(MountError::MemoryGroup { root: group.root, bytes: group.bytes }),
        None => Ok(()),
    }
}
