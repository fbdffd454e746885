//! Forwards requests for the file to the device. This layer does not make requests wait for each
//! other.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};
use oblivio_volume::device::{self, BlockDevice, Completion, DiskErrorKind, DiskOp, WipedBytes};
use rustix::fs::{FallocateFlags, OFlags};

use super::attributes::{Attributes, DISK, ENTRIES, REMEMBERED};
use super::users::Users;
use super::{FuseOptions, PAGE_BYTES};

/// Maximum bytes of a request. Also the kernel's default.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Maximum number of background requests (readahead and asynchronous I/O) that the kernel keeps in
/// flight.
const BACKGROUND_REQUESTS_MAX: u16 = 64;

/// The file system that shows a device as a file.
pub(super) struct Image {
    device: Arc<dyn BlockDevice>,
    attributes: Attributes,
    users: Arc<Users>,
}

impl Image {
    pub(super) fn new(
        device: Arc<dyn BlockDevice>,
        options: &FuseOptions,
        users: Arc<Users>,
    ) -> Self {
        let attributes = Attributes {
            bytes: device.bytes(),
            block_bytes: device.block_bytes(),
            read_only: options.read_only,
        };
        Self { device, attributes, users }
    }

    /// Returns the number of bytes, of `bytes` from `offset` on, that are within the disk.
    fn clip(&self, offset: u64, bytes: u64) -> u64 {
        self.attributes.bytes.saturating_sub(offset).min(bytes)
    }

    fn submit(&self, op: DiskOp, done: Completion) {
        self.device.submit(device::Request { op, done });
    }
}

impl Filesystem for Image {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let bytes_max = self.device.request_bytes_max().min(REQUEST_BYTES_MAX);
        let bytes_max = bytes_max - bytes_max % PAGE_BYTES;
        let refused = || io::Error::other("the kernel refuses the limits of the FUSE session");
        config.set_max_write(bytes_max).map_err(|_| refused())?;
        // The kernel may lower this limit.
        let _ = config.set_max_readahead(bytes_max);
        config.set_max_background(BACKGROUND_REQUESTS_MAX).map_err(|_| refused())?;
        // Without it, `> disk` and `cp` truncate the file before they open it, which is refused.
        let _ = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        // Without it, the requests of a loop device arrive one by one: slower, but correct.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn destroy(&mut self) {
        self.users.ended();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes.named(parent, name) {
            Some(attributes) => reply.entry(&REMEMBERED, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes.of(inode) {
            Some(attributes) => reply.attr(&REMEMBERED, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Attributes never change. Setting times succeeds without effect, because many programs do it.
    /// Other changes are refused.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        bytes: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes.of(inode) else {
            return reply.error(Errno::ENOENT);
        };
        if mode.is_some() || uid.is_some() || gid.is_some() {
            reply.error(Errno::EPERM);
        } else if bytes.is_some_and(|bytes| bytes != attributes.size) {
            reply.error(Errno::EINVAL);
        } else {
            reply.attr(&REMEMBERED, &attributes);
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        seen: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = (1..).zip(ENTRIES).skip_while(|(place, _)| *place <= seen);
        for (place, (inode, kind, name)) in entries {
            if reply.add(inode, place, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device uses the block size as its discard granularity.
        let block_bytes = self.attributes.block_bytes;
        let blocks = self.attributes.bytes / u64::from(block_bytes.max(1));
        reply.statfs(blocks, 0, 0, 2, 0, block_bytes, 255, block_bytes);
    }

    /// Opens the file. Truncation has no effect, as on a block device.
    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode != DISK {
            return reply.error(Errno::EISDIR);
        }
        self.users.opened();
        let uncached = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        let flags = uncached | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
        self.users.closed();
    }

    /// Closes the file without making data durable. Programs that need durability call fsync.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let there = u32::try_from(self.clip(offset, bytes.into())).unwrap_or(bytes);
        if there == 0 {
            return reply.data(&[]);
        }
        let done: Completion = Box::new(move |answer| match answer {
            Ok(data) if data.len() == there as usize => reply.data(&data),
            Ok(_) => reply.error(Errno::EIO),
            Err(error) => reply.error(errno(error.kind)),
        });
        self.submit(DiskOp::Read { offset, bytes: there }, done);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let room = self.clip(offset, data.len() as u64);
        if room == 0 && !data.is_empty() {
            return reply.error(Errno::EFBIG);
        }
        // The casts are lossless: both are at most the length of `data`, which came in one request.
        let (data, written) = (WipedBytes::from(&data[..room as usize]), room as u32);
        let durable = flags.0.cast_unsigned() & OFlags::DSYNC.bits() != 0;
        let done: Completion = Box::new(move |answer| match answer {
            Ok(_) => reply.written(written),
            Err(error) => reply.error(errno(error.kind)),
        });
        self.submit(DiskOp::Write { offset, data, durable }, done);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.submit_all(vec![DiskOp::Flush], reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let range = offset..offset + self.clip(offset, bytes);
        if mode == FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE {
            self.punch_hole(range, reply);
        } else if mode == FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE
            || mode == FallocateFlags::ZERO_RANGE && range.end - range.start == bytes
        {
            self.submit_all(zero(range).into_iter().collect(), reply);
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }

    // The kernel handles these itself. They are defined because fuser logs undefined operations,
    // with their offsets.

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, _: i64, _: i32, reply: ReplyLseek) {
        reply.error(Errno::ENOSYS);
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }
}

impl Image {
    /// Makes a range read as zeros, and drops whole blocks. A trim ignores partly covered blocks,
    /// so those parts are zeroed.
    fn punch_hole(&self, hole: Range<u64>, reply: ReplyEmpty) {
        let block = u64::from(self.attributes.block_bytes.max(1));
        let start = hole.start.next_multiple_of(block);
        let last = hole.end / block * block;
        let ops = if start < last {
            let whole = DiskOp::Trim { offset: start, bytes: last - start, durable: false };
            [zero(hole.start..start), Some(whole), zero(last..hole.end)]
        } else {
            [zero(hole), None, None]
        };
        self.submit_all(ops.into_iter().flatten().collect(), reply);
    }

    /// Submits all of `ops` at once, and replies when the device has answered all.
    fn submit_all(&self, ops: Vec<DiskOp>, reply: ReplyEmpty) {
        if ops.is_empty() {
            return reply.ok();
        }
        let pending = Pending { left: ops.len(), failed: None, reply: Some(reply) };
        let pending = Arc::new(Mutex::new(pending));
        for op in ops {
            let pending = Arc::clone(&pending);
            let done: Completion = Box::new(move |answer| {
                let mut pending = pending.lock().expect("no thread panics while it holds this");
                pending.answered(answer.err().map(|error| error.kind));
            });
            self.submit(op, done);
        }
    }
}

/// A request of the kernel that was split into several requests to the device.
struct Pending {
    left: usize,
    failed: Option<DiskErrorKind>,
    reply: Option<ReplyEmpty>,
}

impl Pending {
    fn answered(&mut self, failed: Option<DiskErrorKind>) {
        self.left -= 1;
        self.failed = self.failed.or(failed);
        if self.left > 0 {
            return;
        }
        match (self.reply.take(), self.failed) {
            (Some(reply), None) => reply.ok(),
            (Some(reply), Some(kind)) => reply.error(errno(kind)),
            (None, _) => {}
        }
    }
}

fn zero(range: Range<u64>) -> Option<DiskOp> {
    let bytes = range.end.saturating_sub(range.start);
    (bytes > 0).then_some(DiskOp::Zero { offset: range.start, bytes, durable: false })
}

fn errno(kind: DiskErrorKind) -> Errno {
    match kind {
        DiskErrorKind::NoSpace => Errno::ENOSPC,
        DiskErrorKind::OutOfRange => Errno::EINVAL,
        DiskErrorKind::ReadOnly => Errno::EROFS,
        _ => Errno::EIO,
    }
}
