//! A state directory in the file system.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{StateDir, StateFile};
use crate::error::{VolumeError, VolumeErrorKind};

/// The file that whoever uses the directory holds locked.
const LOCK_NAME: &str = "lock";

/// A directory that only its owner may enter, and only one process at a time uses.
pub struct FsStateDir {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl FsStateDir {
    /// Opens the directory, which may be made for it.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Locked`] when somebody else uses it, [`VolumeErrorKind::Io`] when it cannot
    /// be made or entered.
    pub fn open(path: &Path) -> Result<Self, VolumeError> {
        let failed = |error: io::Error| {
            let message =
                format!("the client's directory {} cannot be used: {error}", path.display());
            VolumeError::caused_by(VolumeErrorKind::Io, message, error)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK_NAME))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => Err(VolumeError::new(
                VolumeErrorKind::Locked,
                format!(
                    "the client's directory {} is in use: another process has the volume open. \
                     Stop it first",
                    path.display()
                ),
            )),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl StateDir for FsStateDir {
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?;
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let names: io::Result<Vec<_>> = names.filter_map(Result::transpose).collect();
        Ok(names?.into_iter().filter(|name| name != LOCK_NAME).collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.file(name))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        File::open(self.file(name))?.sync_data()
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        Ok(Box::new(FsStateFile(options.open(self.file(name))?)))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.file(from), self.file(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.file(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

struct FsStateFile(File);

impl StateFile for FsStateFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
