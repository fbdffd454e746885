//! The attributes and entries of the FUSE file system: a directory with the file `disk`.

use std::ffi::OsStr;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};

/// The name of the file that shows the disk.
pub const DISK_NAME: &str = "disk";

/// Time for which the kernel may cache names and attributes, which never change.
pub(super) const REMEMBERED: Duration = Duration::from_secs(3600);

pub(super) const DIRECTORY: INodeNo = INodeNo::ROOT;
pub(super) const DISK: INodeNo = INodeNo(2);

/// The entries of the directory listing.
pub(super) const ENTRIES: [(INodeNo, FileType, &str); 3] = [
    (DIRECTORY, FileType::Directory, "."),
    (DIRECTORY, FileType::Directory, ".."),
    (DISK, FileType::RegularFile, DISK_NAME),
];

/// The attributes of the directory and the file.
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    pub(super) bytes: u64,
    pub(super) block_bytes: u32,
    pub(super) read_only: bool,
}

impl Attributes {
    pub(super) fn of(self, inode: INodeNo) -> Option<FileAttr> {
        match inode {
            DIRECTORY => Some(self.directory()),
            DISK => Some(self.disk()),
            _ => None,
        }
    }

    pub(super) fn named(self, parent: INodeNo, name: &OsStr) -> Option<FileAttr> {
        (parent == DIRECTORY && name == DISK_NAME).then(|| self.disk())
    }

    fn disk(self) -> FileAttr {
        let perm = if self.read_only { 0o400 } else { 0o600 };
        let blocks = self.bytes.div_ceil(512);
        let kind = FileType::RegularFile;
        FileAttr { ino: DISK, size: self.bytes, blocks, kind, perm, nlink: 1, ..self.directory() }
    }

    fn directory(self) -> FileAttr {
        FileAttr {
            ino: DIRECTORY,
            size: 0,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::Directory,
            perm: 0o500,
            nlink: 2,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: self.block_bytes,
            flags: 0,
        }
    }
}
