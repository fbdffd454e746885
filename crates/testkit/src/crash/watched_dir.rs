//! A directory that reports each of its steps.

use std::io;
use std::sync::Arc;

use oblivio_volume::state_dir::{StateDir, StateFile, StateSource};

use super::CrashDir;

/// A step that a directory is about to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirStep {
    /// A file is created.
    Create,
    /// Bytes are appended to a file.
    Append {
        /// Number of calls. Always 1, because [`WatchedDir`] reports each call.
        records: usize,
        /// Number of appended bytes.
        bytes: usize,
    },
    /// A file is made durable.
    Sync,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
    /// The names in the directory are made durable.
    SyncNames,
}

type StepObserver = dyn Fn(DirStep) + Send + Sync;

/// A directory that calls a function before each step.
pub struct WatchedDir {
    dir: CrashDir,
    observer: Arc<StepObserver>,
}

impl WatchedDir {
    /// Creates a directory that calls `observer` before each step of `dir`.
    pub fn new(dir: CrashDir, observer: impl Fn(DirStep) + Send + Sync + 'static) -> Self {
        Self { dir, observer: Arc::new(observer) }
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
        (self.observer)(DirStep::Sync);
        self.dir.sync(name)
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        (self.observer)(DirStep::Create);
        let (file, observer) = (self.dir.create(name)?, self.observer.clone());
        Ok(Box::new(WatchedFile { file, observer }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        (self.observer)(DirStep::Rename);
        self.dir.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        (self.observer)(DirStep::Remove);
        self.dir.remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        (self.observer)(DirStep::SyncNames);
        self.dir.sync_names()
    }
}

struct WatchedFile {
    file: Box<dyn StateFile>,
    observer: Arc<StepObserver>,
}

impl StateFile for WatchedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.observer)(DirStep::Append { records: 1, bytes: bytes.len() });
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.observer)(DirStep::Sync);
        self.file.sync()
    }
}
