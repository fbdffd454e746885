//! One file per object in a directory: a local one, or one of a network file system that several
//! machines mount.
//!
//! An object is written to a file with a temporary name, which is then linked to its own name: that
//! fails if the name exists. Files and directories are made durable by
//! [`sync`](Objects::sync), so a power loss may leave an object cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::private;
use rand::TryRng;
use rand::rngs::SysRng;

use super::{Answer, Listed, ObjectName, Objects, Prefix, Synced, Ticket};
use crate::error::{OpenError, OpenErrorKind};

/// The directory of files that are not objects yet.
const TEMPORARY: &str = "temporary";

/// A directory with one file per object.
#[derive(Debug)]
pub struct FolderObjects {
    folder: PathBuf,
    answers: BTreeMap<Ticket, Result<Answer, StoreError>>,
    next_ticket: u64,
    /// A random number in the names of this client's temporary files.
    nonce: u64,
    /// Files that are not durable yet.
    unsynced: Vec<PathBuf>,
    /// Directories whose parents were durable at a sync of this client.
    synced_dirs: BTreeSet<PathBuf>,
}

impl FolderObjects {
    /// Creates a directory for objects, if it does not exist.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn create(folder: &Path) -> Result<Self, OpenError> {
        private::dir_builder()
            .recursive(true)
            .create(folder)
            .map_err(|cause| OpenError::io(&format!("create {}", folder.display()), cause))?;
        Self::open(folder)
    }

    /// Opens an existing directory.
    ///
    /// # Errors
    /// If the directory does not exist.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let name = || format!("open {}", folder.display());
        let found = folder.metadata().map_err(|cause| OpenError::io(&name(), cause))?;
        if !found.is_dir() {
            let message = format!("{} is not a directory; check the path", folder.display());
            return Err(OpenError::new(OpenErrorKind::NotAStore, message));
        }
        let nonce = SysRng.try_next_u64().map_err(|cause| {
            let message = format!("the system provides no random numbers: {cause}");
            OpenError::new(OpenErrorKind::Io, message)
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            answers: BTreeMap::new(),
            next_ticket: 0,
            nonce,
            unsynced: Vec::new(),
            synced_dirs: BTreeSet::new(),
        })
    }

    /// Removes a directory without objects. Files that are no objects stay, and so does then the
    /// directory.
    pub(crate) fn remove_dir(folder: &Path) {
        let temporary = fs::remove_dir_all(folder.join(TEMPORARY));
        drop((temporary, fs::remove_dir(folder)));
    }

    fn answer(&mut self, answer: Result<Answer, StoreError>) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.answers.insert(ticket, answer);
        ticket
    }

    fn path(&self, name: ObjectName) -> PathBuf {
        self.folder.join(name.to_string())
    }

    fn get(&self, name: ObjectName, range: Range<u64>) -> Result<Answer, StoreError> {
        let failed = |cause| failed(&format!("read object {name}"), cause);
        let file = match File::open(self.path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Answer::Absent),
            Err(error) => return Err(failed(error)),
        };
        let end = range.end.min(file.metadata().map_err(failed)?.len());
        let mut bytes = vec![0; end.saturating_sub(range.start) as usize];
        file.read_exact_at(&mut bytes, range.start).map_err(failed)?;
        Ok(Answer::Bytes(bytes.into()))
    }

    fn create_object(&mut self, name: ObjectName, parts: &[Bytes]) -> Result<Answer, StoreError> {
        let failed = |cause| failed(&format!("create object {name}"), cause);
        let path = self.path(name);
        if path.symlink_metadata().is_ok() {
            // It may be this client's own, from an attempt whose answer was lost.
            self.unsynced.push(path);
            return Ok(Answer::Exists);
        }
        let temporary = self.folder.join(TEMPORARY);
        let from = temporary.join(format!("{:016x}-{}", self.nonce, self.next_ticket));
        self.make_dir(&temporary).map_err(failed)?;
        let linked = write_file(&from, parts).and_then(|()| self.link(&from, &path));
        // Also after an error, such as a full disk.
        let removed = fs::remove_file(&from);
        match linked {
            Ok(()) => {
                removed.map_err(failed)?;
                self.unsynced.push(path);
                Ok(Answer::Created)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.unsynced.push(path);
                Ok(Answer::Exists)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        match fs::hard_link(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            linked => return linked,
        }
        if let Some(parent) = to.parent() {
            self.make_dir(parent)?;
        }
        fs::hard_link(from, to)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        private::dir_builder().recursive(true).create(dir)
    }

    /// Adds the objects in and below `dir`.
    fn collect(&self, dir: &Path, found: &mut BTreeMap<ObjectName, u64>) -> io::Result<()> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                self.collect(&path, found)?;
                continue;
            }
            let relative = path.strip_prefix(&self.folder).ok().and_then(Path::to_str);
            let Some(name) = relative.and_then(ObjectName::parse) else { continue };
            match entry.metadata() {
                Ok(there) => drop(found.insert(name, there.len())),
                // Another client has just deleted it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync_all(&mut self) -> io::Result<()> {
        let mut dirs = BTreeSet::new();
        for path in &self.unsynced {
            sync_path(path)?;
            dirs.extend(path.parent());
        }
        for dir in dirs {
            sync_path(dir)?;
            if self.synced_dirs.contains(dir) {
                continue;
            }
            // The directory may be new, and so may those above it.
            for above in dir.ancestors().skip(1) {
                let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
                sync_path(above)?;
                if !above.starts_with(&self.folder) {
                    break;
                }
            }
            self.synced_dirs.insert(dir.to_owned());
        }
        self.unsynced.clear();
        Ok(())
    }
}

impl Objects for FolderObjects {
    fn begin_get(&mut self, name: ObjectName, range: Range<u64>) -> Ticket {
        let answer = self.get(name, range);
        self.answer(answer)
    }

    fn begin_create(&mut self, name: ObjectName, parts: Vec<Bytes>) -> Ticket {
        let answer = self.create_object(name, &parts);
        self.answer(answer)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<Answer, StoreError> {
        self.answers.remove(&ticket).unwrap_or_else(|| {
            Err(StoreError::new(StoreErrorKind::Failed, "a request was waited for twice"))
        })
    }

    fn forget(&mut self, ticket: Ticket) {
        self.answers.remove(&ticket);
    }

    fn list(
        &mut self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError> {
        let mut found = BTreeMap::new();
        let dir = self.folder.join(prefix.to_string());
        self.collect(&dir, &mut found).map_err(|cause| failed("list objects", cause))?;
        let listed = found.into_iter().filter(|(name, _)| after.is_none_or(|after| *name > after));
        Ok(listed.map(|(name, bytes)| Listed { name, bytes }).collect())
    }

    fn delete(&mut self, names: &[ObjectName]) -> Result<(), StoreError> {
        for name in names {
            let path = self.path(*name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&format!("delete object {name}"), error));
                }
                _ => {}
            }
            self.unsynced.retain(|unsynced| *unsynced != path);
            // Only empty directories can be removed.
            let dirs = path.ancestors().skip(1).take_while(|dir| *dir != self.folder);
            for dir in dirs.take_while(|dir| fs::remove_dir(dir).is_ok()) {
                self.synced_dirs.remove(dir);
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<Synced, StoreError> {
        self.sync_all().map_err(|cause| failed("sync objects", cause))?;
        Ok(Synced::Durable)
    }
}

fn write_file(path: &Path, parts: &[Bytes]) -> io::Result<()> {
    let mut file = private::file_options().write(true).create_new(true).open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

/// Makes a file or directory durable, unless another client has deleted it.
fn sync_path(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn failed(act: &str, cause: io::Error) -> StoreError {
    StoreError::caused_by(cause.kind().into(), format!("cannot {act}: {cause}"), cause)
}
