//! What workers are told, and what they answer.

use std::sync::mpsc::{Receiver, SyncSender};

use super::REQUEST_BYTES_MAX;
use crate::device::{DiskError, DiskErrorKind, DiskOp, Request};
use crate::error::{VolumeError, VolumeErrorKind};

/// As many requests are served together.
pub(super) const BATCH_REQUESTS_MAX: usize = 256;

/// With so many bytes read or written, no more requests are added to those that are served together.
pub(super) const BATCH_BYTES_MAX: u64 = REQUEST_BYTES_MAX;

/// What a worker is told.
pub(super) enum Message {
    Serve(Request),
    /// To a disk that has a schedule and no clock: makes a tick. When it is over, the sender is
    /// dropped.
    Tick(SyncSender<()>),
    Close,
}

/// Whether a request fits a disk of `disk_bytes` bytes.
pub(crate) fn check(op: &DiskOp, disk_bytes: u64) -> Result<(), DiskError> {
    let (offset, bytes, bytes_max) = match op {
        DiskOp::Read { offset, bytes } => (*offset, u64::from(*bytes), REQUEST_BYTES_MAX),
        DiskOp::Write { offset, data, .. } => (*offset, data.len() as u64, REQUEST_BYTES_MAX),
        DiskOp::Zero { offset, bytes, .. } | DiskOp::Trim { offset, bytes, .. } => {
            (*offset, *bytes, u64::MAX)
        }
        DiskOp::Flush => return Ok(()),
    };
    let out_of_range = |message| Err(DiskError::new(DiskErrorKind::OutOfRange, message));
    match offset.checked_add(bytes) {
        _ if bytes > bytes_max => out_of_range("the request is too long"),
        Some(end) if end <= disk_bytes => Ok(()),
        _ => out_of_range("the request goes past the end of the disk"),
    }
}

/// Bytes that a request brings or takes away.
pub(super) fn bytes_carried(op: &DiskOp) -> u64 {
    match op {
        DiskOp::Read { bytes, .. } => u64::from(*bytes),
        DiskOp::Write { data, .. } => data.len() as u64,
        DiskOp::Zero { .. } | DiskOp::Trim { .. } | DiskOp::Flush => 0,
    }
}

/// Whether a request is answered only once it survives a crash.
pub(super) fn is_durable(op: &DiskOp) -> bool {
    match op {
        DiskOp::Read { .. } => false,
        DiskOp::Write { durable, .. }
        | DiskOp::Zero { durable, .. }
        | DiskOp::Trim { durable, .. } => *durable,
        DiskOp::Flush => true,
    }
}

/// The volume has failed: answers whoever still asks, until everybody has gone.
pub(super) fn refuse_all(queue: &Receiver<Message>, error: VolumeError) -> VolumeError {
    loop {
        match queue.recv() {
            Ok(Message::Serve(request)) => (request.done)(Err(disk_error(&error))),
            Ok(Message::Tick(_)) => (),
            Ok(Message::Close) | Err(_) => return error,
        }
    }
}

pub(super) fn disk_error(error: &VolumeError) -> DiskError {
    let kind = match error.kind() {
        VolumeErrorKind::NoSpace => DiskErrorKind::NoSpace,
        VolumeErrorKind::InvalidRequest => DiskErrorKind::OutOfRange,
        _ => DiskErrorKind::Failed,
    };
    DiskError::new(kind, error.to_string())
}
