//! Binds the socket to listen on: a Unix socket that only its owner can use, or a TCP socket.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::bind_lock::BindLock;
use super::{Listen, ServeError};

/// The maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A listening socket.
pub(super) enum Listener {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener, SocketAddr),
}

/// The file of a Unix socket. Removed when dropped, unless another server has replaced it.
pub(super) struct SocketFile {
    pub(super) path: PathBuf,
    identity: (u64, u64),
}

impl Listener {
    pub(super) fn bind(listen: &Listen) -> Result<Self, ServeError> {
        match listen {
            Listen::Unix(path) => bind_unix(path),
            Listen::Tcp(address) => {
                let bind = || {
                    let listener = TcpListener::bind(address)?;
                    listener.set_nonblocking(true)?;
                    let address = listener.local_addr()?;
                    Ok(Self::Tcp(listener, address))
                };
                bind().map_err(|error| ServeError::Listen(address.to_string(), error))
            }
        }
    }
}

fn bind_unix(path: &Path) -> Result<Listener, ServeError> {
    let failed = |error: io::Error| ServeError::Listen(path.display().to_string(), error);
    let address = SocketAddrUnix::new(path).map_err(|error| match error {
        Errno::NAMETOOLONG => ServeError::PathTooLong(path.into()),
        error => failed(error.into()),
    })?;
    // Without the lock, two servers that start at once could both consider the file stale.
    let _lock = BindLock::take(path)?;
    remove_stale(path)?;
    let listener = listen_for_the_owner_only(&address, path).map_err(failed)?;
    let identity = identity(path).map_err(failed)?;
    Ok(Listener::Unix(listener, SocketFile { path: path.to_owned(), identity }))
}

/// Listens on a socket that only its owner can use. The socket gets its mode before it is bound: no
/// other user can connect in between, and no path is followed to set the mode.
fn listen_for_the_owner_only(address: &SocketAddrUnix, path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, address)?;
    if let Err(error) = rustix::net::listen(&socket, BACKLOG) {
        // Best effort: the caller needs the first error.
        let _ = fs::remove_file(path);
        return Err(error.into());
    }
    Ok(UnixListener::from(socket))
}

fn remove_stale(path: &Path) -> Result<(), ServeError> {
    let failed = |error| ServeError::Listen(path.display().to_string(), error);
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(ServeError::NotASocket(path.into())),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                tracing::info!(path = %path.display(), "replacing a dead server's socket");
                fs::remove_file(path).map_err(failed)
            }
            Ok(_) => Err(ServeError::InUse(path.into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(ServeError::InUse(path.into()))
            }
            Err(error) => Err(failed(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket file");
        }
    }
}

/// The device and inode of a file, which distinguish it from a later file of the same name.
pub(super) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}
