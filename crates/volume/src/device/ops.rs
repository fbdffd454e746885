//! Checks and properties of requests, for every kind of disk.

use super::{DiskError, DiskErrorKind, DiskOp};

/// Maximum length of a read or write, in bytes.
pub(crate) const REQUEST_BYTES_MAX: u64 = 32 << 20;

/// Checks that a request fits a disk of `disk_bytes` bytes, and that a read or write has at most
/// [`REQUEST_BYTES_MAX`] bytes.
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

/// Bytes of data that a request reads or writes.
pub(crate) fn bytes_carried(op: &DiskOp) -> u64 {
    match op {
        DiskOp::Read { bytes, .. } => u64::from(*bytes),
        DiskOp::Write { data, .. } => data.len() as u64,
        DiskOp::Zero { .. } | DiskOp::Trim { .. } | DiskOp::Flush => 0,
    }
}

/// Whether a request is answered only once it survives a crash.
pub(crate) fn is_durable(op: &DiskOp) -> bool {
    match op {
        DiskOp::Read { .. } => false,
        DiskOp::Write { durable, .. }
        | DiskOp::Zero { durable, .. }
        | DiskOp::Trim { durable, .. } => *durable,
        DiskOp::Flush => true,
    }
}
