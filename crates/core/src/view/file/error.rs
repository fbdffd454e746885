//! Errors of view files.

use alloc::format;
use alloc::string::String;
use std::io;

/// A kind of defect of a view file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViewFileErrorKind {
    /// The file is not a view file.
    NotAView,
    /// The file has a version that this program does not know.
    UnknownVersion,
    /// The file ends too early. The events before the end are valid.
    Truncated,
    /// A field has an invalid value.
    OutOfRange,
    /// More bytes follow the end of the view.
    TrailingBytes,
    /// Reading from the medium failed.
    Io,
}

/// An error in a view file, and its byte offset.
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
        let message = format!("cannot read the file: {source}");
        Self { offset, kind: ViewFileErrorKind::Io, message, source: Some(source) }
    }

    /// The kind of defect.
    pub fn kind(&self) -> ViewFileErrorKind {
        self.kind
    }

    /// The offset in the file, counted from 0: of the first byte of the invalid field, or of the
    /// byte that is missing or cannot be read.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}
