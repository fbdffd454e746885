//! Why a disk could not be mounted or unmounted, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use oblivio_volume::device::DiskError;

/// Why a disk could not be mounted or unmounted.
#[derive(Debug)]
#[non_exhaustive]
pub enum MountError {
    /// The system has no FUSE.
    NoFuse,
    /// The FUSE session failed.
    Fuse(io::Error),
    /// A program of the system is missing.
    NoProgram {
        /// What it is called.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program of the system failed.
    Program {
        /// What it is called.
        program: &'static str,
        /// What it said.
        said: String,
    },
    /// Only root may mount file systems.
    NotRoot,
    /// All loop devices are taken, or there are none.
    NoLoopDevice(String),
    /// Cannot be mounted on.
    NotADirectory(PathBuf),
    /// In use: cannot be unmounted now.
    Busy(PathBuf),
    /// The disk is empty, and no file system may be made.
    Empty,
    /// The disk is empty, and too small for a file system, which takes so many bytes.
    TooSmall(u64),
    /// The disk holds no file system where one would be, and nobody knows that it holds nothing else.
    MayHoldData,
    /// The disk holds something, but not this file system.
    NotThisFilesystem(&'static str),
    /// The disk cannot be served as a file.
    UnfitDisk(&'static str),
    /// The disk failed.
    Disk(DiskError),
    /// A process serves this directory already.
    AlreadyServed {
        /// The directory.
        directory: PathBuf,
        /// The process.
        pid: u32,
    },
    /// No process serves this directory.
    NotServed(PathBuf),
    /// A process serves this directory, and has nothing mounted there: not yet, or not any more.
    NotMountedYet {
        /// The directory.
        directory: PathBuf,
        /// The process.
        pid: u32,
    },
    /// The mount would hide a file that it needs.
    Hides {
        /// The directory to mount on.
        directory: PathBuf,
        /// The file, as the caller named it.
        path: PathBuf,
    },
    /// This process and those that write to the mount would wait for each other's memory for ever.
    MemoryGroup {
        /// Where the memory cgroups are.
        root: PathBuf,
        /// The limit of the cgroup of this process.
        bytes: u64,
    },
    /// There is no place to write down who serves what.
    NoRuntimeDirectory(PathBuf),
    /// Something about a file or directory failed.
    File {
        /// Which.
        path: PathBuf,
        /// How.
        error: io::Error,
    },
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

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFuse => f.write_str(
                "there is no /dev/fuse: load the kernel's module (modprobe fuse), or, in a \
                 container, pass the device in (--device /dev/fuse); the NBD server works without",
            ),
            Self::Fuse(error) if error.kind() == io::ErrorKind::PermissionDenied => f.write_str(
                "you may not use FUSE here: have an administrator let you open /dev/fuse, or use the NBD \
                 server, which works without",
            ),
            Self::Fuse(error) => write!(f, "FUSE failed: {error}"),
            Self::NoProgram { program, package } => {
                write!(f, "{program} is not installed: on Debian, apt install {package}")
            }
            Self::Program { program, said } => write!(f, "{program} failed: {said}"),
            Self::NotRoot => f.write_str(
                "only root can mount a file system through a loop device: run this as root, or \
                 mount the raw disk or use the NBD server, which work without",
            ),
            Self::NoLoopDevice(said) => write!(
                f,
                "there is no free loop device ({said}): list them with losetup --list and detach \
                 one, or load the kernel's module (modprobe loop)"
            ),
            Self::NotADirectory(path) => {
                write!(f, "{} is not a directory that can be mounted on", path.display())
            }
            Self::Busy(path) => write!(
                f,
                "{} is in use: leave it and close its files (fuser --verbose --mount shows who \
                 has them), then try again",
                path.display()
            ),
            Self::Empty => f.write_str(
                "the disk is empty, and no file system may be made on it: let one be made first",
            ),
            Self::TooSmall(bytes) => write!(
                f,
                "the disk is too small for a file system, which takes {} KiB: mount the raw disk, or \
                 make a larger volume",
                bytes >> 10
            ),
            Self::MayHoldData => f.write_str(
                "the disk holds no file system, but blocks of it were written: it begins and ends with \
                 zeros and may hold data between them, so it is left as it is. Mount \
                 the raw disk to see what is on it; to make a file system over that all the \
                 same, run mkfs.ext4 on the file `disk` there",
            ),
            Self::NotThisFilesystem(name) => write!(
                f,
                "the disk is neither empty nor holds an {name} file system: it is left as it is; \
                 mount the raw disk to see what is on it"
            ),
            Self::UnfitDisk(why) => write!(f, "the disk cannot be served as a file: {why}"),
            Self::Disk(error) => write!(f, "the disk failed: {error}"),
            Self::AlreadyServed { directory, pid } => write!(
                f,
                "{} is served already, by process {pid}: unmount it first",
                directory.display()
            ),
            Self::NotServed(path) => {
                write!(f, "no volume is mounted on {}", path.display())
            }
            Self::NotMountedYet { directory, pid } => write!(
                f,
                "nothing is mounted on {} by now: process {pid} is still opening the volume for it, or \
                 closing it already. Try again later, or ask the process to end (kill {pid})",
                directory.display()
            ),
            Self::Hides { directory, path } => write!(
                f,
                "{} lies below {}, and the mount would hide it: mount on another directory, or \
                 move it out of there",
                path.display(),
                directory.display()
            ),
            Self::MemoryGroup { root, bytes } => write!(
                f,
                "the memory cgroup of this process is limited to {} MiB, and CAP_SYS_RESOURCE is \
                 missing: a program of the cgroup that writes to the mount would hang for ever. \
                 Grant the capability (docker run --cap-add SYS_RESOURCE), leave the cgroup first \
                 (echo $$ > {}/cgroup.procs), or mount read-only",
                bytes >> 20,
                root.display()
            ),
            Self::NoRuntimeDirectory(usual) => write!(
                f,
                "XDG_RUNTIME_DIR is not set, and {} is no directory of yours: set it to one that is, the \
                 same for mount and umount",
                usual.display()
            ),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for MountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Fuse(error) | Self::File { error, .. } => Some(error),
            Self::Disk(error) => Some(error),
            _ => None,
        }
    }
}
