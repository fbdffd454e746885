//! Errors of superblocks.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use oblivio_core::{StoreError, StoreErrorKind};

use crate::keys::{KeyError, KeyErrorKind};

/// The kind of a superblock error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SuperblockErrorKind {
    /// The store holds no volume.
    NotAVolume,
    /// The volume has a format version or a scheme that this program does not know.
    UnknownVersion,
    /// The bytes are not those that were written. If all copies were read: no copy is sound.
    Damaged,
    /// The bytes are complete, but were changed without the volume key.
    Tampered,
    /// No slot opens with this secret, or the volume key is another volume's.
    WrongKey,
    /// A slot would take more memory or time to open than this program may spend, or more memory
    /// than is available.
    TooCostly,
    /// Parameters, a label, a secret or a slot number are out of range. Nothing was done.
    InvalidRequest,
    /// All slots are taken.
    NoFreeSlot,
    /// The slot is the only one in use.
    LastSlot,
    /// The store failed, or has no room for superblocks.
    Store,
}

/// An error about superblocks. Its message holds no secret: it may be logged. A clone keeps the
/// store's error.
#[derive(Clone, Debug)]
pub struct SuperblockError {
    kind: SuperblockErrorKind,
    message: String,
    source: Option<Arc<StoreError>>,
}

impl SuperblockError {
    pub(crate) fn new(kind: SuperblockErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The kind of the error.
    pub fn kind(&self) -> SuperblockErrorKind {
        self.kind
    }

    /// The kind of the store's error, if the store failed.
    pub fn store_kind(&self) -> Option<StoreErrorKind> {
        self.source.as_deref().map(StoreError::kind)
    }
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Written by hand: the derived `source` would be the `Arc`, not the error in it.
impl StdError for SuperblockError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<KeyError> for SuperblockError {
    fn from(error: KeyError) -> Self {
        let kind = match error.kind() {
            KeyErrorKind::InvalidRequest => SuperblockErrorKind::InvalidRequest,
            KeyErrorKind::WrongKey => SuperblockErrorKind::WrongKey,
            KeyErrorKind::TooCostly => SuperblockErrorKind::TooCostly,
            KeyErrorKind::NoFreeSlot => SuperblockErrorKind::NoFreeSlot,
            KeyErrorKind::LastSlot => SuperblockErrorKind::LastSlot,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<StoreError> for SuperblockError {
    fn from(error: StoreError) -> Self {
        let message = format!("storage failed to read or write a superblock: {error}");
        Self { kind: SuperblockErrorKind::Store, message, source: Some(Arc::new(error)) }
    }
}
