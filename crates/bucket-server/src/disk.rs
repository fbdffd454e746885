//! Durable files besides the stores: small contents, and names.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use oblivio_wire::private;

/// File operations for durable state. Tests use a disk that loses power.
pub(super) trait Disk {
    /// An open file or folder.
    type File;

    /// Creates an empty file, or truncates an existing one. Only the owner may read a new file.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    fn open(&self, path: &Path) -> io::Result<Self::File>;

    fn append(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Makes the file's contents durable, or the names in the folder.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// The disk of the operating system.
pub(super) struct System;

impl Disk for System {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        private::file_options().write(true).create(true).truncate(true).open(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }

    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(disk: &impl Disk, folder: &Path) -> io::Result<()> {
    disk.sync(&disk.open(folder)?)
}
