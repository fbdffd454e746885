//! The client's directory: holds the client's state, apart from the untrusted storage.

mod fs;
mod fs_file;
mod retry;
mod shared;

pub use fs::FsStateDir;
pub use fs_file::{FILLER, FILLER_BYTES};
pub(crate) use shared::SharedDir;

use std::io::{self, Read, Seek};

/// A directory of append-only files. File names consist of letters, digits, `-` and `.`.
///
/// # Contract
/// - Data that [`StateFile::sync`] or [`StateDir::sync`] has acknowledged survives a crash. Any
///   part of other appends may survive.
/// - [`StateDir::sync_names`] makes the set of names durable, and which file each name belongs to.
/// - [`StateDir::rename`] is atomic: after a crash, either name holds the whole file.
/// - A failed sync is final: data that was not durable before it may never become so.
pub trait StateDir: Send {
    /// The names of all files, in any order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read it piece by piece.
    ///
    /// # Errors
    /// When the file does not exist or cannot be read.
    fn open(&self, name: &str) -> io::Result<Box<dyn StateSource>>;

    /// Reads all of a file.
    ///
    /// # Errors
    /// When the file does not exist or cannot be read.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes the current contents of a file durable, also those of an earlier process. Writes them
    /// again: after a failed sync, the system may consider data durable that it has dropped.
    ///
    /// # Errors
    /// When the file does not exist, or durability can no longer be guaranteed.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Creates an empty file to append to.
    ///
    /// # Errors
    /// When the name exists, or the file cannot be created.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn StateFile>>;

    /// Renames a file, and replaces any file with the new name.
    ///
    /// # Errors
    /// When the file does not exist, or the directory cannot be changed.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// When the file does not exist, or the directory cannot be changed.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes earlier creations, renamings and removals durable.
    ///
    /// # Errors
    /// When durability can no longer be guaranteed.
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
    /// When not all bytes could be appended. The end of the file is then undefined.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Announces many short appends with syncs in between. The file may then hold [`FILLER`] past
    /// its logical end, and any part of the filler may survive a crash.
    fn expect_more(&mut self) {}

    /// Makes all earlier appends durable.
    ///
    /// # Errors
    /// When durability can no longer be guaranteed.
    fn sync(&mut self) -> io::Result<()>;

    /// Begins to make all earlier appends durable, without waiting: [`Self::finish_sync`] waits.
    /// Appends may come in between.
    ///
    /// # Errors
    /// When durability can no longer be guaranteed.
    fn begin_sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether [`Self::finish_sync`] would return at once. A hint: `false` if unknown.
    fn is_sync_over(&mut self) -> bool {
        false
    }

    /// Returns once everything appended before [`Self::begin_sync`] is durable.
    ///
    /// # Errors
    /// When durability can no longer be guaranteed.
    fn finish_sync(&mut self) -> io::Result<()> {
        self.sync()
    }
}

/// The suffix of a file's name until the file is complete.
const UNFINISHED: &str = ".new";

/// Bytes copied at a time when a file is rewritten.
const CHUNK_BYTES: u64 = 1 << 20;

/// Begins a file under a temporary name. [`finish`] renames it.
pub(crate) fn begin(dir: &mut dyn StateDir, name: &str) -> io::Result<Box<dyn StateFile>> {
    let unfinished = unfinished(name);
    // A crash may have left a file of this name.
    if dir.names()?.contains(&unfinished) {
        dir.remove(&unfinished)?;
    }
    dir.create(&unfinished)
}

/// Gives a file its final name, durably, replacing any file of that name. The file must be complete
/// and synced.
pub(crate) fn finish(dir: &mut dyn StateDir, name: &str) -> io::Result<()> {
    dir.rename(&unfinished(name), name)?;
    dir.sync_names()
}

/// Creates or replaces a small file durably. After a crash at any time, either the old or the new
/// file is there, complete.
pub(crate) fn replace(dir: &mut dyn StateDir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = begin(dir, name)?;
    file.append(bytes)?;
    file.sync()?;
    finish(dir, name)
}

/// Makes a file durable under its name, also one of an earlier process: a copy with the same
/// contents replaces it. After a failed sync, the system may consider a name durable that it has
/// dropped.
pub(crate) fn write_again(dir: &mut dyn StateDir, name: &str) -> io::Result<()> {
    let mut source = dir.open(name)?;
    let mut file = begin(dir, name)?;
    let mut chunk = Vec::new();
    while source.by_ref().take(CHUNK_BYTES).read_to_end(&mut chunk)? > 0 {
        file.append(&chunk)?;
        chunk.clear();
    }
    file.sync()?;
    finish(dir, name)
}

/// The contents of a small file; `None` if it does not exist. If the file is longer than
/// `bytes_max`, returns its first `bytes_max + 1` bytes.
pub(crate) fn read_small(
    dir: &dyn StateDir,
    name: &str,
    bytes_max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match dir.open(name) {
        Ok(file) => file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(bytes))
}

fn unfinished(name: &str) -> String {
    format!("{name}{UNFINISHED}")
}
