//! Objects on a Redis or Valkey cluster.
//!
//! The client has one link to each master. The caller's thread sends commands, and one thread for
//! each link reads the replies. Several requests can be in flight at once on each link.
//!
//! # What a sync proves
//! A master acknowledges a write before its replicas have it. If the master fails, a replica takes
//! over, and the acknowledged write may be gone; the old master drops it when it returns. So an
//! object counts as durable only if [`sync`](Objects::sync) has proved three things about the
//! master that answered its creation:
//!
//! 1. **It has not lost the object since.** `INFO` names the *incarnation* of a master: `run_id`, a
//!    random number of the process, and `master_replid`, a random number of the history of its
//!    data. A process that starts draws a new `run_id`. A master that becomes a replica takes over
//!    the `master_replid` of its new master, and a replica that becomes a master draws a new one. A
//!    number that was replaced does not come back. The client reads both when it opens a link,
//!    before it sends a write on it, and again after the replicas have confirmed. If they are
//!    equal, the master was the same process and a master with the same history at all times
//!    between, so everything that it answered is in its data. This holds even if the link was lost
//!    meanwhile: another link proves the same, if it finds the same incarnation.
//! 2. **Its replicas have the object.** The client writes a mark, because `WAIT` counts from the
//!    last write of its link. Then it waits with `WAIT`, and with `WAITAOF` if the server has it,
//!    until all replicas have confirmed everything up to the mark, at least one. All means the
//!    larger of two numbers that the master reports after that: its connected replicas, and its
//!    replicas in `CLUSTER NODES`, failed ones included. A replica that has not confirmed could be
//!    elected. A replica that was promoted before the mark reached it does not confirm. Both sides
//!    use `appendfsync always`, so what is confirmed is on disk.
//! 3. **The master still owns the slot of the object.** Otherwise the object was moved to a master
//!    whose replicas were not asked. `CLUSTER NODES` of the master itself shows that, and whether a
//!    slot is being moved now.
//!
//! If 1 or 3 fails, the answer is [`MayHaveLost`](Synced::MayHaveLost), even if nothing was lost.
//! If 2 fails, or the master cannot be reached, the client tries again for
//! [`retry_for`](RedisOptions::retry_for), and then fails with `Unreachable`: the engine is
//! consistent rather than available.
//!
//! A sync covers each incarnation that answered a creation since the last sync that covered it,
//! whether the object was created or existed, and each that may have received a creation whose
//! answer was lost. It also covers each incarnation that is new to the client, because the caller
//! may build on objects that an earlier session created and did not sync. After `MayHaveLost` the
//! caller creates all objects again; those that exist are then covered by the next sync.
//!
//! A sync cannot exclude loss if all nodes that confirmed lose their disks, if a replica joins and
//! is elected in the moment after the last question, or if a slot moves away and back between two
//! syncs and a master on its way fails. `PackedStore` notices such a loss.
//!
//! # Two masters of one slot
//! A master that is cut off from the others accepts writes until it notices that, for
//! `cluster-node-timeout`. Until then, two clients can create one name on two masters, and both
//! are answered [`Created`](Answer::Created). At most one of them can sync it: the cut-off master
//! has no replica that confirms. So a caller that relies on being the only creator of a name must
//! sync before it does.
//!
//! | module | contents |
//! |---|---|
//! | `cluster` | the nodes, and the links to masters |
//! | `connection` | a pipelined link, and the thread that reads from it |
//! | `connector` | opens links: TCP or TLS, the password, checks of settings |
//! | `failure` | why a node did not do what was asked |
//! | `keys` | the keys of objects, and the commands on them |
//! | `listing` | lists objects |
//! | `node_info` | the identity of a node's data |
//! | `opening` | connects to all masters, and checks all nodes |
//! | `operations` | requests over redirections and lost links |
//! | `reply_table` | the table of commands in flight |
//! | `slots` | the slots of keys |
//! | `sync` | makes created objects durable |
//! | `topology` | the slots of each master |
//! | `unsynced` | what the next sync has to prove |

mod cluster;
mod connection;
mod connector;
mod failure;
mod keys;
mod listing;
mod node_info;
mod opening;
mod operations;
mod reply_table;
mod slots;
mod sync;
mod topology;
mod unsynced;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::{StoreError, StoreErrorKind};

use super::{Answer, Listed, ObjectName, Objects, Prefix, Synced, Ticket};
use crate::error::OpenError;
use crate::opener::{RETRY_FOR, RETRY_OPENING_FOR};
use crate::redis_location::RedisLocation;
use crate::remote::backoff::Backoff;
use cluster::Cluster;
use connector::NodeConnector;
use keys::{Keys, OBJECT_BYTES_MAX};
use operations::{Act, Operations};
use topology::Address;

/// The number of deletions in flight.
const DELETIONS_MAX: usize = 1000;

/// Options of the objects of a volume on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// Time limit for a request, a listing or a sync after its first failure: the time that a
    /// failover, a restart or a missing replica may take.
    pub retry_for: Duration,
    /// Time limit for opening, while no node can be reached or slots have no master.
    pub retry_opening_for: Duration,
    /// Time limit for a connection, and for each step of opening it.
    pub connect_within: Duration,
    /// Time limit for a reply. After it, the link counts as lost.
    pub answer_within: Duration,
    /// Whether to use nodes that may lose acknowledged writes: without cluster mode, without
    /// replicas, without `appendfsync always`, or that do not show their settings.
    pub weak_flush: bool,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            retry_for: RETRY_FOR,
            retry_opening_for: RETRY_OPENING_FOR,
            connect_within: Duration::from_secs(5),
            answer_within: Duration::from_secs(15),
            weak_flush: false,
        }
    }
}

impl RedisOptions {
    /// Sets [`retry_for`](Self::retry_for).
    #[must_use]
    pub fn with_retry_for(self, retry_for: Duration) -> Self {
        Self { retry_for, ..self }
    }

    /// Sets [`retry_opening_for`](Self::retry_opening_for).
    #[must_use]
    pub fn with_retry_opening_for(self, retry_opening_for: Duration) -> Self {
        Self { retry_opening_for, ..self }
    }

    /// Sets [`connect_within`](Self::connect_within).
    #[must_use]
    pub fn with_connect_within(self, connect_within: Duration) -> Self {
        Self { connect_within, ..self }
    }

    /// Sets [`answer_within`](Self::answer_within).
    #[must_use]
    pub fn with_answer_within(self, answer_within: Duration) -> Self {
        Self { answer_within, ..self }
    }

    /// Sets [`weak_flush`](Self::weak_flush).
    #[must_use]
    pub fn with_weak_flush(self, weak_flush: bool) -> Self {
        Self { weak_flush, ..self }
    }
}

/// The objects of one volume on a Redis or Valkey cluster.
///
/// An object is as durable as the cluster makes it only after a [`sync`](Objects::sync).
pub struct RedisObjects {
    cluster: Cluster,
    keys: Keys,
    operations: Operations,
    options: RedisOptions,
    last_ticket: u64,
}

impl RedisObjects {
    /// Connects to all masters of a cluster, and checks that its nodes keep the writes that they
    /// acknowledge.
    ///
    /// # Errors
    /// [`NoCredential`](crate::OpenErrorKind::NoCredential) if a file in the location cannot be
    /// used, [`NotAdmitted`](crate::OpenErrorKind::NotAdmitted) if a node refuses this client or
    /// has no valid certificate, [`NotDurable`](crate::OpenErrorKind::NotDurable) without
    /// [`weak_flush`](RedisOptions::weak_flush) if a node may lose acknowledged writes,
    /// [`Unreachable`](crate::OpenErrorKind::Unreachable) if a node cannot be reached or a slot has
    /// no master.
    pub fn open(location: &RedisLocation, options: RedisOptions) -> Result<Self, OpenError> {
        let keys = Keys::new(location.name());
        let mut backoff = Backoff::new(options.retry_opening_for);
        let cluster = loop {
            let RedisOptions { connect_within, answer_within, weak_flush, .. } = options;
            let connector = NodeConnector::new(location, connect_within, weak_flush)?;
            let seeds = location.nodes().iter().map(|(host, port)| Address::new(host, *port));
            let found = Cluster::find(connector, seeds.collect(), connect_within, answer_within);
            let prepared = found.and_then(|mut found| {
                opening::check(&mut found, &keys, weak_flush).map(|()| found)
            });
            let failure = match prepared {
                Ok(cluster) => break cluster,
                Err(failure) => failure,
            };
            match backoff.next_pause().filter(|_| failure.is_transient()) {
                Some(pause) => thread::sleep(pause),
                None => return Err(failure.into()),
            }
        };
        let operations = Operations::new(options.retry_for);
        Ok(Self { cluster, keys, operations, options, last_ticket: 0 })
    }

    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }
}

impl Objects for RedisObjects {
    fn begin_get(&mut self, name: ObjectName, range: Range<u64>) -> Ticket {
        let ticket = self.next_ticket();
        let request = self.keys.get(name, &range);
        self.operations.begin(&mut self.cluster, ticket, name, Act::Get(range), request);
        ticket
    }

    fn begin_create(&mut self, name: ObjectName, parts: Vec<Bytes>) -> Ticket {
        let ticket = self.next_ticket();
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if bytes > OBJECT_BYTES_MAX {
            let message = format!(
                "cannot create object {name}: it has {bytes} bytes, and Redis holds at most \
                 {OBJECT_BYTES_MAX}"
            );
            let error = StoreError::new(StoreErrorKind::Refused, message);
            self.operations.refuse(ticket, name, error);
        } else {
            let request = self.keys.create(name, &parts);
            self.operations.begin(&mut self.cluster, ticket, name, Act::Create, request);
        }
        ticket
    }

    fn wait(&mut self, ticket: Ticket) -> Result<Answer, StoreError> {
        self.operations.wait(&mut self.cluster, ticket)
    }

    fn forget(&mut self, ticket: Ticket) {
        self.operations.forget(&mut self.cluster, ticket);
    }

    /// One page has all objects.
    fn list(
        &mut self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError> {
        listing::list(&mut self.cluster, &self.keys, prefix, after, self.options.retry_for)
    }

    fn delete(&mut self, names: &[ObjectName]) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for names in names.chunks(DELETIONS_MAX) {
            let mut tickets = Vec::with_capacity(names.len());
            for name in names {
                let ticket = self.next_ticket();
                let request = self.keys.delete(*name);
                self.operations.begin(&mut self.cluster, ticket, *name, Act::Delete, request);
                tickets.push(ticket);
            }
            for ticket in tickets {
                match &outcome {
                    Ok(()) => outcome = self.wait(ticket).map(drop),
                    Err(_) => self.forget(ticket),
                }
            }
            if outcome.is_err() {
                break;
            }
        }
        outcome
    }

    fn sync(&mut self) -> Result<Synced, StoreError> {
        let RedisOptions { retry_for, weak_flush, .. } = self.options;
        sync::sync(&mut self.cluster, &self.keys, retry_for, weak_flush)
    }
}
