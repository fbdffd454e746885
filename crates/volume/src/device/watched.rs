//! A disk whose requests are looked at.

use std::sync::Arc;

use super::{BlockDevice, DiskOp, Division, Request};

/// Tells of each request, in the order in which they come, and hands it to the disk below as it is.
pub struct WatchedDisk<D: ?Sized, F> {
    disk: Arc<D>,
    tell: F,
}

impl<D: BlockDevice + ?Sized, F: Fn(&DiskOp) + Send + Sync + 'static> WatchedDisk<D, F> {
    /// `tell` is called on the thread that brings a request, before the disk has it. What it is told is secret.
    pub fn new(disk: Arc<D>, tell: F) -> Self {
        Self { disk, tell }
    }
}

impl<D: BlockDevice + ?Sized, F: Fn(&DiskOp) + Send + Sync + 'static> BlockDevice
    for WatchedDisk<D, F>
{
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }

    fn division(&self) -> Division {
        self.disk.division()
    }

    fn request_bytes_max(&self) -> u32 {
        self.disk.request_bytes_max()
    }

    fn requests_in_flight_max(&self) -> usize {
        self.disk.requests_in_flight_max()
    }

    fn submit(&self, request: Request) {
        (self.tell)(&request.op);
        self.disk.submit(request);
    }
}
