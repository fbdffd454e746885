//! Errors of mounting and unmounting, with advice.

use std::io;
use std::path::{Path, PathBuf};

use oblivio_volume::device::DiskError;

/// The reason why a disk could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The system has no FUSE.
    #[error(
        "/dev/fuse does not exist; load the kernel module (modprobe fuse) or, in a container, pass \
         the device in (--device /dev/fuse). The NBD server works without FUSE"
    )]
    NoFuse,
    /// The FUSE session failed.
    #[error("{}", fuse_failure(.0))]
    Fuse(#[source] io::Error),
    /// A system program is missing.
    #[error("{program} is not installed; on Debian, run apt install {package}")]
    NoProgram {
        /// The program's name.
        program: &'static str,
        /// The Debian package that contains the program.
        package: &'static str,
    },
    /// A system program failed.
    #[error("{program} failed: {said}")]
    Program {
        /// The program's name.
        program: &'static str,
        /// The start of the program's output on stderr, or its exit status if there is no output.
        said: String,
    },
    /// Only root can mount file systems.
    #[error(
        "only root can mount a file system through a loop device; run this as root, or mount \
         the raw disk or use the NBD server, which do not need root"
    )]
    NotRoot,
    /// No loop device is free.
    #[error(
        "no loop device is free ({0}); detach one (losetup --list shows them), or load the \
         kernel module (modprobe loop)"
    )]
    NoLoopDevice(String),
    /// The mount point is not a directory.
    #[error("{} is not a directory; choose an existing directory as the mount point", .0.display())]
    NotADirectory(PathBuf),
    /// The mount point is in use, so it cannot be unmounted now.
    #[error(
        "{} is in use; leave it and close its files (fuser --verbose --mount lists the \
         processes), then try again",
        .0.display()
    )]
    Busy(PathBuf),
    /// The disk is empty, and creating a file system is not allowed.
    #[error(
        "the disk is empty, and creating a file system was not allowed; allow it, or create one"
    )]
    Empty,
    /// The disk is empty, but smaller than this number of bytes, the minimum for a file system.
    #[error(
        "the disk is too small for a file system, which needs {} KiB; mount the raw disk, or \
         create a larger volume",
        .0 >> 10
    )]
    TooSmall(u64),
    /// The disk has no file system signature, and may contain other data.
    #[error(
        "the disk has no file system, but blocks of it were written. It begins and ends with \
         zeros and may contain data in between, so it was not changed. Mount the raw disk to \
         inspect it; to overwrite it anyway, run mkfs.ext4 on the file `disk` there"
    )]
    MayHoldData,
    /// The disk has contents other than this file system.
    #[error(
        "the disk is not empty and has no {0} file system, so it was not changed; mount the raw \
         disk to inspect it"
    )]
    NotThisFilesystem(&'static str),
    /// The disk cannot be served as a file.
    #[error("the disk cannot be served as a file: {0}")]
    UnfitDisk(&'static str),
    /// The disk failed.
    #[error("the disk failed: {0}")]
    Disk(#[source] DiskError),
    /// A process already serves this directory.
    #[error("{} is already served by process {pid}; unmount it first", .directory.display())]
    AlreadyServed {
        /// The directory that the process serves.
        directory: PathBuf,
        /// The number of the process (PID).
        pid: u32,
    },
    /// No process serves this directory.
    #[error("no volume is mounted on {}", .0.display())]
    NotServed(PathBuf),
    /// A process serves this directory, but it has not mounted a file system there yet, or no
    /// longer has one mounted.
    #[error(
        "nothing is mounted on {} now: process {pid} is still opening the volume, or already \
         closing it. Try again later, or ask the process to end (kill {pid})",
        .directory.display()
    )]
    NotMountedYet {
        /// The directory that the process serves.
        directory: PathBuf,
        /// The number of the process (PID).
        pid: u32,
    },
    /// The mount would hide a file that serving or unmounting needs.
    #[error(
        "{} lies below {}, and the mount would hide it; choose another mount point, or move it \
         elsewhere",
        .path.display(),
        .directory.display()
    )]
    Hides {
        /// The mount point.
        directory: PathBuf,
        /// The hidden path, as the caller named it.
        path: PathBuf,
    },
    /// This process and writers to the mount could deadlock on each other's memory.
    #[error(
        "the memory cgroup of this process is limited to {} MiB, and CAP_SYS_RESOURCE is \
         missing: a program in the cgroup that writes to the mount could hang for ever. Grant \
         the capability (docker run --cap-add SYS_RESOURCE), leave the cgroup first (echo $$ > \
         {}/cgroup.procs), or mount read-only",
        .bytes >> 20,
        .root.display()
    )]
    MemoryGroup {
        /// The mount point of the memory cgroups of version 1.
        root: PathBuf,
        /// The limit of this process's cgroup in bytes.
        bytes: u64,
    },
    /// No directory exists for the records of serving processes.
    #[error(
        "XDG_RUNTIME_DIR is not set, and {} is not a directory of yours; set XDG_RUNTIME_DIR to \
         one of your directories, the same for mount and umount",
        .0.display()
    )]
    NoRuntimeDirectory(PathBuf),
    /// An I/O operation on a file or directory failed.
    #[error("{}: {error}", .path.display())]
    File {
        /// The path of the file or directory.
        path: PathBuf,
        /// The error of the operation.
        #[source]
        error: io::Error,
    },
}

/// Returns the message for a failed FUSE session.
fn fuse_failure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "no permission to use FUSE; ask an administrator for access to /dev/fuse, or use the \
             NBD server, which does not need FUSE"
                .to_owned()
        }
        _ => format!("FUSE failed: {error}"),
    }
}

impl MountError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::File { path: path.to_path_buf(), error }
    }

    /// Turns the error into [`Self::Busy`] if the program reported that `directory` is busy.
    pub(crate) fn or_busy(self, directory: &Path) -> Self {
        match self {
            Self::Program { said, .. } if said.to_ascii_lowercase().contains("busy") => {
                Self::Busy(directory.to_path_buf())
            }
            other => other,
        }
    }
}
