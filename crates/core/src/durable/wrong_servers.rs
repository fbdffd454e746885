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

    /// Puts a server on the list, and tells the owner. `name` is what to call the server. When this
    /// returns, the entry survives a crash.
    ///
    /// # Errors
    /// Those of the place where the list is kept. The server may deal in nothing then, and neither
    /// may the others.
    fn add(&mut self, server: usize, name: &str) -> Result<(), Error>;
}
