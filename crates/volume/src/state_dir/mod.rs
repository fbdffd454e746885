//! The client's own directory: where its state is kept, apart from the untrusted storage.

mod fs;
mod fs_file;
mod retry;
mod shared;

pub use fs::FsStateDir;
pub use fs_file::{FILLER, FILLER_BYTES};
pub(crate) use shared::SharedDir;

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

    /// Makes durable what a file holds, whoever appended it. It is written again: of what a failed sync has
    /// dropped, the system may believe that it is durable.
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

    /// Says that many short appends will come, and syncs between them. The file may then hold [`FILLER`] behind its end,
    /// of which a crash leaves any part.
    fn expect_more(&mut self) {}

    /// Makes all earlier appends durable.
    ///
    /// # Errors
    /// When that cannot be promised any more.
    fn sync(&mut self) -> io::Result<()>;

    /// Begins to make all earlier appends durable, and does not wait for it: [`Self::finish_sync`] does. Appends may
    /// come in between.
    ///
    /// # Errors
    /// When that cannot be promised any more.
    fn begin_sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether [`Self::finish_sync`] would answer at once. A hint: a file that cannot tell says no.
    fn is_sync_over(&mut self) -> bool {
        false
    }

    /// Returns when everything is durable that was appended before [`Self::begin_sync`].
    ///
    /// # Errors
    /// When that cannot be promised any more.
    fn finish_sync(&mut self) -> io::Result<()> {
        self.sync()
    }
}

/// While a file is being made, this is added to its name.
const UNFINISHED: &str = ".new";

/// Bytes of a file that are written again together.
const CHUNK_BYTES: u64 = 1 << 20;

/// Begins a file that [`finish`] gives its name.
pub(crate) fn begin(dir: &mut dyn StateDir, name: &str) -> io::Result<Box<dyn StateFile>> {
    let unfinished = unfinished(name);
    // A crash may have left one.
    if dir.names()?.contains(&unfinished) {
        dir.remove(&unfinished)?;
    }
    dir.create(&unfinished)
}

/// Gives a file its name, durably, in the place of what had that name. It is whole and synced.
pub(crate) fn finish(dir: &mut dyn StateDir, name: &str) -> io::Result<()> {
    dir.rename(&unfinished(name), name)?;
    dir.sync_names()
}

/// Makes a small file, or another in its place, durably: whenever a crash comes, one of them is there, whole.
pub(crate) fn replace(dir: &mut dyn StateDir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = begin(dir, name)?;
    file.append(bytes)?;
    file.sync()?;
    finish(dir, name)
}

/// Makes a file durable under its name, whoever gave it that: another with the same contents replaces it. Of a name
/// that a failed sync has dropped, the system may believe that it is durable.
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

/// What a small file holds, if there is one: one byte more than `bytes_max` where it is longer.
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
