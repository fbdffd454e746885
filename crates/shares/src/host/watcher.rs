//! Watching what passes a server.

use std::io;

use super::Peers;

/// Is told of all that passes a server, by several threads. It sees what the server sees, and changes nothing.
pub trait Watcher: Send + Sync {
    /// The client asks for something, which is done now.
    fn asked(&self, message: &[u8]);

    /// It was answered.
    fn answered(&self, message: &[u8], answer: &[u8]);

    /// Something was dealt to the server of this number, and is on its way.
    fn sent(&self, to: u8, dealt: &[u8]);

    /// Something that the server of this number has dealt has come, and is taken. What is thrown away as it comes (too long, once more, of an attempt that was given
    /// up) is not told: another server could say as much of it as it likes.
    fn received(&self, from: u8, dealt: &[u8]);
}

/// The other servers, with what is sent to them seen.
pub(super) struct Watched<'p> {
    pub(super) peers: &'p dyn Peers,
    pub(super) watcher: &'p dyn Watcher,
}

impl Peers for Watched<'_> {
    fn send(&self, to: u8, lane: usize, dealt: &[u8]) -> io::Result<()> {
        self.peers.send(to, lane, dealt)?;
        self.watcher.sent(to, dealt);
        Ok(())
    }

    fn goes_on(&self) {
        self.peers.goes_on();
    }

    fn meet(&self) -> io::Result<()> {
        self.peers.meet()
    }

    fn give_up(&self) {
        self.peers.give_up();
    }
}
