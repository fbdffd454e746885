//! A disk that shows its requests to an observer.

use std::sync::Arc;

use super::{BlockDevice, DiskOp, Division, Request};

/// Calls an observer with each request when it is submitted, and passes the request on unchanged.
pub struct WatchedDisk<D: ?Sized, F> {
    disk: Arc<D>,
    tell: F,
}

impl<D: BlockDevice + ?Sized, F: Fn(&DiskOp) + Send + Sync + 'static> WatchedDisk<D, F> {
    /// Wraps `disk`. Each request is first passed to `tell`, on the submitting thread, and then to
    /// the disk. Requests are secret.
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
