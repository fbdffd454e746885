//! A state directory in the file system.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{StateDir, StateFile, StateSource};
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
    /// Makes the directory, unless it is there, and takes it into use.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Locked`] when somebody else uses it, [`VolumeErrorKind::Io`] when it cannot
    /// be made or entered.
    pub fn create(path: &Path) -> Result<Self, VolumeError> {
        make_durably(path).map_err(|error| unusable(path, error))?;
        Self::open(path)
    }

    /// Takes a directory into use.
    ///
    /// # Errors
    /// [`VolumeErrorKind::StateDamaged`] when there is none, [`VolumeErrorKind::Locked`] when somebody
    /// else uses it, [`VolumeErrorKind::Io`] when it cannot be entered.
    pub fn open(path: &Path) -> Result<Self, VolumeError> {
        if !path.is_dir() {
            return Err(VolumeError::new(
                VolumeErrorKind::StateDamaged,
                format!(
                    "there is no client's directory {}: name the one that the volume was last used \
                     with. Without it the blocks cannot be found",
                    path.display()
                ),
            ));
        }
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join(LOCK_NAME))
            .map_err(|error| unusable(path, error))?;
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
            Err(fs::TryLockError::Error(error)) => Err(unusable(path, error)),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Makes a directory and those it is in, and lets their names survive a crash.
fn make_durably(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let parents = missing.iter().filter_map(|made| made.parent());
    // A relative path begins here, which has no name of its own.
    parents
        .map(|parent| if parent == Path::new("") { Path::new(".") } else { parent })
        .try_for_each(|parent| File::open(parent)?.sync_all())
}

fn unusable(path: &Path, error: io::Error) -> VolumeError {
    let what = format!("the client's directory {} cannot be used", path.display());
    VolumeError::of_client_directory(&what, error)
}

impl StateDir for FsStateDir {
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?;
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let names: io::Result<Vec<_>> = names.filter_map(Result::transpose).collect();
        Ok(names?.into_iter().filter(|name| name != LOCK_NAME).collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        Ok(Box::new(File::open(self.file(name))?))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_is_its_owners_alone_and_used_by_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b");
        let kind = |opened: Result<FsStateDir, VolumeError>| opened.map(drop).unwrap_err().kind();
        assert_eq!(kind(FsStateDir::open(&path)), VolumeErrorKind::StateDamaged);
        assert!(!home.path().join("a").exists(), "looking for it made it");

        let mut dir = FsStateDir::create(&path).unwrap();
        assert_eq!(kind(FsStateDir::open(&path)), VolumeErrorKind::Locked);
        dir.create("file").unwrap().append(b"secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("file"))), (0o700, 0o600));
        assert_eq!(dir.names().unwrap(), ["file"]);

        drop(dir);
        assert_eq!(FsStateDir::open(&path).unwrap().read("file").unwrap(), b"secret");
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = FsStateDir::create(&file.path().join("x")).map(drop).unwrap_err();
        assert_eq!(error.kind(), VolumeErrorKind::Io);
        assert!(error.to_string().contains("cannot be used"), "{error}");
    }
}
