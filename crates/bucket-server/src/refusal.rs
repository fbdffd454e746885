//! Errors that are sent to clients.
//!
//! Messages contain no path of the server, because paths do not concern clients. They contain no
//! bucket address, because it would get into logs.

use std::io;

use oblivio_core::StoreError;
use oblivio_store::{OpenError, OpenErrorKind};
use oblivio_wire::FailureKind;
use rustix::io::Errno;

/// A failure without the number of its request.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Invalid, message)
    }

    pub(super) fn no_volume() -> Self {
        Self::new(FailureKind::NoVolume, "the server has no volume of this name for this client")
    }

    pub(super) fn computes_nothing() -> Self {
        let message =
            "this server does not compute on shares; start it with `oblivio serve shares`";
        Self::new(FailureKind::Refused, message)
    }

    pub(super) fn fenced() -> Self {
        Self::new(FailureKind::Fenced, "the volume has been opened to write since")
    }

    /// Returns the error of a failed system call of the server. `act` completes "the server cannot
    /// …".
    pub(super) fn io(act: &str, cause: &io::Error) -> Self {
        tracing::warn!(%cause, act, "a system operation of the bucket server failed");
        let why = match cause.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE | Errno::NFILE) => {
                "it has too few file descriptors; raise the server's limit".to_owned()
            }
            _ => format!("{}; see the server's log", cause.kind()),
        };
        let message = format!("the server cannot {act} ({why})");
        Self::new(oblivio_core::StoreErrorKind::from(cause.kind()).into(), message)
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        use OpenErrorKind as Open;
        // The message contains the path, so it is only logged.
        tracing::warn!(%error, "cannot create or open a store");
        let (kind, message) = match error.kind() {
            Open::Exists => (FailureKind::Exists, "a volume of this name already exists"),
            Open::Missing => return Self::no_volume(),
            Open::NotAStore => (FailureKind::Damaged, "the file is not a store of buckets"),
            Open::UnknownVersion => {
                (FailureKind::Damaged, "the server does not know the format of the store")
            }
            Open::Damaged => (FailureKind::Damaged, "every copy of the store's header is damaged"),
            Open::Truncated => (
                FailureKind::Damaged,
                "a part of the store is missing; restore it from a backup, or rescue the rest",
            ),
            Open::Locked => {
                (FailureKind::InUse, "another program on the server has the store open")
            }
            Open::NoSpace => (FailureKind::Full, "the disk of the server is full"),
            Open::InvalidShapes => {
                (FailureKind::Invalid, "no store can hold trees of these shapes")
            }
            _ => (FailureKind::Failed, "the server cannot open the store; see the server's log"),
        };
        Self::new(kind, message)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "a store failed");
        Self::new(error.kind().into(), error.to_string())
    }
}
