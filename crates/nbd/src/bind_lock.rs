//! One server at a time makes the socket of a path.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use oblivio_wire::private;
use rustix::fs::OFlags;

use super::ServeError;
use super::listen::identity;

/// How often another server may remove the file just when this one has opened it.
const ATTEMPTS_MAX: u32 = 10;

/// A locked file beside the socket, removed when dropped. It is this user's, who alone may open it: what
/// others can open, such as the folder, they can keep locked.
pub(super) struct BindLock {
    path: PathBuf,
    _file: File,
}

impl BindLock {
    /// Takes the lock for the socket `socket`.
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
                // Who held it may have removed it meanwhile: then it is nobody's lock any more.
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
    // Nobody else's link is followed, and no pipe waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = private::file_options();
    options.write(true).create(true).truncate(false).custom_flags(flags).open(path)
}

impl Drop for BindLock {
    fn drop(&mut self) {
        // Removed while it is locked: whoever opens the name next makes a file of their own.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the lock file stays behind");
        }
    }
}
