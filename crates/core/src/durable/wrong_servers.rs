//! The servers that have answered wrong.

use alloc::vec::Vec;

use crate::error::Error;

/// The servers that have answered wrong, as the client keeps them beside its states. A scheme lets
/// none of them deal.
///
/// Servers are counted from 0. The owner removes a server from the list by repairing it.
pub trait WrongServers: Send {
    /// The servers on the list, in ascending order.
    fn listed(&self) -> Vec<usize>;

    /// Puts a server on the list, and reports it to the owner under the name `name`. When this
    /// returns, the entry survives a crash.
    ///
    /// # Errors
    /// Any error of writing the list. Neither this server nor the others may deal then.
    fn add(&mut self, server: usize, name: &str) -> Result<(), Error>;
}
