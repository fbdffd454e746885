//! What is exported, and what a request to it comes to.

use oblivio_volume::device::{BlockDevice, DiskOp, WipedBytes};

use super::NbdOptions;
use super::wire::{Errno, RequestHead, command, command_flag, export_flag};

/// No limit lets more pass: a reply has to fit the protocol's 32 bits, head and all.
const REQUEST_BYTES_MAX: u32 = 1 << 30;

/// The least block size that a server may prefer.
const SECTOR_BYTES: u32 = 512;

/// A disk as its clients see it.
#[derive(Clone, Debug)]
pub struct Export {
    /// The name it is asked for by. It is the default export as well.
    pub name: String,
    /// For people.
    pub description: String,
    /// Bytes of the disk.
    pub bytes: u64,
    /// Bytes of the disk's blocks.
    pub block_bytes: u32,
    /// The most bytes of one read or write.
    pub request_bytes_max: u32,
    /// Nothing can be changed.
    pub read_only: bool,
}

/// What to do about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The client leaves.
    Leave,
    /// There is nothing to do; what was asked holds already.
    Nothing,
    /// Ask the disk.
    Read,
    /// Take the data, then ask the disk.
    Write {
        /// Only when it survives a crash.
        durable: bool,
    },
    /// Ask the disk.
    Zero {
        /// Only when it survives a crash.
        durable: bool,
    },
    /// Ask the disk.
    Trim {
        /// Only when it survives a crash.
        durable: bool,
    },
    /// Ask the disk.
    Flush,
}

impl Plan {
    /// Bytes of the data that the client brings or takes.
    pub(super) fn bytes_carried(self, head: &RequestHead) -> u32 {
        match self {
            Self::Read | Self::Write { .. } => head.bytes,
            Self::Leave | Self::Nothing | Self::Zero { .. } | Self::Trim { .. } | Self::Flush => 0,
        }
    }

    /// What the disk is asked, once the data of a write are there.
    pub(super) fn op(self, head: &RequestHead, data: WipedBytes) -> Option<DiskOp> {
        let (offset, bytes) = (head.offset, u64::from(head.bytes));
        match self {
            Self::Leave | Self::Nothing => None,
            Self::Read => Some(DiskOp::Read { offset, bytes: head.bytes }),
            Self::Write { durable } => Some(DiskOp::Write { offset, data, durable }),
            Self::Zero { durable } => Some(DiskOp::Zero { offset, bytes, durable }),
            Self::Trim { durable } => Some(DiskOp::Trim { offset, bytes, durable }),
            Self::Flush => Some(DiskOp::Flush),
        }
    }
}

impl Export {
    /// `device` under the name and the limits of `options`.
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

    /// Whether a client that asks for `name` means this export.
    pub fn answers_to(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    /// The block size that costs least, as the protocol has it: a power of two of at least 512. That of a
    /// disk whose blocks are none lets requests begin and end within blocks, as any may.
    pub fn preferred_block_bytes(&self) -> u32 {
        self.block_bytes.next_power_of_two().max(SECTOR_BYTES)
    }

    fn is_of_whole_blocks(&self, offset: u64, bytes: u32) -> bool {
        let block_bytes = self.block_bytes.max(1);
        offset.is_multiple_of(block_bytes.into()) && bytes.is_multiple_of(block_bytes)
    }

    /// What the export can do, for a client that has negotiated `structured` replies or not.
    pub fn flags(&self, structured: bool) -> u16 {
        use export_flag::{
            CAN_MULTI_CONN, HAS_FLAGS, READ_ONLY, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA,
            SEND_TRIM, SEND_WRITE_ZEROES,
        };
        // A flush covers what was answered on any connection: the contract of a disk says so.
        let always = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN;
        let changes = match self.read_only {
            true => READ_ONLY,
            false => SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO,
        };
        let fragments = if structured { SEND_DF } else { 0 };
        always | changes | fragments
    }

    /// What to do about a request of a client that has negotiated `structured` replies or not.
    ///
    /// # Errors
    /// What to answer when nothing is to be done about it.
    pub fn plan(&self, head: &RequestHead, structured: bool) -> Result<Plan, Errno> {
        if head.command == command::DISC {
            return Ok(Plan::Leave);
        }
        if head.flags & !allowed_flags(head.command, structured)? != 0 {
            return Err(Errno::Inval);
        }
        if self.read_only && !matches!(head.command, command::READ | command::FLUSH) {
            return Err(Errno::Perm);
        }
        let durable = head.flags & command_flag::FUA != 0;
        let plan = match head.command {
            command::FLUSH if head.offset == 0 && head.bytes == 0 => return Ok(Plan::Flush),
            command::READ => Plan::Read,
            command::WRITE => Plan::Write { durable },
            command::TRIM => Plan::Trim { durable },
            command::WRITE_ZEROES => Plan::Zero { durable },
            _ => return Err(Errno::Inval),
        };
        let transfers = matches!(plan, Plan::Read | Plan::Write { .. });
        if transfers && head.bytes > self.request_bytes_max {
            return Err(Errno::Inval);
        }
        if head.offset.checked_add(head.bytes.into()).is_none_or(|end| end > self.bytes) {
            let grows = matches!(plan, Plan::Write { .. } | Plan::Zero { .. });
            return Err(if grows { Errno::NoSpace } else { Errno::Inval });
        }
        // Whole blocks are forgotten; of others, a part is written, which is not faster than writing.
        let is_fast = command_flag::FAST_ZERO & head.flags != 0;
        if is_fast && !self.is_of_whole_blocks(head.offset, head.bytes) {
            return Err(Errno::NotSup);
        }
        Ok(if head.bytes == 0 { Plan::Nothing } else { plan })
    }
}

/// The flags that a command may bear. FUA may stand on all, and says nothing on most. That no hole
/// be left is no wish at all: every block of the disk has its place from the beginning.
fn allowed_flags(code: u16, structured: bool) -> Result<u16, Errno> {
    use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE};
    match code {
        command::READ if structured => Ok(FUA | DF),
        command::READ | command::WRITE | command::FLUSH | command::TRIM => Ok(FUA),
        command::WRITE_ZEROES => Ok(FUA | NO_HOLE | FAST_ZERO),
        _ => Err(Errno::Inval),
    }
}
