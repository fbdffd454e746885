//! The exported disk, and the check of requests against it.

use oblivio_volume::device::{BlockDevice, DiskOp, WipedBytes};

use super::NbdOptions;
use super::wire::{Errno, RequestHead, command, command_flag, export_flag};

/// Upper bound for all limits in bytes: a reply with its header must fit the protocol's 32-bit
/// length.
const REQUEST_BYTES_MAX: u32 = 1 << 30;

/// The smallest block size, in bytes, that a server may announce as preferred.
const SECTOR_BYTES: u32 = 512;

/// A disk as its clients see it.
#[derive(Clone, Debug)]
pub struct Export {
    /// The name of the export. Clients that give an empty name get this export, too.
    pub name: String,
    /// A human-readable description of the export.
    pub description: String,
    /// Size of the disk in bytes.
    pub bytes: u64,
    /// Size of a block of the disk in bytes.
    pub block_bytes: u32,
    /// Maximum bytes of one read or write.
    pub request_bytes_max: u32,
    /// Whether requests that change the disk are refused.
    pub read_only: bool,
}

/// The action that a request leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAction {
    /// End the connection.
    Disconnect,
    /// Reply with success, because no work is necessary.
    Nothing,
    /// Read from the disk.
    Read,
    /// Receive the data, then write it.
    Write {
        /// Whether to reply only once the write is durable.
        durable: bool,
    },
    /// Zero a range.
    Zero {
        /// Whether to reply only once the zeros are durable.
        durable: bool,
    },
    /// Trim a range.
    Trim {
        /// Whether to reply only once the trim is durable.
        durable: bool,
    },
    /// Flush the disk.
    Flush,
}

impl RequestAction {
    /// Bytes of data that the request or its reply carries.
    pub(super) fn bytes_carried(self, head: &RequestHead) -> u32 {
        match self {
            Self::Read | Self::Write { .. } => head.bytes,
            Self::Disconnect
            | Self::Nothing
            | Self::Zero { .. }
            | Self::Trim { .. }
            | Self::Flush => 0,
        }
    }

    /// Returns the operation for the disk, or `None` if the action needs none. `data` is the
    /// payload of a write.
    pub(super) fn op(self, head: &RequestHead, data: WipedBytes) -> Option<DiskOp> {
        let (offset, bytes) = (head.offset, u64::from(head.bytes));
        match self {
            Self::Disconnect | Self::Nothing => None,
            Self::Read => Some(DiskOp::Read { offset, bytes: head.bytes }),
            Self::Write { durable } => Some(DiskOp::Write { offset, data, durable }),
            Self::Zero { durable } => Some(DiskOp::Zero { offset, bytes, durable }),
            Self::Trim { durable } => Some(DiskOp::Trim { offset, bytes, durable }),
            Self::Flush => Some(DiskOp::Flush),
        }
    }
}

impl Export {
    /// Exports `device` with the name and limits of `options`.
    pub fn new(device: &dyn BlockDevice, options: &NbdOptions) -> Self {
        Self {
            name: options.export_name.clone(),
            description: options.description.clone(),
            bytes: device.bytes(),
            block_bytes: device.block_bytes(),
            request_bytes_max: device
                .request_bytes_max()
                .min(options.limits.request_bytes_max)
                .min(REQUEST_BYTES_MAX),
            read_only: options.read_only,
        }
    }

    /// Whether `name` selects this export.
    pub fn answers_to(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    /// The preferred block size in bytes. The protocol requires a power of two of at least 512, so
    /// the disk's block size is rounded up to such a number. Clients may still send requests that
    /// begin or end within a preferred block.
    pub fn preferred_block_bytes(&self) -> u32 {
        self.block_bytes.next_power_of_two().max(SECTOR_BYTES)
    }

    fn is_of_whole_blocks(&self, offset: u64, bytes: u32) -> bool {
        let block_bytes = self.block_bytes.max(1);
        offset.is_multiple_of(block_bytes.into()) && bytes.is_multiple_of(block_bytes)
    }

    /// The transmission flags. `structured` says whether structured replies were negotiated.
    pub fn flags(&self, structured: bool) -> u16 {
        use export_flag::{
            CAN_MULTI_CONN, HAS_FLAGS, READ_ONLY, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA,
            SEND_TRIM, SEND_WRITE_ZEROES,
        };
        // A flush covers requests answered on any connection; the contract of [`BlockDevice`]
        // guarantees it.
        let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN;
        let changes = match self.read_only {
            true => READ_ONLY,
            false => SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO,
        };
        let fragments = if structured { SEND_DF } else { 0 };
        always | changes | fragments
    }

    /// Decides which action a request leads to. `structured` says whether structured replies were
    /// negotiated.
    ///
    /// # Errors
    /// The error to reply with if the request is refused.
    pub fn classify(&self, head: &RequestHead, structured: bool) -> Result<RequestAction, Errno> {
        if head.command == command::DISC {
            return Ok(RequestAction::Disconnect);
        }
        if head.flags & !allowed_flags(head.command, structured)? != 0 {
            return Err(Errno::Inval);
        }
        if self.read_only && !matches!(head.command, command::READ | command::FLUSH) {
            return Err(Errno::Perm);
        }
        let durable = head.flags & command_flag::FUA != 0;
        let action = match head.command {
            command::FLUSH if head.offset == 0 && head.bytes == 0 => {
                return Ok(RequestAction::Flush);
            }
            command::READ => RequestAction::Read,
            command::WRITE => RequestAction::Write { durable },
            command::TRIM => RequestAction::Trim { durable },
            command::WRITE_ZEROES => RequestAction::Zero { durable },
            _ => return Err(Errno::Inval),
        };
        let transfers = matches!(action, RequestAction::Read | RequestAction::Write { .. });
        if transfers && head.bytes > self.request_bytes_max {
            return Err(Errno::Inval);
        }
        if head.offset.checked_add(head.bytes.into()).is_none_or(|end| end > self.bytes) {
            let grows = matches!(action, RequestAction::Write { .. } | RequestAction::Zero { .. });
            return Err(if grows { Errno::NoSpace } else { Errno::Inval });
        }
        // Zeroing whole blocks only drops them. Parts of blocks are written, which is not faster
        // than a write.
        let is_fast = command_flag::FAST_ZERO & head.flags != 0;
        if is_fast && !self.is_of_whole_blocks(head.offset, head.bytes) {
            return Err(Errno::NotSup);
        }
        Ok(if head.bytes == 0 { RequestAction::Nothing } else { action })
    }
}

/// The flags that a command may carry. FUA is allowed on all commands, but has no effect on reads
/// and flushes. `NO_HOLE` has no effect: every block of the disk is allocated from the start.
fn allowed_flags(code: u16, structured: bool) -> Result<u16, Errno> {
    use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE};
    match code {
        command::READ if structured => Ok(FUA | DF),
        command::READ | command::WRITE | command::FLUSH | command::TRIM => Ok(FUA),
        command::WRITE_ZEROES => Ok(FUA | NO_HOLE | FAST_ZERO),
        _ => Err(Errno::Inval),
    }
}
