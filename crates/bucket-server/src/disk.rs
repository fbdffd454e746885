//! What must be durable, apart from stores: few bytes, and names.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use oblivio_wire::private;

/// As far as something here is to outlive a loss of power. Tests have one that loses it.
pub(super) trait Disk {
    /// A file or a folder that is open.
    type File;

    /// An empty file in place of any that exists. Only its owner may read a new one.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    fn open(&self, path: &Path) -> io::Result<Self::File>;

    fn append(&self, file: &mut Self::File, bytes: &[u8]) -> io::Result<()>;

    /// What the file holds, or the names that the folder has, are durable when this returns.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// That of the system.
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

/// The names in it are durable when this returns.
pub(super) fn sync_folder(disk: &impl Disk, folder: &Path) -> io::Result<()> {
    disk.sync(&disk.open(folder)?)
}
