//! The servers of an S³ORAM, as its client sees them.

use std::any::Any;

use oblivio_core::StoreError;
use oblivio_core::durable::AnyStore;
use oblivio_core::store::BucketStore;

use crate::message::Request;

/// A server's encoded answer to one request, or the error if there is no answer.
pub type ServerAnswer = Result<Vec<u8>, StoreError>;

/// How long a server may report that it is still working on a request. After that time, the request
/// counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// The time for an ordinary request, however many bytes the server must read for it.
    Short,
    /// The time for an eviction, or for a request that must wait for an eviction to end.
    Long,
}

/// The servers of an S³ORAM, in the order of their numbers.
///
/// # Contract
/// - Only the scheme reads answers. Requests and answers hold shares and public values: the carrier
///   of one server's messages learns only what that server learns.
/// - [`ask`](Self::ask) is one round trip. Each server handles its requests in order.
/// - A request is sent as [`Request::encode_in`] encodes it. A lost link may deliver it twice. The
///   scheme ensures that a repeated request changes nothing.
/// - **Trust.** The servers are untrusted, like any storage.
pub trait ShareServers {
    /// The number of servers.
    fn count(&self) -> usize;

    /// Sends all requests for one tree at once and waits for the answers. `requests` has one entry
    /// for each server, and the result has each answer at the same index. A server whose entry is
    /// `None` gets no request and has no answer. A failed server does not delay the others, and can
    /// be asked again later.
    ///
    /// # Panics
    /// If `requests` does not have one entry for each server.
    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>>;

    /// Resets the time limit of [`wait_for_missing`](Self::wait_for_missing) and
    /// [`wait_for_links`](Self::wait_for_links), before an operation that is retried.
    fn begin_retries(&mut self);

    /// Waits until all missing servers have returned or the time limit is reached.
    fn wait_for_missing(&mut self);

    /// Backs off after the `failed`-th failure in a row of a link to or between servers. Returns
    /// whether to retry: false once the time limit is reached.
    fn wait_for_links(&mut self, failed: u32) -> bool;

    /// The public key of a server. The other servers authenticate the server with this key.
    fn key(&self, server: usize) -> [u8; 32];

    /// The name of a server in messages: its number and its address.
    fn name(&self, server: usize) -> String;
}

/// Share servers that are also a store, which holds the records of a volume.
pub trait ServerStore: ShareServers + BucketStore + Send {}

impl<S: ShareServers + BucketStore + Send> ServerStore for S {}

/// Boxed share servers of any implementation. A volume uses them [as its store](into_store), and
/// its scheme [finds](share_servers) the servers in the store.
pub type AnyServers = Box<dyn ServerStore>;

/// Boxes share servers as an [`AnyStore`]. [`share_servers`] returns them.
pub fn into_store(servers: impl ServerStore + 'static) -> AnyStore {
    Box::new(Box::new(servers) as AnyServers)
}

/// Returns the share servers in a store.
///
/// # Errors
/// The store itself, if it contains no share servers.
pub fn share_servers(store: AnyStore) -> Result<AnyServers, AnyStore> {
    if (&*store as &dyn Any).is::<AnyStore>() {
        // A generic caller has boxed an `AnyStore` a second time.
        let boxed = (store as Box<dyn Any>).downcast::<AnyStore>();
        return share_servers(*boxed.expect("the type was checked above"));
    }
    if !(&*store as &dyn Any).is::<AnyServers>() {
        return Err(store);
    }
    let servers = (store as Box<dyn Any>).downcast::<AnyServers>();
    Ok(*servers.expect("the type was checked above"))
}
