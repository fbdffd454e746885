//! A directory of which each step is told.

use std::io;
use std::sync::Arc;

use oblivio_testkit::crash::CrashDir;
use oblivio_volume::state_dir::{StateDir, StateFile, StateSource};

/// What is about to be done in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Append { records: usize, bytes: usize },
    Sync,
    Rename,
    Remove,
    SyncNames,
}

type Told = dyn Fn(Step) + Send + Sync;

/// Tells of each step before it is done.
pub(crate) struct WatchedDir {
    dir: CrashDir,
    told: Arc<Told>,
}

impl WatchedDir {
    pub(crate) fn new(dir: CrashDir, told: impl Fn(Step) + Send + Sync + 'static) -> Self {
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
        (self.told)(Step::Sync);
        self.dir.sync(name)
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        (self.told)(Step::Create);
        let (file, told) = (self.dir.create(name)?, self.told.clone());
        Ok(Box::new(WatchedFile { file, told }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        (self.told)(Step::Rename);
        self.dir.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        (self.told)(Step::Remove);
        self.dir.remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        (self.told)(Step::SyncNames);
        self.dir.sync_names()
    }
}

struct WatchedFile {
    file: Box<dyn StateFile>,
    told: Arc<Told>,
}

impl StateFile for WatchedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (self.told)(Step::Append { records: 1, bytes: bytes.len() });
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        (self.told)(Step::Sync);
        self.file.sync()
    }
}
