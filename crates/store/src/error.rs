//! Why storage cannot be made or opened.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use oblivio_core::StoreErrorKind;

/// What a program should know of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// There is something of that name already. It was not touched.
    Exists,
    /// There is nothing there.
    Missing,
    /// What is there is not ours.
    NotAStore,
    /// It is of a format that this program does not know.
    UnknownVersion,
    /// Every copy of the header is damaged.
    Damaged,
    /// A part of it is missing.
    Truncated,
    /// Somebody else has it open.
    Locked,
    /// There is no room for it.
    NoSpace,
    /// It cannot hold trees of these shapes. Nothing was made.
    InvalidShapes,
    /// Several places were named, and what is there are not the members of one stripe, all of them and in their order; or a
    /// member was named alone.
    WrongMembers,
    /// Direct requests are not possible there.
    DirectRefused,
    /// The key by which a server would know this client is missing or unusable.
    NoCredential,
    /// The server has another key than the one that was named, or does not let this client in.
    NotLetIn,
    /// The server cannot be reached.
    Unreachable,
    /// The system failed.
    Io,
}

/// What a failure of an open store is to a command that makes or opens one.
impl From<StoreErrorKind> for OpenErrorKind {
    fn from(kind: StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::Unreachable => Self::Unreachable,
            StoreErrorKind::Fenced => Self::Locked,
            StoreErrorKind::Full => Self::NoSpace,
            StoreErrorKind::Damaged => Self::Damaged,
            StoreErrorKind::UnknownVersion => Self::UnknownVersion,
            _ => Self::Io,
        }
    }
}

/// Why storage cannot be made or opened. The kind is API, the message is not.
#[derive(Debug)]
pub struct OpenError {
    kind: OpenErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl OpenError {
    /// An error of this kind.
    pub fn new(kind: OpenErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error with a cause.
    pub fn caused_by(
        kind: OpenErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// The system failed to `act`.
    pub fn io(act: &str, cause: io::Error) -> Self {
        use io::ErrorKind::{
            AlreadyExists, FileTooLarge, IsADirectory, NotFound, QuotaExceeded, ReadOnlyFilesystem,
            StorageFull,
        };
        let (kind, advice) = match cause.kind() {
            AlreadyExists => (OpenErrorKind::Exists, ": choose another name, or remove it"),
            NotFound => (OpenErrorKind::Missing, ": check the path"),
            IsADirectory => (OpenErrorKind::NotAStore, ": check the path"),
            StorageFull | QuotaExceeded => (OpenErrorKind::NoSpace, ": make room"),
            FileTooLarge => {
                (OpenErrorKind::NoSpace, ": allow longer files, or use another file system")
            }
            ReadOnlyFilesystem => (OpenErrorKind::Io, ": mount its file system read-write"),
            _ => (OpenErrorKind::Io, ""),
        };
        Self::caused_by(kind, format!("cannot {act} ({cause}){advice}"), cause)
    }

    /// The same error, of the store with this name.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self { message: format!("{name}: {}", self.message), ..self }
    }

    /// The same error with another message.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same, and more of what to do.
    #[must_use]
    pub fn with(self, advice: &str) -> Self {
        Self { message: self.message + advice, ..self }
    }

    /// Whether a file was opened and read, and what is in it is why.
    pub(crate) fn is_about_contents(&self) -> bool {
        self.source.is_none()
            && matches!(
                self.kind,
                OpenErrorKind::NotAStore
                    | OpenErrorKind::UnknownVersion
                    | OpenErrorKind::Damaged
                    | OpenErrorKind::Truncated
            )
    }

    /// What kind of error it is.
    pub fn kind(&self) -> OpenErrorKind {
        self.kind
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for OpenError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
