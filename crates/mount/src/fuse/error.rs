//! Why a disk could not be mounted or unmounted, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use oblivio_volume::device::DiskError;

/// Why a disk could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The system has no FUSE.
    #[error(
        "there is no /dev/fuse: load the kernel's module (modprobe fuse), or, in a container, \
         pass the device in (--device /dev/fuse); the NBD server works without"
    )]
    NoFuse,
    /// The FUSE session failed.
    #[error("{}", fuse_failure(.0))]
    Fuse(#[source] io::Error),
    /// A program of the system is missing.
    #[error("{program} is not installed: on Debian, apt install {package}")]
    NoProgram {
        /// What it is called.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program of the system failed.
    #[error("{program} failed: {said}")]
    Program {
        /// What it is called.
        program: &'static str,
        /// What it said.
        said: String,
    },
    /// Only root may mount file systems.
    #[error(
        "only root can mount a file system through a loop device: run this as root, or mount \
         the raw disk or use the NBD server, which work without"
    )]
    NotRoot,
    /// All loop devices are taken, or there are none.
    #[error(
        "there is no free loop device ({0}): list them with losetup --list and detach one, or \
         load the kernel's module (modprobe loop)"
    )]
    NoLoopDevice(String),
    /// Cannot be mounted on.
    #[error("{} is not a directory that can be mounted on", .0.display())]
    NotADirectory(PathBuf),
    /// In use: cannot be unmounted now.
    #[error(
        "{} is in use: leave it and close its files (fuser --verbose --mount shows who has \
         them), then try again",
        .0.display()
    )]
    Busy(PathBuf),
    /// The disk is empty, and no file system may be made.
    #[error("the disk is empty, and no file system may be made on it: let one be made first")]
    Empty,
    /// The disk is empty, and smaller than this number of bytes, which a file system takes.
    #[error(
        "the disk is too small for a file system, which takes {} KiB: mount the raw disk, or \
         make a larger volume",
        .0 >> 10
    )]
    TooSmall(u64),
    /// The disk has no file system where one would begin, and may hold other data.
    #[error(
        "the disk holds no file system, but blocks of it were written: it begins and ends with \
         zeros and may hold data between them, so it is left as it is. Mount the raw disk to \
         see what is on it; to make a file system over that all the same, run mkfs.ext4 on the \
         file `disk` there"
    )]
    MayHoldData,
    /// The disk holds something, but not this file system.
    #[error(
        "the disk is neither empty nor holds an {0} file system: it is left as it is; mount the \
         raw disk to see what is on it"
    )]
    NotThisFilesystem(&'static str),
    /// The disk cannot be served as a file.
    #[error("the disk cannot be served as a file: {0}")]
    UnfitDisk(&'static str),
    /// The disk failed.
    #[error("the disk failed: {0}")]
    Disk(#[source] DiskError),
    /// A process serves this directory already.
    #[error("{} is served already, by process {pid}: unmount it first", .directory.display())]
    AlreadyServed {
        /// The directory.
        directory: PathBuf,
        /// The process.
        pid: u32,
    },
    /// No process serves this directory.
    #[error("no volume is mounted on {}", .0.display())]
    NotServed(PathBuf),
    /// A process serves this directory, and has nothing mounted there: not yet, or not any more.
    #[error(
        "nothing is mounted on {} by now: process {pid} is still opening the volume for it, or \
         closing it already. Try again later, or ask the process to end (kill {pid})",
        .directory.display()
    )]
    NotMountedYet {
        /// The directory.
        directory: PathBuf,
        /// The process.
        pid: u32,
    },
    /// The mount would hide a file that it needs.
    #[error(
        "{} lies below {}, and the mount would hide it: mount on another directory, or move it \
         out of there",
        .path.display(),
        .directory.display()
    )]
    Hides {
        /// The directory to mount on.
        directory: PathBuf,
        /// The file, as the caller named it.
        path: PathBuf,
    },
    /// This process and those that write to the mount would wait for each other's memory for ever.
    #[error(
        "the memory cgroup of this process is limited to {} MiB, and CAP_SYS_RESOURCE is \
         missing: a program of the cgroup that writes to the mount would hang for ever. Grant \
         the capability (docker run --cap-add SYS_RESOURCE), leave the cgroup first (echo $$ > \
         {}/cgroup.procs), or mount read-only",
        .bytes >> 20,
        .root.display()
    )]
    MemoryGroup {
        /// Where the memory cgroups are.
        root: PathBuf,
        /// The limit of the cgroup of this process.
        bytes: u64,
    },
    /// There is no place to write down who serves what.
    #[error(
        "XDG_RUNTIME_DIR is not set, and {} is no directory of yours: set it to one that is, \
         the same for mount and umount",
        .0.display()
    )]
    NoRuntimeDirectory(PathBuf),
    /// Something about a file or directory failed.
    #[error("{}: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// How.
        #[source]
        error: io::Error,
    },
}

/// What to say of a failed FUSE session.
fn fuse_failure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "you may not use FUSE here: have an administrator let you open /dev/fuse, or use the \
             NBD server, which works without"
                .to_owned()
        }
        _ => format!("FUSE failed: {error}"),
    }
}

impl MountError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::File { path: path.to_path_buf(), error }
    }

    /// Says that `directory` is in use if that is what a program said.
    pub(crate) fn or_busy(self, directory: &Path) -> Self {
        match self {
            Self::Program { said, .. } if said.to_ascii_lowercase().contains("busy") => {
                Self::Busy(directory.to_path_buf())
            }
            other => other,
        }
    }
}
