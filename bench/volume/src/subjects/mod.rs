//! The disks that are compared.

pub mod link;
mod nbdkit;
pub mod oblivio;
mod oramfs;
mod raw;
pub mod remote;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::fio::Target;
use crate::tools::{End, Programs};

/// A disk that can be put under load. Dropping it stops its server.
pub trait Subject {
    fn target(&self) -> Target;

    /// Bytes of the disk.
    fn bytes(&self) -> u64;

    /// The process that serves the disk, if there is one.
    fn server(&self) -> Option<u32>;

    /// The process elsewhere that stores it, if there is one.
    fn storage(&self) -> Option<u32> {
        None
    }

    /// Ends it in good order.
    fn stop(&mut self) -> Result<(), String>;
}

/// Makes a disk of about so many bytes, which its server serves from then on.
pub type Start = fn(bytes: u64, testbed: &Testbed, end: &End) -> Result<Box<dyn Subject>, String>;

/// How to start a subject, and what a reader has to know to compare it.
#[derive(Clone, Copy)]
pub struct Description {
    pub name: &'static str,
    pub note: &'static str,
    /// Whether it is written once before it is measured.
    pub is_filled: bool,
    /// Whether requests and answers go through the FUSE device, and are counted among what the server
    /// reads and writes.
    pub is_fuse: bool,
    /// Whether it is a volume of ours: it has a floor.
    pub is_volume: bool,
    /// Programs that it needs.
    pub programs: &'static [&'static str],
    pub start: Start,
}

/// Every subject, the slowest last.
pub fn all() -> Vec<Description> {
    vec![
        raw::FILE,
        nbdkit::MEMORY_PLUGIN,
        nbdkit::FILE_PLUGIN,
        nbdkit::LUKS_FILTER,
        oblivio::NBD,
        oblivio::MOUNT,
        oblivio::RANGE,
        oramfs::MOUNT,
    ]
}

/// Where subjects live, and the programs they are made of.
pub struct Testbed {
    pub programs: Programs,
    disks: TempDir,
    /// Paths of sockets must be short.
    sockets: TempDir,
}

impl Testbed {
    /// Everything in it is removed when it is dropped.
    pub fn new(directory: &Path, programs: Programs) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot make a directory: {error}");
        // Servers may run elsewhere.
        let directory = directory.canonicalize().map_err(failed)?;
        Ok(Self {
            programs,
            disks: tempfile::Builder::new().prefix("run-").tempdir_in(directory).map_err(failed)?,
            sockets: tempfile::Builder::new().prefix("bench-volume-").tempdir().map_err(failed)?,
        })
    }

    /// A new directory for a disk. Its owner removes it, and whoever does not leaves it to the testbed.
    pub fn folder(&self) -> Result<TempDir, String> {
        tempfile::tempdir_in(self.disks.path())
            .map_err(|error| format!("cannot make a directory: {error}"))
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.sockets.path().join(name)
    }
}

/// A file of zeros without any room taken.
fn sparse_file(path: &Path, bytes: u64) -> Result<(), String> {
    std::fs::File::create_new(path)
        .and_then(|file| file.set_len(bytes))
        .map_err(|error| format!("cannot make {}: {error}", path.display()))
}
