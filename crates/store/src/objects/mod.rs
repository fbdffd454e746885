//! Engines of named objects: byte strings that are created once and never overwritten.
//!
//! [`PackedStore`](crate::PackedStore) keeps the buckets of a volume in such objects. An
//! engine moves bytes and knows nothing of their contents. ADR 21 of the repository explains the
//! split, and what object stores and Redis really promise.
//!
//! | module | engine |
//! |---|---|
//! | `name` | names of objects |
//! | [`memory`] | objects in memory, with faults drawn from a seed, for tests |
//! | [`folder`] | one file per object in a directory |
//! | [`request_counts`] | counters of requests |
//! | [`s3`] | Amazon S3 and compatible services, Google Cloud Storage, Azure |
//! | [`redis`] | [`RedisObjects`]: a Redis or Valkey cluster |
//! | [`resp`] | the protocol of Redis and Valkey |

pub mod folder;
pub mod memory;
mod name;
pub mod redis;
pub mod request_counts;
pub mod resp;
pub mod s3;

use std::ops::Range;

use bytes::Bytes;
use oblivio_core::StoreError;

pub use name::{ObjectName, Prefix};
pub use redis::{RedisObjects, RedisOptions};
pub use request_counts::{RequestCounts, RequestKind, RequestTotals};
pub use s3::{S3Objects, S3Options};

/// A request in flight. Its number is unique within the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The bytes of a get: fewer than requested if the object ends before.
    Bytes(Bytes),
    /// There is no object of that name.
    Absent,
    /// The object was created by this request. It is as durable as the engine makes objects before
    /// [`Objects::sync`].
    Created,
    /// An object of that name existed. It may be this client's own, from an earlier attempt whose
    /// answer was lost, and it may be cut off.
    Exists,
    /// The answer to a creation was lost: the object may exist, be cut off, be absent, or still
    /// appear later.
    Unknown,
}

/// The outcome of [`Objects::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// Every object that was reported as created is durable.
    Durable,
    /// Objects created since the last sync that returned [`Durable`](Self::Durable) may be lost.
    /// The caller must create them again under the same names.
    MayHaveLost,
}

/// An object in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the object.
    pub name: ObjectName,
    /// The length of the object in bytes.
    pub bytes: u64,
}

/// Untrusted storage of named objects that are written once.
///
/// # Contract
/// - **Callers.** One caller, from one thread. `begin_…` starts a request and does not wait for
///   its answer; requests that were started run at the same time and finish in any order.
/// - **Create only.** If two requests create one name, exactly one of them is answered
///   [`Created`](Answer::Created), across all clients. An existing object never changes.
/// - **Visibility.** After an answer `Created` or [`Exists`](Answer::Exists), every get and
///   listing of every client shows the object, unless a sync reports that it may be lost.
/// - **Retries.** The engine retries a get, a listing and a deletion while the service is
///   unreachable or overloaded, up to its time limit. It does not retry a creation whose answer
///   was lost: the caller must read what exists.
/// - **Errors.** Kinds as in [`StoreErrorKind`](oblivio_core::StoreErrorKind): `Unreachable` after
///   the time limit, `Refused` for missing permissions, `Full`, `Failed`. After an error the
///   caller does not know whether the request had an effect.
/// - **Timing.** What an engine requests depends on its calls, and on failures and delays of the
///   service, but never on the contents of objects.
pub trait Objects: Send {
    /// Requests the bytes in `range` of an object.
    fn begin_get(&mut self, name: ObjectName, range: Range<u64>) -> Ticket;

    /// Requests the creation of an object with the concatenation of `parts`, if no object of that
    /// name exists.
    fn begin_create(&mut self, name: ObjectName, parts: Vec<Bytes>) -> Ticket;

    /// Waits for the answer to a request. Each ticket is waited for or [forgotten](Self::forget)
    /// once.
    ///
    /// # Errors
    /// If the service refuses, fails, or stays unreachable.
    fn wait(&mut self, ticket: Ticket) -> Result<Answer, StoreError>;

    /// Drops the answer to a request. The request itself may still run.
    fn forget(&mut self, ticket: Ticket);

    /// Lists objects whose names start with `prefix` and come after `after`, in the order of
    /// names: one page, which is empty only if there are no more. Names that are not an
    /// [`ObjectName`] are left out.
    ///
    /// # Errors
    /// If the service refuses, fails, or stays unreachable.
    fn list(
        &mut self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError>;

    /// Deletes objects. An absent object counts as deleted.
    ///
    /// # Errors
    /// If the service refuses, fails, or stays unreachable. Some of the objects may be deleted.
    fn delete(&mut self, names: &[ObjectName]) -> Result<(), StoreError>;

    /// Returns once all objects that were reported as created are as durable as the engine can make
    /// them. The caller has waited for all creations.
    ///
    /// # Errors
    /// If the service cannot promise durability within the time limit of the engine.
    fn sync(&mut self) -> Result<Synced, StoreError>;
}
