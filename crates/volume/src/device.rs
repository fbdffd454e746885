//! What a disk looks like from outside: the interface that servers serve.

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
/// - Requests in flight together may be served in any order; whoever needs an order waits for an
///   answer before asking again.
/// - No order between flushes: of writes not yet flushed, any subset may survive a crash, each block
///   old or new. Once a [`DiskOp::Flush`] or a `durable` request is answered, everything answered
///   before it was submitted survives.
/// - After a failed flush, everything fails: the disk must be opened again.
pub trait BlockDevice: Send + Sync + 'static {
    /// Bytes of the disk. A multiple of [`Self::block_bytes`].
    fn bytes(&self) -> u64;

    /// The block size that costs least. Requests may start and end anywhere.
    fn block_bytes(&self) -> u32;

    /// Where whoever divides requests does best to do it.
    fn division(&self) -> Division {
        Division { bytes: self.block_bytes(), from_request: false }
    }

    /// The most bytes of one read or write. Zero and trim take any length.
    fn request_bytes_max(&self) -> u32;

    /// As many requests can be in flight without making whoever brings one wait.
    fn requests_in_flight_max(&self) -> usize {
        256
    }

    /// Takes a request, and later answers it through [`Request::done`], from any thread. Blocks while
    /// [more](Self::requests_in_flight_max) are in flight.
    fn submit(&self, request: Request);
}

/// Where requests are best divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Bytes of the longest ranges that the disk reads or writes at once. A multiple of [`BlockDevice::block_bytes`].
    pub bytes: u32,
    /// They are counted from the block on in which the request begins, and not from the beginning of the disk.
    pub from_request: bool,
}

/// A request under way.
pub struct Request {
    /// What to do.
    pub op: DiskOp,
    /// Whom to tell. For a read, `Ok` holds the bytes, for everything else it is empty.
    pub done: Completion,
}

/// Takes the answer to a request. Called exactly once; must not block.
pub type Completion = Box<dyn FnOnce(Result<WipedBytes, DiskError>) + Send>;

/// What can be asked of a disk. Offsets and lengths are in bytes. Secret: storage sees none of it.
pub enum DiskOp {
    /// Reads `bytes` bytes.
    Read {
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// Writes `data`.
    Write {
        /// The first byte.
        offset: u64,
        /// What to write. Wiped when it was written, or never is.
        data: WipedBytes,
        /// Answer only when it survives a crash (FUA).
        durable: bool,
    },
    /// Makes `bytes` bytes read as zeros.
    Zero {
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Answer only when it survives a crash (FUA).
        durable: bool,
    },
    /// Says that `bytes` bytes are not needed any more. Blocks that lie wholly inside read as zeros
    /// afterwards, the rest is left alone.
    Trim {
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Answer only when it survives a crash (FUA).
        durable: bool,
    },
    /// Answers when everything answered so far survives a crash.
    Flush,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DiskError {
    /// What a program should know.
    pub kind: DiskErrorKind,
    /// What a person should know. Holds no address and no data: it may be logged.
    pub message: String,
    /// What the volume failed with, if it did.
    volume: Option<VolumeErrorKind>,
}

/// What a program should know of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiskErrorKind {
    /// The request goes past the end of the disk, or is too long. Nothing was done.
    OutOfRange,
    /// There is no room left where the volume lives.
    NoSpace,
    /// The volume failed, and answers nothing more until it is opened again.
    Failed,
    /// The disk is being closed.
    Closed,
    /// The disk cannot be changed. Nothing was done.
    ReadOnly,
    /// What was asked for is lost. The rest of the disk is not.
    Lost,
}

impl DiskError {
    /// An error of this kind.
    pub fn new(kind: DiskErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), volume: None }
    }

    /// What kind of error of the volume is behind it, if one is: that it was tampered with, say.
    pub fn volume_kind(&self) -> Option<VolumeErrorKind> {
        self.volume
    }
}

/// What a volume failed with, as those see it who ask its disk.
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
/// What the device answers.
pub fn call(device: &dyn BlockDevice, op: DiskOp) -> Result<WipedBytes, DiskError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let done: Completion = Box::new(move |answer| {
        // Whoever waits is still there: it is this function.
        let _ = sender.send(answer);
    });
    device.submit(Request { op, done });
    let closed = |_| DiskError::new(DiskErrorKind::Closed, "the disk was closed");
    receiver.recv().map_err(closed)?
}
