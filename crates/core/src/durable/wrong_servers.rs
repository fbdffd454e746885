//! The list of servers that gave wrong answers.

use alloc::vec::Vec;

use crate::error::Error;

/// The list of servers that gave wrong answers. The client keeps it next to its saved states. A
/// scheme never lets a listed server deal shares.
///
/// Servers are counted from 0. The owner removes a server from the list by repairing it.
pub trait WrongServers: Send {
    /// The servers on the list, in ascending order.
    fn listed(&self) -> Vec<usize>;

    /// Puts a server on the list, and reports it to the owner under the name `name`. When this
    /// returns, the entry survives a crash.
    ///
    /// # Errors
    /// Any error of writing the list. After an error, the scheme must let neither this server nor
    /// any other deal.
    fn add(&mut self, server: usize, name: &str) -> Result<(), Error>;
}
