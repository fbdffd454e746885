//! Where a server keeps its shares: a folder of files, which whoever runs it brings.

use std::io;

/// A folder that is one server's alone.
pub trait Folder: Send + Sync {
    /// All that a small file holds; none if there is no such file.
    ///
    /// # Errors
    /// Those of the system.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Makes or replaces a small file. It is durable, whole, when this returns.
    ///
    /// # Errors
    /// Those of the system.
    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Opens a file of so many bytes, or makes it if it may be new, with zeros that take no room. It is there durably when this returns.
    ///
    /// # Errors
    /// Those of the system, and when there is none that has to be there, or one of another length.
    fn open(&self, name: &str, bytes: u64, may_be_new: bool) -> io::Result<Box<dyn ShareFile>>;
}

/// A file with shares. Several threads use it.
pub trait ShareFile: Send + Sync {
    /// Reads from there on, as many bytes as there is room for.
    ///
    /// # Errors
    /// Those of the system, and past the end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes from there on.
    ///
    /// # Errors
    /// Those of the system. Any part may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// So many bytes from there on will be read soon.
    fn will_need(&self, _offset: u64, _bytes: u64) {}

    /// Returns when all that was written is durable.
    ///
    /// # Errors
    /// Those of the system. What was written since the last time may be lost.
    fn sync(&self) -> io::Result<()>;
}

/// The other servers, for one that deals.
pub trait Peers: Sync {
    /// Sends what was dealt to the server of this number. It returns when the message is on its way; what comes of it is not told.
    ///
    /// There are [`TILES_AT_ONCE`](super::TILES_AT_ONCE) lanes, and in each what is dealt comes in its order. Of a lane, that server may lack the last two messages, and no
    /// more: what it dealt itself to be sent the last one says that it has all before. So whoever makes a link anew can send those again, and nothing is missing;
    /// what comes twice is thrown away.
    ///
    /// # Errors
    /// When that server cannot be reached.
    fn send(&self, to: u8, lane: usize, dealt: &[u8]) -> io::Result<()>;

    /// An eviction goes on, and the client still waits for it. This is said often, by several threads.
    fn goes_on(&self) {}

    /// Makes links to all others that it has none to. Whoever needs none has them.
    ///
    /// # Errors
    /// When one of them cannot be reached, or does not let this server in.
    fn meet(&self) -> io::Result<()> {
        Ok(())
    }

    /// This server does not come to an end with an eviction: the links to the others are ended, so that they do not wait for it.
    fn give_up(&self);
}
