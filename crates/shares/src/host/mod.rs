//! A server that keeps its shares in files.
//!
//! | module | what it holds |
//! |---|---|
//! | `folder` | the files, which whoever runs the server brings |
//! | `places` | where in them a bucket lies |
//! | `record` | how far the server is |
//! | `select` | the share of a slot that is not said |
//! | `evict` | an eviction, part by part of every block |
//! | `mailbox` | what others have dealt |

mod folder;

pub use folder::{Folder, Peers, ShareFile};

use std::io;
use std::sync::Arc;

use crate::message::Setup;
use crate::sharing::Seed;

/// One server of one tree. Whoever has it asks one thing at a time; what others deal comes beside that, through its [`Mailbox`].
pub struct Host {
    mailbox: Arc<Mailbox>,
}

/// Takes what other servers have dealt, from any thread.
pub struct Mailbox;

impl Host {
    /// Opens what the folder has. It may be empty: then a client sets the server up first. Coins are drawn from the seed, which is drawn for each opening.
    ///
    /// # Errors
    /// Those of the system, and when what is there is damaged.
    pub fn open(_folder: Box<dyn Folder>, _seed: Seed) -> io::Result<Self> {
        todo!()
    }

    /// What it is, once it was set up: it says who the others are.
    pub fn setup(&self) -> Option<&Setup> {
        todo!()
    }

    /// Bytes that the files of such a server can take.
    pub fn file_bytes(_setup: &Setup) -> u64 {
        todo!()
    }

    /// Does what a client asks, and answers. Whatever is refused has changed nothing. `check` is told what the server is to be before it is set up, and says why it must
    /// not be.
    pub fn answer(
        &mut self,
        _message: &[u8],
        _peers: &dyn Peers,
        _check: &dyn Fn(&Setup) -> Result<(), String>,
    ) -> Vec<u8> {
        todo!()
    }

    /// For what comes from other servers.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        self.mailbox.clone()
    }
}

impl Mailbox {
    /// Takes what the server of this number has sent. Whether it still matters is found out here.
    ///
    /// # Errors
    /// When it is nothing that this server deals, or too much at once: its link is to be ended.
    pub fn take(&self, _from: u8, _message: &[u8]) -> Result<(), Unwanted> {
        todo!()
    }

    /// The link to that server has ended: nobody waits for it any more.
    pub fn is_lost(&self, _from: u8) {
        todo!()
    }
}

/// A message that no server sends that keeps to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwanted;
