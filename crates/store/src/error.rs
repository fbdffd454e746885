//! Why a file cannot be made or opened.

use std::error::Error as StdError;
use std::fmt;
use std::io;

/// What a program should know of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// There is something of that name already. It was not touched.
    Exists,
    /// There is no such file.
    Missing,
    /// The file is not one of ours.
    NotAStore,
    /// The file is of a format that this program does not know.
    UnknownVersion,
    /// Every copy of the header is damaged.
    Damaged,
    /// The file is shorter than its header says.
    Truncated,
    /// Somebody else has the file open.
    Locked,
    /// There is no room for the file.
    NoSpace,
    /// No file can hold trees of these shapes. Nothing was made.
    InvalidShapes,
    /// The file system does not allow direct requests.
    DirectRefused,
    /// The system failed.
    Io,
}

/// Why a file cannot be made or opened.
#[derive(Debug)]
pub struct FileError {
    kind: FileErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl FileError {
    pub(crate) fn new(kind: FileErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn caused_by(
        kind: FileErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// The system failed to `act`.
    pub(crate) fn io(act: &str, cause: io::Error) -> Self {
        use io::ErrorKind::{AlreadyExists, IsADirectory, NotFound, QuotaExceeded, StorageFull};
        let (kind, advice) = match cause.kind() {
            AlreadyExists => (FileErrorKind::Exists, ": choose another name, or remove it"),
            NotFound => (FileErrorKind::Missing, ": check the path"),
            IsADirectory => (FileErrorKind::NotAStore, ": check the path"),
            StorageFull | QuotaExceeded => (FileErrorKind::NoSpace, ": make room"),
            _ => (FileErrorKind::Io, ""),
        };
        Self::caused_by(kind, format!("cannot {act} ({cause}){advice}"), cause)
    }

    /// What kind of error it is.
    pub fn kind(&self) -> FileErrorKind {
        self.kind
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for FileError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
