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

    /// Size of the disk in bytes.
    fn bytes(&self) -> u64;

    /// The number (PID) of the process that serves the disk, if there is one.
    fn server(&self) -> Option<u32>;

    /// The number (PID) of the process that stores the disk remotely, if there is one.
    fn storage(&self) -> Option<u32> {
        None
    }

    /// Stops the subject in an orderly way.
    fn stop(&mut self) -> Result<(), String>;
}

/// A function that creates a disk of about `bytes` bytes and starts its server, if it has one.
pub type Start = fn(bytes: u64, testbed: &Testbed, end: &End) -> Result<Box<dyn Subject>, String>;

/// Instructions to start a subject, and the facts that matter for comparisons.
#[derive(Clone, Copy)]
pub struct Description {
    pub name: &'static str,
    pub note: &'static str,
    /// Whether the subject is filled before it is measured.
    pub is_filled: bool,
    /// Whether requests and answers pass through the FUSE device, and so count as bytes that the
    /// server reads and writes.
    pub is_fuse: bool,
    /// Whether the subject is an Oblivio volume, which has a floor (a lower bound).
    pub is_volume: bool,
    /// Programs that the subject needs.
    pub programs: &'static [&'static str],
    pub start: Start,
}

/// Returns every subject, the slowest last.
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

/// Directories and programs of the subjects.
pub struct Testbed {
    pub programs: Programs,
    disks: TempDir,
    /// Directory for sockets, whose paths must be short.
    sockets: TempDir,
}

impl Testbed {
    /// Creates the directories. Dropping the value removes them.
    pub fn new(directory: &Path, programs: Programs) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot create a directory: {error}");
        // Servers may have another working directory.
        let directory = directory.canonicalize().map_err(failed)?;
        Ok(Self {
            programs,
            disks: tempfile::Builder::new().prefix("run-").tempdir_in(directory).map_err(failed)?,
            sockets: tempfile::Builder::new().prefix("bench-volume-").tempdir().map_err(failed)?,
        })
    }

    /// Creates a directory for a disk. It is removed when the value is dropped, or with the
    /// testbed.
    pub fn folder(&self) -> Result<TempDir, String> {
        tempfile::tempdir_in(self.disks.path())
            .map_err(|error| format!("cannot create a directory: {error}"))
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.sockets.path().join(name)
    }
}

/// Creates a sparse file of zeros.
fn sparse_file(path: &Path, bytes: u64) -> Result<(), String> {
    std::fs::File::create_new(path)
        .and_then(|file| file.set_len(bytes))
        .map_err(|error| format!("cannot create {}: {error}", path.display()))
}
