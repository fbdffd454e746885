//! Adapts a server's simulated disk to the `Folder` that its program uses.

use std::io;

use oblivio_shares::host::{Folder, ShareFile};
use oblivio_testkit::crash::ServerDisk;

pub(super) struct OnDisk(pub(super) ServerDisk);

impl Folder for OnDisk {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.0.read(name)
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.keep(name, bytes)
    }

    fn open(&self, name: &str, bytes: u64, _: bool) -> io::Result<Box<dyn ShareFile>> {
        self.0.make(name, bytes as usize)?;
        Ok(Box::new(File { disk: self.0.clone(), name: name.into() }))
    }
}

struct File {
    disk: ServerDisk,
    name: String,
}

impl ShareFile for File {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(&self.name, offset as usize, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.write_at(&self.name, offset as usize, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync(&self.name)
    }
}
