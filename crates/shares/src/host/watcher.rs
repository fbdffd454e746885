//! An interface to observe all messages of a server.

use std::io;

use super::Peers;

/// Receives all messages of a server, from several threads. A watcher cannot change messages.
pub trait Watcher: Send + Sync {
    /// Called before a request of the client is handled.
    fn asked(&self, message: &[u8]);

    /// Called after a request was handled, with the server's answer.
    fn answered(&self, message: &[u8], answer: &[u8]);

    /// Called after a message was sent to server `to`.
    fn sent(&self, to: u8, dealt: &[u8]);

    /// Called when a message of server `from` is stored, before the server uses the message. Not
    /// called for dropped messages (too long, duplicate, or of a given-up attempt), because another
    /// server could send any number of them.
    fn received(&self, from: u8, dealt: &[u8]);
}

/// Wraps the links to the other servers, and reports each sent message to a watcher.
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

    fn report_progress(&self) {
        self.peers.report_progress();
    }

    fn connect(&self) -> io::Result<()> {
        self.peers.connect()
    }

    fn give_up(&self) {
        self.peers.give_up();
    }
}
