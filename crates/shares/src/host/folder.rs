//! Interfaces that the program around a server implements: the folder with the server's files, and
//! the links to the other servers.

use std::io;

/// The folder that holds the files of one server.
pub trait Folder: Send + Sync {
    /// Reads a small file; `None` if it does not exist.
    ///
    /// # Errors
    /// System errors.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Creates or replaces a small file atomically. The file is durable when this returns.
    ///
    /// # Errors
    /// System errors.
    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Opens a file of `bytes` bytes. If `may_be_new`, creates it if missing, as a sparse file of
    /// zeros. The file exists durably when this returns.
    ///
    /// # Errors
    /// System errors, and errors about a missing file or one of another length.
    fn open(&self, name: &str, bytes: u64, may_be_new: bool) -> io::Result<Box<dyn ShareFile>>;
}

/// A file with shares, used by several threads.
pub trait ShareFile: Send + Sync {
    /// Fills `out` with bytes of the file, beginning at `offset`.
    ///
    /// # Errors
    /// System errors, and reads past the end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` to the file, beginning at `offset`.
    ///
    /// # Errors
    /// System errors. Any part may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Announces that a range of bytes will be read soon. The default does nothing.
    fn will_need(&self, _offset: u64, _bytes: u64) {}

    /// Makes all writes to the file durable.
    ///
    /// # Errors
    /// System errors. Writes since the last sync may be lost.
    fn sync(&self) -> io::Result<()>;
}

/// The links to the other servers.
pub trait Peers: Sync {
    /// Sends a message to server `to`. Returns without waiting for its delivery, which is not
    /// reported.
    ///
    /// There are [`TILES_AT_ONCE`](super::TILES_AT_ONCE) lanes, and the messages of a lane arrive
    /// in order. The receiver can lack at most the last two messages of a lane: before a server
    /// sends message *n*, it has received the peer's message *n* − 1. The peer sent that message
    /// only after it had received message *n* − 2. So after reconnecting it is enough to send these
    /// two again. The receiver drops duplicates.
    ///
    /// # Errors
    /// If server `to` cannot be reached.
    fn send(&self, to: u8, lane: usize, dealt: &[u8]) -> io::Result<()>;

    /// Reports that an eviction is still in progress, for the client that waits. Called often, by
    /// several threads. The default does nothing.
    fn report_progress(&self) {}

    /// Connects to all servers without a link. The default does nothing.
    ///
    /// # Errors
    /// If one of these servers cannot be reached, or refuses this server.
    fn connect(&self) -> io::Result<()> {
        Ok(())
    }

    /// Ends the links to the other servers when this server gives up an eviction. The other servers
    /// then do not wait for this server.
    fn give_up(&self);
}
