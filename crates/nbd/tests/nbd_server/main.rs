//! Tests of the NBD server with third-party clients and with hostile clients.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod admission;
mod client;
mod disk;
mod foreign;
mod hostile;
mod life;
mod portions;
mod protocol;
mod speed;
mod tls;
mod tools;
mod unasked;

use std::sync::Arc;

use disk::MemoryDisk;
use oblivio_nbd::{Listen, NbdOptions, ServerHandle, serve};
use tempfile::TempDir;

/// A test server on a Unix socket in its own folder.
struct TestServer {
    disk: Arc<MemoryDisk>,
    handle: ServerHandle,
    folder: TempDir,
}

impl TestServer {
    fn start(disk: MemoryDisk, options: NbdOptions) -> Self {
        let (disk, folder) = (Arc::new(disk), tempfile::tempdir().unwrap());
        let listen = Listen::Unix(folder.path().join("nbd.sock"));
        let handle = serve(disk.clone(), listen, options).unwrap();
        Self { disk, handle, folder }
    }

    fn new() -> Self {
        Self::start(MemoryDisk::new(DISK_BYTES, 1), NbdOptions::default())
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("nbd.sock")
    }
}

const DISK_BYTES: u64 = 8 << 20;
