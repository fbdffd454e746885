//! Storage that is several servers, each of which holds a share of the same data and computes on it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, StoreError};

/// What one of them answers.
pub type Answered = Result<Vec<u8>, StoreError>;

/// How long a server may go on saying that it works on what it was asked. One that does so for ever is not to hold whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As what is done at once takes, whatever is read for it.
    Short,
    /// As evictions take, and what has to wait for one.
    Long,
}

/// The servers of an S³ORAM (`oblivio_shares`), in the order of their numbers.
///
/// # Contract
/// - What they are asked and answer are messages that the scheme alone reads. They hold shares and what is public, and no more: whoever carries them sees
///   what one server sees.
/// - [`ask`](Self::ask) is one round trip. Each server does what it is asked in the order in which it was asked.
/// - A message may reach its server twice, when a link was lost: the scheme sees to it that this changes nothing.
/// - **Trust.** None, as of any storage.
pub trait ShareServers {
    /// How many there are.
    fn count(&self) -> usize;

    /// Asks those for which there is a message, all at once, and waits for their answers: one for each message, in its place. One server that fails does not
    /// keep the others from answering, and can be asked again later. One that says for longer than this patience lasts that it works on its answer has failed.
    ///
    /// # Panics
    /// When there are more or fewer places than servers.
    fn ask(&mut self, messages: Vec<Option<Vec<u8>>>, patience: Patience) -> Vec<Option<Answered>>;

    /// Something begins that is tried again where servers or links are missing: from now on it is waited for them, all in all, as long as it is tried to reach a server.
    fn begin_to_try(&mut self);

    /// Waits for servers that are missing, as long as it is tried to reach them.
    fn wait_for_missing(&mut self);

    /// Something has failed because a link is missing, also one between servers, so often one time after the other: waits a little. Answers whether it is worth trying
    /// again, which it is as long as it is tried to reach servers.
    fn wait_for_links(&mut self, failed: u32) -> bool;

    /// By which public key the other servers know it.
    fn key(&self, server: usize) -> [u8; 32];

    /// What to call one of them in a message for people: its number, and where it is.
    fn name(&self, server: usize) -> String;
}

/// The servers that have answered wrong, as the client keeps them beside its states. A scheme lets
/// none of them deal.
///
/// Servers are counted from 0. The owner removes a server from the list by repairing it.
pub trait WrongServers: Send {
    /// The servers on the list, in ascending order.
    fn listed(&self) -> Vec<usize>;

    /// Puts a server on the list, and tells the owner. `name` is what to call the server. When this
    /// returns, the entry survives a crash.
    ///
    /// # Errors
    /// Those of the place where the list is kept. The server may deal in nothing then, and neither
    /// may the others.
    fn add(&mut self, server: usize, name: &str) -> Result<(), Error>;
}
