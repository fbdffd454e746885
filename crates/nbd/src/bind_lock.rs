//! A lock that lets only one server at a time create the socket at a path.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use oblivio_wire::private;
use rustix::fs::OFlags;

use super::ServeError;
use super::listen::identity;

/// The number of attempts if other servers remove the lock file between open and lock.
const ATTEMPTS_MAX: u32 = 10;

/// A locked file next to the socket, removed when dropped. Only this user can open it. Other users
/// could hold a lock on a file that they can open, such as the folder.
pub(super) struct BindLock {
    path: PathBuf,
    _file: File,
}

impl BindLock {
    /// Takes the lock for the path `socket`.
    pub(super) fn take(socket: &Path) -> Result<Self, ServeError> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let failed = |error: io::Error| ServeError::Listen(socket.display().to_string(), error);
        for _ in 0..ATTEMPTS_MAX {
            let file = open(&path).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied if path.exists() => {
                    ServeError::ForeignLock(path.clone())
                }
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    ServeError::NoFolder(socket.into())
                }
                _ => failed(error),
            })?;
            let found = file.metadata().map_err(failed)?;
            if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
                return Err(ServeError::ForeignLock(path));
            }
            match file.try_lock() {
                // The previous holder may have removed the file meanwhile; then the lock is
                // worthless.
                Ok(()) if identity(&path).ok() == Some((found.dev(), found.ino())) => {
                    return Ok(Self { path, _file: file });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(ServeError::InUse(socket.into())),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(ServeError::InUse(socket.into()))
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Do not follow a symbolic link of another user, and do not block on a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = private::file_options();
    options.write(true).create(true).truncate(false).custom_flags(flags).open(path)
}

impl Drop for BindLock {
    fn drop(&mut self) {
        // Removed while still locked: the next server that opens the name creates a new file.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the lock file");
        }
    }
}
