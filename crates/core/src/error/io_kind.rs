//! Maps I/O errors of the system to kinds of store errors.

use std::io;

use super::StoreErrorKind;

impl From<io::ErrorKind> for StoreErrorKind {
    fn from(kind: io::ErrorKind) -> Self {
        use io::ErrorKind as Io;
        match kind {
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => Self::Full,
            // A directory in place of a file, or the reverse.
            Io::IsADirectory | Io::NotADirectory => Self::Damaged,
            Io::UnexpectedEof | Io::InvalidData => Self::Damaged,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => Self::Refused,
            Io::ConnectionRefused
            | Io::ConnectionReset
            | Io::ConnectionAborted
            | Io::NotConnected
            | Io::BrokenPipe
            | Io::HostUnreachable
            | Io::NetworkUnreachable
            | Io::NetworkDown
            | Io::TimedOut => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}
