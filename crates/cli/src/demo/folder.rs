//! Folders of files, compared by their checksums.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::CliError;
use crate::files;

/// Maximum bytes of the files: more would make the demonstration too long.
const BYTES_MAX: u64 = 512 << 20;

/// Minimum bytes of the disk. A smaller disk would do for ext4 with a journal, but its pictures
/// would show little.
const DISK_BYTES_MIN: u64 = 16 << 20;

/// The name of the directory that every ext4 comes with.
const LOST_AND_FOUND: &str = "lost+found";

type Checksum = [u8; 32];

/// A folder of files.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Checksums by path within the folder.
    pub(super) files: BTreeMap<PathBuf, Checksum>,
    pub(super) bytes: u64,
}

/// The number of files in an expected folder, and the numbers of those that are missing and changed
/// in the compared folder.
pub(super) struct Difference {
    pub(super) files: usize,
    pub(super) lost: usize,
    pub(super) changed: usize,
}

impl Folder {
    /// Reads all regular files of a folder and its subfolders, except those in `lost+found`. Stops
    /// once they have more than [`BYTES_MAX`] bytes. Fails if there is no file.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let mut folder = Self { path: path.to_owned(), files: BTreeMap::new(), bytes: 0 };
        folder.walk(Path::new("")).map_err(|error| files::cannot_read(path, &error))?;
        if folder.files.is_empty() {
            let message = format!("{} holds no files: name a folder that does", path.display());
            return Err(CliError::Input(message));
        }
        Ok(folder)
    }

    fn walk(&mut self, within: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.path.join(within))? {
            let entry = entry?;
            let name = within.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() && entry.file_name() != LOST_AND_FOUND {
                self.walk(&name)?;
            } else if kind.is_file() && self.bytes <= BYTES_MAX {
                let bytes = fs::read(entry.path())?;
                self.bytes += bytes.len() as u64;
                self.files.insert(name, Sha256::digest(&bytes).into());
            }
        }
        Ok(())
    }

    /// Bytes of a disk with room for two copies of the folder. Fails if the files have more than
    /// [`BYTES_MAX`] bytes.
    pub(super) fn disk_bytes(&self) -> Result<u64, CliError> {
        if self.bytes > BYTES_MAX {
            return Err(CliError::Input(format!(
                "{} holds more than {} MiB: name a smaller folder",
                self.path.display(),
                BYTES_MAX >> 20
            )));
        }
        Ok((3 * self.bytes).next_power_of_two().max(DISK_BYTES_MIN))
    }

    /// Returns this folder with the additional files `others`.
    pub(super) fn joined(&self, others: &BTreeMap<PathBuf, Checksum>) -> Self {
        let mut files = self.files.clone();
        files.extend(others.iter().map(|(path, checksum)| (path.clone(), *checksum)));
        Self { path: self.path.clone(), files, bytes: self.bytes }
    }

    /// Counts the files of `expected` that are missing or changed in this folder. Additional files
    /// do not count.
    pub(super) fn compare(&self, expected: &Self) -> Difference {
        let mut difference = Difference { files: expected.files.len(), lost: 0, changed: 0 };
        for (path, checksum) in &expected.files {
            match self.files.get(path) {
                None => difference.lost += 1,
                Some(found) => difference.changed += usize::from(found != checksum),
            }
        }
        difference
    }
}

impl Difference {
    pub(super) fn is_none(&self) -> bool {
        self.lost + self.changed == 0
    }

    pub(super) fn text(&self) -> String {
        let Self { files, lost, changed } = self;
        match self.is_none() {
            true => format!("the file system is clean, and all {files} checksums are right"),
            false => format!("of {files} files, {lost} ARE LOST and {changed} ARE CHANGED"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_changed_files_are_counted_and_additional_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["a", "sub/b", "c"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let before = Folder::read(dir.path()).unwrap();
        assert_eq!((before.files.len(), before.bytes), (3, 7));
        assert!(before.compare(&before).is_none());
        fs::write(dir.path().join("a"), "x").unwrap();
        fs::write(dir.path().join("new"), "x").unwrap();
        fs::remove_file(dir.path().join("sub/b")).unwrap();
        let Difference { lost, changed, .. } = Folder::read(dir.path()).unwrap().compare(&before);
        assert_eq!((lost, changed), (1, 1));
    }

    #[test]
    fn a_disk_has_room_for_the_folder_twice() {
        let folder = |bytes| Folder { path: PathBuf::new(), files: BTreeMap::new(), bytes };
        assert_eq!(folder(1).disk_bytes().unwrap(), 16 << 20);
        assert_eq!(folder(50 << 20).disk_bytes().unwrap(), 256 << 20);
        assert!(folder(BYTES_MAX + 1).disk_bytes().is_err());
    }
}
