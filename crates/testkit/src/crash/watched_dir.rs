//! A directory of which each step is told.

use std::io;
use std::sync::Arc;

use oblivio_volume::state_dir::{StateDir, StateFile, StateSource};

use super::CrashDir;

/// What is about to be done in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirStep {
    /// A file is made.
    Create,
    /// Something is appended to one.
    Append {
        /// So many calls. It tells one.
        records: usize,
        /// So many bytes.
        bytes: usize,
    },
    /// A file is made durable.
    Sync,
    /// One gets another name.
    Rename,
    /// One is removed.
    Remove,
    /// Names are made durable.
    SyncNames,
}

type Told = dyn Fn(DirStep) + Send + Sync;

/// Tells of each step before it is done.
pub struct WatchedDir {
    dir: CrashDir,
    told: Arc<Told>,
}

impl WatchedDir {
    /// Watches `dir`.
    pub fn new(dir: CrashDir, told: impl Fn(DirStep) + Send + Sync + 'static) -> Self {
        Self { dir, told: Arc::new(told) }
    }
}

impl StateDir for WatchedDir {
    fn names(&self) -> io::Result<Vec<String>> {
        self.dir.names()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        self.dir.open(name)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        (self.told)(DirStep::Sync);
        self.dir.sync(name)
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        (self.told)(DirStep::Create);
        let (file, told) = (self.dir.create(name)?, self.told.clone());
        Ok(Box::new(WatchedFile { file, told }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        (self.told)(DirStep::Rename);
        self.dir.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        (self.told)(DirStep::Remove);
        self.dir.remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        (self.told)(DirStep::SyncNames);
        self.dir.sync_names()
    }
}

struct WatchedFile {
    file: Box<dyn StateFile>,
    told: Arc<Told>,
}

impl StateFile for WatchedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.told)(DirStep::Append { records: 1, bytes: bytes.len() });
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.told)(DirStep::Sync);
        self.file.sync()
    }
}
