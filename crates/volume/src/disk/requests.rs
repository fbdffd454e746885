//! What workers are told, and what they answer.

use std::sync::mpsc::{Receiver, SyncSender};

use crate::device::ops::REQUEST_BYTES_MAX;
use crate::device::{DiskError, DiskErrorKind, Request};
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
