//! Errors and their kinds.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use oblivio_core::StoreError;
use oblivio_store::{InvalidLocation, OpenError, OpenErrorKind};
use oblivio_volume::keys::KeyError;
use oblivio_volume::{VolumeError, VolumeErrorKind};

/// The kind of a failure, for programs. Each kind has an [exit code](Self::exit_code) of the
/// program `oblivio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A disk, the system or the engine failed. An open volume fails all further requests: open it
    /// again.
    Failed,
    /// The request is impossible. Nothing was changed.
    Input,
    /// The secret opens no key slot of the volume.
    WrongKey,
    /// A server has another key than the one named, or does not admit this client.
    NotAdmitted,
    /// Storage does not hold the data that was written. An interrupted creation or copy of a volume
    /// also has this kind; the message then says what to do.
    Tampered,
    /// Storage is older than the state that the client knows.
    StoreRolledBack,
    /// Another process, or another part of this process, uses the volume.
    Locked,
    /// There is no room for the volume or the client's directory.
    NoSpace,
    /// The client's directory is missing, damaged, or of another volume.
    State,
    /// The client's directory is older than the state that storage knows.
    StateRolledBack,
    /// The volume was written by another version: a newer one, or one whose format is no longer
    /// supported.
    UnknownVersion,
    /// Storage does not answer. Open the volume again later.
    Unreachable,
}

impl ErrorKind {
    /// The exit code of the program `oblivio`.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Input => 3,
            Self::WrongKey | Self::NotAdmitted => 6,
            Self::Tampered => 7,
            Self::StoreRolledBack => 8,
            Self::Locked => 9,
            Self::NoSpace => 10,
            Self::State => 11,
            Self::StateRolledBack => 12,
            Self::UnknownVersion => 13,
            Self::Unreachable => 15,
        }
    }
}

impl From<VolumeErrorKind> for ErrorKind {
    fn from(kind: VolumeErrorKind) -> Self {
        match kind {
            VolumeErrorKind::InvalidConfig
            | VolumeErrorKind::InvalidRequest
            | VolumeErrorKind::NotAVolume => Self::Input,
            VolumeErrorKind::WrongKey => Self::WrongKey,
            VolumeErrorKind::Tampered | VolumeErrorKind::StoreDamaged => Self::Tampered,
            VolumeErrorKind::StoreRolledBack => Self::StoreRolledBack,
            VolumeErrorKind::StateRolledBack => Self::StateRolledBack,
            VolumeErrorKind::WrongState | VolumeErrorKind::StateDamaged => Self::State,
            VolumeErrorKind::Locked => Self::Locked,
            VolumeErrorKind::NoSpace => Self::NoSpace,
            VolumeErrorKind::UnknownVersion => Self::UnknownVersion,
            VolumeErrorKind::Unreachable => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}

/// Converts an error of an array. An error of storage keeps its kind, if it has one. Corruption is
/// [`Tampered`](Self::Tampered); every other fatal error is [`Failed`](Self::Failed).
impl From<&oblivio_core::Error> for ErrorKind {
    fn from(error: &oblivio_core::Error) -> Self {
        use oblivio_core::ErrorKind as Core;
        match error.kind() {
            Core::InvalidConfig | Core::InvalidRequest | Core::StoreMismatch => Self::Input,
            Core::Corrupt => Self::Tampered,
            Core::Store => {
                error.store_kind().map_or(Self::Failed, |kind| VolumeErrorKind::from(kind).into())
            }
            _ => Self::Failed,
        }
    }
}

impl From<OpenErrorKind> for ErrorKind {
    fn from(kind: OpenErrorKind) -> Self {
        match kind {
            OpenErrorKind::Exists
            | OpenErrorKind::Missing
            | OpenErrorKind::NotAStore
            | OpenErrorKind::InvalidShapes
            | OpenErrorKind::WrongMembers
            | OpenErrorKind::NoCredential
            | OpenErrorKind::Unsuitable
            | OpenErrorKind::NotDurable
            | OpenErrorKind::DirectRefused => Self::Input,
            OpenErrorKind::UnknownVersion => Self::UnknownVersion,
            OpenErrorKind::Damaged | OpenErrorKind::Truncated => Self::Tampered,
            OpenErrorKind::Locked => Self::Locked,
            OpenErrorKind::NoSpace => Self::NoSpace,
            OpenErrorKind::NotAdmitted => Self::NotAdmitted,
            OpenErrorKind::Unreachable => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}

/// A failure. Programs can rely on the kind; the message is for humans and may change. The message
/// holds no address within a volume, no data and no secret, so it may be logged.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error without an underlying error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    fn caused_by(kind: ErrorKind, source: impl StdError + Send + Sync + 'static) -> Self {
        Self { kind, message: source.to_string(), source: Some(Arc::new(source)) }
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Implemented by hand, because the derived `source` would be the `Arc` and not the error in it.
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<VolumeError> for Error {
    fn from(error: VolumeError) -> Self {
        Self::caused_by(error.kind().into(), error)
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::caused_by(error.kind().into(), error)
    }
}

impl From<oblivio_core::Error> for Error {
    fn from(error: oblivio_core::Error) -> Self {
        Self::caused_by((&error).into(), error)
    }
}

/// Converts an error of a custom store.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        oblivio_core::Error::from(error).into()
    }
}

impl From<InvalidLocation> for Error {
    fn from(error: InvalidLocation) -> Self {
        Self::caused_by(ErrorKind::Input, error)
    }
}

/// Converts the error of a machine with too little memory to stretch a passphrase.
impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::caused_by(ErrorKind::Failed, error)
    }
}
