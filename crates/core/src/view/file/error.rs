//! Why a view file cannot be read.

use alloc::format;
use alloc::string::String;
use std::io;

/// What is wrong with a view file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViewFileErrorKind {
    /// It is not a view file.
    NotAView,
    /// It is one of a version that this reader does not know.
    UnknownVersion,
    /// It ends too early. The events before are sound.
    Truncated,
    /// A field has a value that no view can have.
    OutOfRange,
    /// There are bytes after the end.
    TrailingBytes,
    /// The medium failed.
    Io,
}

/// A view file that cannot be read, and at which byte.
#[derive(Debug, thiserror::Error)]
#[error("view file, byte {offset}: {message}")]
pub struct ViewFileError {
    offset: u64,
    kind: ViewFileErrorKind,
    message: String,
    source: Option<io::Error>,
}

impl ViewFileError {
    pub(super) fn new(offset: u64, kind: ViewFileErrorKind, message: impl Into<String>) -> Self {
        Self { offset, kind, message: message.into(), source: None }
    }

    pub(super) fn io(offset: u64, source: io::Error) -> Self {
        let message = format!("the medium failed: {source}");
        Self { offset, kind: ViewFileErrorKind::Io, message, source: Some(source) }
    }

    /// What is wrong.
    pub fn kind(&self) -> ViewFileErrorKind {
        self.kind
    }

    /// Where: the first byte, from 0, of the field that cannot be read.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}
