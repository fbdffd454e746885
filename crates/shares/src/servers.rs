//! The servers of an S³ORAM, as its client sees them.

use std::any::Any;

use oblivio_core::StoreError;
use oblivio_core::durable::AnyStore;
use oblivio_core::store::BucketStore;

use crate::message::Request;

/// What one server answers to one request, as bytes.
pub type ServerAnswer = Result<Vec<u8>, StoreError>;

/// How long a server may say that it is still working before its request counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Long enough for what a server does at once, however much it reads for that.
    Short,
    /// Long enough for an eviction, and for a request that waits for one.
    Long,
}

/// The servers of an S³ORAM, in the order of their numbers.
///
/// # Contract
/// - Only the scheme reads answers. Requests and answers hold shares and public values: a carrier
///   of the messages to one server learns what that server learns.
/// - [`ask`](Self::ask) is one round trip. Each server handles its requests in order.
/// - A request is sent as [`Request::encode_in`] has it. A lost link may deliver it twice. The
///   scheme makes sure that this changes nothing.
/// - **Trust.** None, as in any storage.
pub trait ShareServers {
    /// How many servers there are.
    fn count(&self) -> usize;

    /// Sends all requests for one of the trees at once, one place for each server, and waits for
    /// the answers. The answer to a request is in the same place. A failed server does not keep the
    /// others from answering, and can be asked again later.
    ///
    /// # Panics
    /// When there are more or fewer places than servers.
    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>>;

    /// Starts the time limit of the waits below, before an operation that is retried.
    fn begin_retries(&mut self);

    /// Waits for missing servers until all have returned or the time limit is reached.
    fn wait_for_missing(&mut self);

    /// Backs off after the `failed`-th failure in a row of a link to or between servers. Returns
    /// whether to retry: false once the time limit is reached.
    fn wait_for_links(&mut self, failed: u32) -> bool;

    /// The public key by which the other servers know this one.
    fn key(&self, server: usize) -> [u8; 32];

    /// The name of a server in messages for people: its number and its address.
    fn name(&self, server: usize) -> String;
}

/// Share servers that are also a store, for the records of a volume.
pub trait ServerStore: ShareServers + BucketStore + Send {}

impl<S: ShareServers + BucketStore + Send> ServerStore for S {}

/// Share servers of any kind. A volume takes it [as its store](store_of), and its scheme
/// [finds](share_servers) the servers in it.
pub type AnyServers = Box<dyn ServerStore>;

/// Share servers as a store of any kind.
pub fn store_of(servers: impl ServerStore + 'static) -> AnyStore {
    Box::new(Box::new(servers) as AnyServers)
}

/// The share servers in a store, or the store if it is not [`AnyServers`].
///
/// # Errors
/// The store itself.
pub fn share_servers(store: AnyStore) -> Result<AnyServers, AnyStore> {
    if (&*store as &dyn Any).is::<AnyStore>() {
        // A generic caller has boxed an `AnyStore` a second time.
        let boxed = (store as Box<dyn Any>).downcast::<AnyStore>();
        return share_servers(*boxed.expect("its type was checked"));
    }
    if !(&*store as &dyn Any).is::<AnyServers>() {
        return Err(store);
    }
    let servers = (store as Box<dyn Any>).downcast::<AnyServers>();
    Ok(*servers.expect("its type was checked"))
}
