//! A directory that several parts of a volume share.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{StateDir, StateFile, StateSource};

/// A shared handle to a directory. Clones refer to the same directory.
#[derive(Clone)]
pub(crate) struct SharedDir(Arc<Mutex<Box<dyn StateDir>>>);

impl SharedDir {
    pub(crate) fn new(dir: Box<dyn StateDir>) -> Self {
        Self(Arc::new(Mutex::new(dir)))
    }

    fn dir(&self) -> MutexGuard<'_, Box<dyn StateDir>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateDir for SharedDir {
    fn names(&self) -> io::Result<Vec<String>> {
        self.dir().names()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>> {
        self.dir().open(name)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.dir().sync(name)
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>> {
        self.dir().create(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.dir().rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.dir().remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.dir().sync_names()
    }
}
