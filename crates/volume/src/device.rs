//! The interface between a disk and the servers that export it.

pub(crate) mod ops;
pub(crate) mod span;
mod watched;

use std::sync::mpsc;

pub use oblivio_core::wiped::WipedBytes;
pub use watched::WatchedDisk;

use crate::error::{VolumeError, VolumeErrorKind};

/// A disk that takes requests from many threads at once.
///
/// # Contract
/// - Requests in flight together may be served in any order. A caller that needs an order waits for
///   an answer before its next request.
/// - Writes between two flushes have no order: any subset of the writes not yet flushed may survive
///   a crash, each block old or new. Once a [`DiskOp::Flush`] or a `durable` request is answered,
///   everything answered before it was submitted survives.
/// - After a failed flush, everything fails: the disk must be opened again.
pub trait BlockDevice: Send + Sync + 'static {
    /// Bytes of the disk. A multiple of [`Self::block_bytes`].
    fn bytes(&self) -> u64;

    /// The preferred block size. Requests may start and end at any byte, but whole blocks cost
    /// least.
    fn block_bytes(&self) -> u32;

    /// The points at which a caller should split long requests.
    fn division(&self) -> Division {
        Division { bytes: self.block_bytes(), from_request: false }
    }

    /// Maximum number of bytes of one read or write. Zero and trim take any length.
    fn request_bytes_max(&self) -> u32;

    /// Maximum number of requests in flight before [`Self::submit`] blocks.
    fn requests_in_flight_max(&self) -> usize {
        256
    }

    /// Takes a request, and later answers it through [`Request::done`], from any thread. Blocks
    /// while [too many](Self::requests_in_flight_max) are in flight.
    fn submit(&self, request: Request);
}

/// The points at which requests are best split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Bytes of the longest range that the disk accesses at once. A multiple of
    /// [`BlockDevice::block_bytes`].
    pub bytes: u32,
    /// Whether ranges are counted from the first block of the request instead of the start of the
    /// disk.
    pub from_request: bool,
}

/// A request and the receiver of its answer.
pub struct Request {
    /// The requested operation.
    pub op: DiskOp,
    /// Receives the answer: the bytes of a read, or no bytes for other operations.
    pub done: Completion,
}

/// Receives the answer to a request. Called exactly once; must not block.
pub type Completion = Box<dyn FnOnce(Result<WipedBytes, DiskError>) + Send>;

/// An operation of a disk. Offsets and lengths are in bytes. Secret: storage must not learn it.
pub enum DiskOp {
    /// Reads `bytes` bytes from `offset` on.
    Read {
        /// Offset of the first byte to read.
        offset: u64,
        /// Number of bytes to read.
        bytes: u32,
    },
    /// Writes `data` at `offset`.
    Write {
        /// Offset of the first byte to write.
        offset: u64,
        /// The bytes to write. Wiped when dropped.
        data: WipedBytes,
        /// Whether to answer only once the data survives a crash (FUA).
        durable: bool,
    },
    /// Makes `bytes` bytes from `offset` on read as zeros.
    Zero {
        /// Offset of the first byte of the range.
        offset: u64,
        /// Length of the range in bytes.
        bytes: u64,
        /// Whether to answer only once the zeros survive a crash (FUA).
        durable: bool,
    },
    /// Drops `bytes` bytes that are no longer needed. Blocks that lie wholly inside read as zeros
    /// afterwards; other blocks stay as they are.
    Trim {
        /// Offset of the first byte of the range.
        offset: u64,
        /// Length of the range in bytes.
        bytes: u64,
        /// Whether to answer only once the trim survives a crash (FUA).
        durable: bool,
    },
    /// Answers once everything answered so far survives a crash.
    Flush,
}

/// An error that a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DiskError {
    /// The kind of error, for programs.
    pub kind: DiskErrorKind,
    /// The human-readable message. It holds no address and no data, and may be logged.
    pub message: String,
    /// The kind of the volume's error, if the volume failed.
    volume: Option<VolumeErrorKind>,
}

/// The kind of a [`DiskError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiskErrorKind {
    /// The request goes past the end of the disk, or is too long. Nothing was done.
    OutOfRange,
    /// Storage or the client's directory is full.
    NoSpace,
    /// The volume failed. It answers no request until it is opened again.
    Failed,
    /// The disk is closed or closing.
    Closed,
    /// The disk cannot be changed. Nothing was done.
    ReadOnly,
    /// The requested block is lost. Other blocks are not.
    Lost,
}

impl DiskError {
    /// An error of the given kind, without a volume's error.
    pub fn new(kind: DiskErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), volume: None }
    }

    /// The kind of the volume's error, if the volume failed: tampering, for example.
    pub fn volume_kind(&self) -> Option<VolumeErrorKind> {
        self.volume
    }
}

/// Converts a volume's error to the error that callers of its disk get.
impl From<&VolumeError> for DiskError {
    fn from(error: &VolumeError) -> Self {
        let kind = match error.kind() {
            VolumeErrorKind::NoSpace => DiskErrorKind::NoSpace,
            VolumeErrorKind::InvalidRequest => DiskErrorKind::OutOfRange,
            _ => DiskErrorKind::Failed,
        };
        Self { kind, message: error.to_string(), volume: Some(error.kind()) }
    }
}

/// Submits one request and waits for its answer.
///
/// # Errors
/// The error that the device answers with.
pub fn call(device: &dyn BlockDevice, op: DiskOp) -> Result<WipedBytes, DiskError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let done: Completion = Box::new(move |answer| {
        // The receiver lives until the end of this function.
        let _ = sender.send(answer);
    });
    device.submit(Request { op, done });
    let closed = |_| DiskError::new(DiskErrorKind::Closed, "the disk was closed");
    receiver.recv().map_err(closed)?
}
