//! Errors of keys and key slots.

/// The kind of a key error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyErrorKind {
    /// A label, a secret, a cost or a slot number is out of range. Nothing was done.
    InvalidRequest,
    /// No slot opens with this secret. The error does not name a slot.
    WrongKey,
    /// Opening would take more memory or time than this program may spend, or more memory than is
    /// available.
    TooCostly,
    /// All slots are taken: remove one first.
    NoFreeSlot,
    /// The slot is the only one in use: add another first.
    LastSlot,
}

/// An error about keys. Its message holds no secret: it may be logged.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    kind: KeyErrorKind,
    message: String,
}

impl KeyError {
    pub(crate) fn new(kind: KeyErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(KeyErrorKind::InvalidRequest, message)
    }

    /// The kind of the error.
    pub fn kind(&self) -> KeyErrorKind {
        self.kind
    }
}
