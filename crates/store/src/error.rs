//! Errors of creating and opening storage.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use oblivio_core::StoreErrorKind;

/// The kind of an error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenErrorKind {
    /// Something already exists at the location. Nothing was changed.
    Exists,
    /// There is no storage at the location.
    Missing,
    /// The location holds other data than a store.
    NotAStore,
    /// This program does not know the store's format version.
    UnknownVersion,
    /// Every copy of the header is damaged.
    Damaged,
    /// A part of the storage is missing.
    Truncated,
    /// Another process or client has the storage open.
    Locked,
    /// The disk or the server has too little space for the storage.
    NoSpace,
    /// The store cannot hold trees of these shapes. Nothing was created.
    InvalidShapes,
    /// The named stores are not exactly the members of one stripe in their order, or a single
    /// member of a stripe was named.
    WrongMembers,
    /// The service breaks a rule that the store relies on, such as creating an object only once.
    /// Nothing was created.
    Unsuitable,
    /// The storage does not support direct I/O.
    DirectRefused,
    /// The storage may lose writes that it acknowledged, or does not show whether it may.
    NotDurable,
    /// The client's key for a server is missing or unusable.
    NoCredential,
    /// The server has another key than expected, or refuses this client.
    NotAdmitted,
    /// The server cannot be reached, or does not answer.
    Unreachable,
    /// The system reported an I/O error.
    Io,
}

/// Maps an error of an open store to an error of creating or opening one.
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

/// Why storage cannot be created or opened. Programs can rely on the kind; the message is for
/// humans and may change.
#[derive(Debug)]
pub struct OpenError {
    kind: OpenErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl OpenError {
    /// Creates an error of this kind.
    pub fn new(kind: OpenErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Creates an error of this kind with a cause.
    pub fn caused_by(
        kind: OpenErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// Creates the error of a failed system operation. `act` names the operation, as the end of the
    /// sentence "cannot …".
    pub fn io(act: &str, cause: io::Error) -> Self {
        use io::ErrorKind::{
            AlreadyExists, FileTooLarge, IsADirectory, NotFound, QuotaExceeded, ReadOnlyFilesystem,
            StorageFull,
        };
        let (kind, advice) = match cause.kind() {
            AlreadyExists => (OpenErrorKind::Exists, "; choose another name, or remove it"),
            NotFound => (OpenErrorKind::Missing, "; check the path"),
            IsADirectory => (OpenErrorKind::NotAStore, "; check the path"),
            StorageFull | QuotaExceeded => (OpenErrorKind::NoSpace, "; make room"),
            FileTooLarge => {
                (OpenErrorKind::NoSpace, "; allow longer files, or use another file system")
            }
            ReadOnlyFilesystem => (OpenErrorKind::Io, "; mount its file system read-write"),
            _ => (OpenErrorKind::Io, ""),
        };
        Self::caused_by(kind, format!("cannot {act} ({cause}){advice}"), cause)
    }

    /// Puts the name of the store in front of the message.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { message: format!("{name}: {}", self.message), ..self }
    }

    /// Replaces the message of the error.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Appends advice to the message of the error.
    #[must_use]
    pub fn with(self, advice: &str) -> Self {
        Self { message: self.message + advice, ..self }
    }

    /// Whether the error says that a file was read and has wrong contents.
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

    /// The kind of the error.
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
