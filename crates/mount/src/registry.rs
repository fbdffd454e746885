//! The registry of serving processes and their directories.
//!
//! Each serving process has a locked record in the runtime directory. The kernel releases the lock
//! when the process ends for any reason, so an unlocked record is stale. To wait for the end of a
//! process, wait for its lock.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

use oblivio_wire::private;

use super::MountError;
use super::hiding::refuse_hiding;
use super::loop_device::{self, LOSETUP};
use super::mountinfo;
use super::unmount::{Unmounted, unmount_ours};
use crate::fuse::{DISK_NAME, FUSERMOUNT, SOURCE, UMOUNT, mount_point, unmount_fuse};

/// Maximum bytes of a record, which consists mainly of a path and a number.
const RECORD_BYTES_MAX: u64 = 8192;

/// The parent of the users' runtime directories.
const RUNTIME_DIRECTORIES: &str = "/run/user";

/// Maximum number of directories that a process can serve.
const PER_PROCESS_MAX: u32 = 1000;

/// The records of all serving processes.
#[derive(Clone, Debug)]
pub struct Registry {
    directory: PathBuf,
}

/// This process's record of a directory that it serves. Keep the value until the volume is closed;
/// dropping it removes the record.
#[derive(Debug)]
pub struct Registration {
    directory: PathBuf,
    place: PathBuf,
    /// The locked file of the record. It contains the process number in decimal, a newline, and the
    /// directory. After the disk has failed, also a zero byte, the exit code as one byte, and the
    /// reason.
    record: File,
}

/// The record of a directory that a process serves, or served until it died.
#[derive(Debug)]
pub struct Served {
    directory: PathBuf,
    pid: u32,
    is_alive: bool,
    place: PathBuf,
    record: File,
}

impl Registry {
    /// Opens the registry of root or of this user.
    ///
    /// # Errors
    /// If there is no directory for the registry.
    pub fn open() -> Result<Self, MountError> {
        let parent = if rustix::process::geteuid().is_root() {
            "/run".into()
        } else {
            runtime_directory(env::var_os("XDG_RUNTIME_DIR"), Path::new(RUNTIME_DIRECTORIES))?
        };
        Self::at(&parent.join("oblivio"))
    }

    /// Opens a registry in `directory`, and creates the directory if necessary. Other users must
    /// not be able to write to the directory.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn at(directory: &Path) -> Result<Self, MountError> {
        let made = private::dir_builder().recursive(true).create(directory);
        made.map_err(MountError::file(directory))?;
        let directory = directory.canonicalize().map_err(MountError::file(directory))?;
        Ok(Self { directory })
    }

    /// Registers that this process serves `directory`. Removes the mounts and devices that dead
    /// processes in this registry left on any directory.
    ///
    /// # Errors
    /// If a process already serves `directory`, `directory` does not exist, a mount there would
    /// hide files that unmounting needs, or the record cannot be written.
    pub fn register(&self, directory: &Path) -> Result<Registration, MountError> {
        let directory = mount_point(directory)?;
        self.refuse_hiding_the_system(&directory)?;
        let _changing = self.lock()?;
        for served in self.all()? {
            if !served.is_alive {
                served.take_down()?;
            } else if served.directory == directory {
                return Err(MountError::AlreadyServed { directory, pid: served.pid });
            }
        }
        let place = self.new_place()?;
        let path = place.join("record");
        let record = write_record(&path, &directory).map_err(MountError::file(&path))?;
        Ok(Registration { directory, place, record })
    }

    /// Refuses a mount that would hide the records, `/proc`, `/sys` or the programs, because
    /// unmounting needs them.
    fn refuse_hiding_the_system(&self, directory: &Path) -> Result<(), MountError> {
        let programs = [UMOUNT, LOSETUP, FUSERMOUNT].map(|program| program.find());
        let programs = programs.iter().flatten().map(PathBuf::as_path);
        let shown = ["/proc", "/sys"].map(Path::new);
        refuse_hiding(directory, programs.chain(shown).chain([self.directory.as_path()]))
    }

    /// Returns the record of `directory`, even if its process has died.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn find(&self, directory: &Path) -> Result<Option<Served>, MountError> {
        let directory = canonical_even_if_dead(directory);
        let _changing = self.lock()?;
        Ok(self.all()?.find(|served| served.directory == directory))
    }

    /// Locks the set of records, for reading or changing it.
    fn lock(&self) -> Result<File, MountError> {
        let path = self.directory.join("lock");
        let file = private::file_options().create(true).truncate(false).write(true).open(&path);
        let locked = file.and_then(|file| file.lock().map(|()| file));
        locked.map_err(MountError::file(&path))
    }

    fn all(&self) -> Result<impl Iterator<Item = Served>, MountError> {
        let entries = fs::read_dir(&self.directory).map_err(MountError::file(&self.directory))?;
        // Skip entries that are not records, or that disappear meanwhile.
        Ok(entries.flatten().filter_map(|entry| Served::read(entry.path())))
    }

    fn new_place(&self) -> Result<PathBuf, MountError> {
        for number in 0..PER_PROCESS_MAX {
            let place = self.directory.join(format!("{}-{number}", process::id()));
            match private::dir_builder().create(&place) {
                Ok(()) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(MountError::file(&place)(error)),
            }
        }
        let full = io::Error::other("this process serves too many directories");
        Err(MountError::file(&self.directory)(full))
    }
}

/// The runtime directory of this user: `named` (from `XDG_RUNTIME_DIR`), or the user's directory in
/// `of_all`. Sessions without a login (`su`, cron) do not set the variable.
fn runtime_directory(named: Option<OsString>, of_all: &Path) -> Result<PathBuf, MountError> {
    if let Some(named) = named.filter(|path| !path.is_empty()) {
        return Ok(named.into());
    }
    let user = rustix::process::geteuid().as_raw();
    let own = of_all.join(user.to_string());
    match fs::symlink_metadata(&own) {
        Ok(found) if found.is_dir() && found.uid() == user => Ok(own),
        _ => Err(MountError::NoRuntimeDirectory(own)),
    }
}

fn write_record(path: &Path, directory: &Path) -> io::Result<File> {
    let mut record = private::file_options().write(true).create_new(true).open(path)?;
    record.lock()?;
    writeln!(record, "{}", process::id())?;
    record.write_all(directory.as_os_str().as_bytes())?;
    Ok(record)
}

/// Returns the canonical path of `directory`. Works even if a dead file system, which answers no
/// request, is mounted there.
fn canonical_even_if_dead(directory: &Path) -> PathBuf {
    directory.canonicalize().unwrap_or_else(|_| {
        let parent = directory.parent().and_then(|parent| parent.canonicalize().ok());
        let path = parent.zip(directory.file_name()).map(|(parent, name)| parent.join(name));
        path.unwrap_or_else(|| directory.to_path_buf())
    })
}

impl Registration {
    /// The served directory, as a canonical path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Records that the disk has failed, with the exit code of this process and the reason. Other
    /// processes that wait for this one read the record.
    pub fn has_failed(&mut self, exit_code: u8, why: &str) {
        // If this fails, the waiting process assumes a crash.
        let _ = self.record.write_all(&[&[0, exit_code], why.as_bytes()].concat());
    }

    /// The directory in which this process mounts the disk for its own use.
    pub(super) fn private_directory(&self) -> PathBuf {
        private_directory(&self.place)
    }
}

fn private_directory(place: &Path) -> PathBuf {
    place.join("raw")
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The next process takes down a record that remains.
        let _ = remove(&self.place);
    }
}

/// Removes a record, unless a file system is still mounted next to it.
fn remove(place: &Path) -> io::Result<()> {
    let private = private_directory(place);
    match fs::remove_dir(&private) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_file(place.join("record"))?;
    fs::remove_dir(place)
}

impl Served {
    fn read(place: PathBuf) -> Option<Self> {
        let record = File::open(place.join("record")).ok()?;
        let is_alive = match record.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => return None,
        };
        let mut text = vec![];
        (&record).take(RECORD_BYTES_MAX).read_to_end(&mut text).ok()?;
        let line = text.iter().position(|byte| *byte == b'\n')?;
        let mut directory = text.split_off(line + 1);
        directory.truncate(directory.iter().position(|byte| *byte == 0).unwrap_or(directory.len()));
        let pid = std::str::from_utf8(&text[..line]).ok()?.parse().ok()?;
        let directory = OsString::from_vec(directory).into();
        Some(Self { directory, pid, is_alive, place, record })
    }

    /// The served directory, as a canonical path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number (PID) of the process that serves the directory.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process was running when the record was read.
    pub fn is_alive(&self) -> bool {
        self.is_alive
    }

    /// The path of the file that shows the disk, in the directory for the process's own use.
    pub(super) fn disk(&self) -> PathBuf {
        private_directory(&self.place).join(DISK_NAME)
    }

    /// Whether the process has released its record, or was already dead.
    pub(super) fn is_released(&self) -> Result<bool, MountError> {
        if !self.is_alive {
            return Ok(true);
        }
        match self.record.try_lock_shared() {
            // Release it again: this process only tests the lock.
            Ok(()) => self.record.unlock().map(|()| true).map_err(MountError::file(&self.place)),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(MountError::file(&self.place)(error)),
        }
    }

    /// Waits until the process has ended. If it has died, removes its mounts.
    pub(super) fn wait_until_released(self) -> Result<Unmounted, MountError> {
        if self.is_alive {
            self.record.lock_shared().map_err(MountError::file(&self.place))?;
            let record = self.record.metadata().map_err(MountError::file(&self.place))?;
            if record.nlink() == 0 {
                return Ok(self.failure()?.unwrap_or(Unmounted::Closed));
            }
            // The process died before it could remove its record.
        }
        Ok(if self.take_down()? { Unmounted::Abandoned } else { Unmounted::NothingLeft })
    }

    /// The failure that the process recorded, as [`Unmounted::Failed`].
    fn failure(&self) -> Result<Option<Unmounted>, MountError> {
        let mut text = vec![];
        let mut record = &self.record;
        record
            .seek(SeekFrom::Start(0))
            .and_then(|_| record.take(2 * RECORD_BYTES_MAX).read_to_end(&mut text))
            .map_err(MountError::file(&self.place))?;
        let failure = text.iter().position(|byte| *byte == 0).map(|zero| &text[zero + 1..]);
        Ok(failure.map(|failure| {
            let (exit_code, why) = failure.split_first().unwrap_or((&1, &[]));
            Unmounted::Failed {
                exit_code: *exit_code,
                why: String::from_utf8_lossy(why).into_owned(),
            }
        }))
    }

    /// Removes the mounts and devices that a dead process left. Returns whether any file system was
    /// still mounted.
    fn take_down(self) -> Result<bool, MountError> {
        let mut was_mounted = unmount_ours(&self.directory, &self.disk(), true)?;
        loop_device::detach_all(&self.disk());
        let private = private_directory(&self.place);
        if mountinfo::top_at(&private)?.is_some_and(|top| top.source == SOURCE) {
            unmount_fuse(&private, true)?;
            was_mounted = true;
        }
        match remove(&self.place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(MountError::file(&self.place)(error))
            }
            _ => Ok(was_mounted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_directory_is_from_the_environment_or_the_default() {
        let all = tempfile::tempdir().unwrap();
        let own = all.path().join(rustix::process::geteuid().as_raw().to_string());
        let named = |name: &str| runtime_directory(Some(name.into()), all.path());
        assert_eq!(named("/named").unwrap(), Path::new("/named"));
        for unset in [None, Some(OsString::new())] {
            let error = runtime_directory(unset.clone(), all.path()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains("XDG_RUNTIME_DIR") && message.contains(own.to_str().unwrap()));
            // A symbolic link could lead to a directory of another user.
            std::os::unix::fs::symlink("/", &own).unwrap();
            runtime_directory(unset.clone(), all.path()).unwrap_err();
            fs::remove_file(&own).unwrap();
            fs::create_dir(&own).unwrap();
            assert_eq!(runtime_directory(unset, all.path()).unwrap(), own);
            fs::remove_dir(&own).unwrap();
        }
    }
}
