//! Counters of requests to a service, which sends bills for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kinds of requests that services bill differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A read of an object, or of a part of it.
    Get,
    /// A creation of an object.
    Put,
    /// A page of a listing.
    List,
    /// A deletion of one or many objects.
    Delete,
}

/// Counts the requests that an engine sent, including retries and hedges. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    gets: AtomicU64,
    puts: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    hedges: AtomicU64,
    retries: AtomicU64,
    bytes_down: AtomicU64,
    bytes_up: AtomicU64,
}

/// The values of [`RequestCounts`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// Reads of objects.
    pub gets: u64,
    /// Creations of objects.
    pub puts: u64,
    /// Pages of listings.
    pub lists: u64,
    /// Requests that delete objects. One may delete many.
    pub deletes: u64,
    /// Second attempts at reads whose first attempt was slow. They are among `gets`.
    pub hedges: u64,
    /// Requests that were sent again after a failure. They are among the requests of their kind.
    pub retries: u64,
    /// Bytes of objects and of other answers that arrived, without headers.
    pub bytes_down: u64,
    /// Bytes of objects and of other requests that were sent, without headers.
    pub bytes_up: u64,
}

impl RequestCounts {
    /// Counts a request that is about to be sent, with the length of its body in bytes.
    pub fn add_request(&self, kind: RequestKind, bytes: u64) {
        let counter = match kind {
            RequestKind::Get => &self.0.gets,
            RequestKind::Put => &self.0.puts,
            RequestKind::List => &self.0.lists,
            RequestKind::Delete => &self.0.deletes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.0.bytes_up.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of an answer.
    pub fn add_bytes_down(&self, bytes: u64) {
        self.0.bytes_down.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a second attempt at a slow read.
    pub fn add_hedge(&self) {
        self.0.hedges.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a repetition of a failed request.
    pub fn add_retry(&self) {
        self.0.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// The current values.
    pub fn totals(&self) -> RequestTotals {
        let Counters { gets, puts, lists, deletes, hedges, retries, bytes_down, bytes_up } =
            &*self.0;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestTotals {
            gets: value(gets),
            puts: value(puts),
            lists: value(lists),
            deletes: value(deletes),
            hedges: value(hedges),
            retries: value(retries),
            bytes_down: value(bytes_down),
            bytes_up: value(bytes_up),
        }
    }
}

impl RequestTotals {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            gets: self.gets - earlier.gets,
            puts: self.puts - earlier.puts,
            lists: self.lists - earlier.lists,
            deletes: self.deletes - earlier.deletes,
            hedges: self.hedges - earlier.hedges,
            retries: self.retries - earlier.retries,
            bytes_down: self.bytes_down - earlier.bytes_down,
            bytes_up: self.bytes_up - earlier.bytes_up,
        }
    }
}
