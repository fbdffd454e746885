//! The client's own directory: where its state is kept, apart from the untrusted storage.

mod fs;

pub use fs::FsStateDir;

use std::io::{self, Read, Seek};

/// A directory of append-only files. Names are short and plain: letters, digits, `-` and `.`.
///
/// # Contract
/// - What [`StateFile::sync`] or [`StateDir::sync`] acknowledged survives a crash. Of other appends, any part may.
/// - Which names exist, and what they name, survives after [`StateDir::sync_names`].
/// - [`StateDir::rename`] is atomic: after a crash, either name holds the whole file.
/// - A failed sync is final: what was not durable before it may never become so.
pub trait StateDir: Send {
    /// All files, in any order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn names(&self) -> io::Result<Vec<String>>;

    /// What a file holds, to be read piece by piece.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>>;

    /// Everything that a file holds.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes durable what a file holds, whoever appended it.
    ///
    /// # Errors
    /// When there is no such file, or that cannot be promised any more.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// A new, empty file to append to.
    ///
    /// # Errors
    /// When there is one of that name, or it cannot be made.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>>;

    /// Gives a file another name, and replaces what had that name.
    ///
    /// # Errors
    /// When there is no such file, or the directory cannot be changed.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// When there is no such file, or the directory cannot be changed.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes earlier creations, renamings and removals durable.
    ///
    /// # Errors
    /// When that cannot be promised any more.
    fn sync_names(&mut self) -> io::Result<()>;
}

/// A file of a [`StateDir`], open to read.
pub trait StateSource: Read + Seek {}

impl<T: Read + Seek> StateSource for T {}

/// A file of a [`StateDir`], open to append.
pub trait StateFile: Send {
    /// Adds `bytes` at the end.
    ///
    /// # Errors
    /// When not all of them could be added. What is at the end then is unknown.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all earlier appends durable.
    ///
    /// # Errors
    /// When that cannot be promised any more.
    fn sync(&mut self) -> io::Result<()>;
}
