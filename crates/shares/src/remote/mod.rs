//! A store over several servers, each of which holds a share of the same data and computes on it.
//!
//! Each server has a volume of the same name. The trees of this volume hold records, which are the
//! same on all servers. The server stores its shares separately, and the client accesses them
//! through [`ShareServers`].
//!
//! # The value of a record
//! At most *t* servers lie. So if *t* + 1 servers return a value, one of them is honest, and the
//! client wrote the value. All such values are [candidates](BucketStore::read_candidates). An
//! honest server that was missing when a newer value was written returns an older one. So several
//! values may be candidates, and the number of votes does not decide which is the newest. The
//! caller authenticates the candidates and takes the newest. A record without a candidate reads as
//! zeros, like a torn record.
//!
//! A value with fewer votes is never returned. A liar could forge superblocks that take long to
//! refuse, or that name a newer version.
//!
//! # Missing servers
//! 2 *t* + 1 servers are enough. A server that could not be reached within the [retry
//! limit](oblivio_store::RemoteOptions::retry_for) is *missing*: no call waits for it, and the
//! client tries to reconnect to it from time to time while others answer.
//!
//! When a server returns, it first receives every record that this store has written since the
//! store was opened. So every present server has all these records, and a flush is done once
//! 2 *t* + 1 servers have flushed: *t* + 1 honest ones keep the records.
//!
//! | module | contents |
//! |---|---|
//! | `opening` | creating and opening a volume on all servers |
//! | `location` | the location of a volume: `shares://…` |
//! | `opener` | opens the servers that a `SharesLocation` names |
//! | `retry` | time limits and pauses of retries |
//! | `repair` | rebuilding one server |
//! | `server` | one server, present or missing |
//! | `threads` | one thread for each server |
//! | `votes` | votes on the values of records |
//! | `written` | past writes, for servers that come back |

mod location;
mod opener;
mod opening;
mod repair;
mod retry;
mod server;
mod threads;
mod votes;
mod written;

use std::mem;

use oblivio_core::error::join_failures;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Piece, SealedTrip, TreeId, TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_store::{Connector, PendingComputation, RemoteStore, StoreFailure, absent};
use oblivio_wire::keys::PublicKey;

use crate::message::Request;
use crate::servers::{Patience, ServerAnswer, ShareServers};
pub use location::{SharesAddress, SharesLocation};
use retry::RetryPolicy;
use server::Server;
use threads::{ThreadError, all_at_once};
use votes::Votes;
use written::Written;

/// The minimum number of servers. With fewer servers, none of them may collude.
pub const SERVERS_MIN: usize = 3;
/// The maximum number of servers.
pub const SERVERS_MAX: usize = 7;

/// A function that creates a [`Connector`] for a connection to a server.
pub type ConnectorFactory = Box<dyn Fn() -> Box<dyn Connector> + Send>;

/// A server, with its key and a way to connect to it.
pub struct ShareServer {
    /// The address of the server, as shown in messages.
    pub address: String,
    /// The public key of the server.
    pub key: PublicKey,
    /// Creates the [`Connector`] for each connection to the server.
    pub make_connector: ConnectorFactory,
}

/// A store over share servers. The servers compute for the scheme, and hold its records.
///
/// All calls fail once another client has opened the volume. They also fail once a write or a flush
/// has failed on a server, unless the reason is a lost link. The volume must then be reopened.
pub struct SharedStore {
    servers: Vec<Server>,
    shapes: Vec<TreeShape>,
    /// The number of servers that may lie.
    colluding: usize,
    /// The number of servers that must be present for a call to succeed.
    enough: usize,
    is_read_only: bool,
    /// Whether the store is open to repair a server.
    is_repair: bool,
    failure: StoreFailure,
    retries: RetryPolicy,
    votes: Votes,
    /// The servers that did not answer a read of records since the store was opened, with the
    /// reasons.
    silent: Vec<(usize, String)>,
    /// The latest value of each piece written since the store was opened, for servers that return.
    written: Written,
}

impl SharedStore {
    /// The shapes of all trees of records, `TreeId(0)` first.
    pub fn shapes(&self) -> &[TreeShape] {
        &self.shapes
    }

    /// The number of servers that are currently missing.
    pub fn missing(&self) -> usize {
        self.servers.iter().filter(|server| server.is_missing()).count()
    }

    /// Names the servers that are missing or did not answer a read of records since the store was
    /// opened, with the reasons. Omits `server`, counted from 0. `None` if all others have
    /// answered.
    pub fn describe_silent(&self, server: usize) -> Option<String> {
        let has_not_answered = |number| self.silent.iter().find(|(silent, _)| *silent == number);
        let text = self.failures(|number, other| {
            let why = || Some(has_not_answered(number)?.1.as_str());
            if number == server { None } else { other.why_missing().or_else(why) }
        });
        Some(text).filter(|text| !text.is_empty())
    }

    /// Names the servers for which `why` returns a reason, each with its reason. Servers are
    /// counted from 0.
    fn failures<'s>(&'s self, why: impl Fn(usize, &'s Server) -> Option<&'s str>) -> String {
        let servers = self.servers.iter().enumerate();
        join_failures(servers.filter_map(|(number, server)| {
            Some((server.name().to_owned(), why(number, server)?.to_owned()))
        }))
    }

    /// Begins a call. A server that is reachable again takes part in the call, after it has
    /// received the writes that it missed.
    fn begin_call(&mut self) -> Result<(), StoreError> {
        self.failure.check()?;
        for i in 0..self.servers.len() {
            let shapes = &self.shapes;
            if self.servers[i].take_back(|found| found == shapes) {
                // Another client may have opened the volume while this server was being called.
                self.check_not_fenced_beside(i)?;
                self.servers[i].receive(&self.written);
            }
            // A repair itself opens the server that it rebuilds.
            if !self.is_repair && self.servers[i].should_reconnect() {
                // Opening the volume there would fence off a client that has opened it in the
                // meantime.
                if !self.servers[i].was_there() {
                    self.check_not_fenced_beside(i)?;
                }
                self.servers[i].reconnect();
            }
        }
        Ok(())
    }

    /// Fails if another client has opened the volume on a present server. Sends no request to
    /// server `i`, because this client's session there may be new.
    fn check_not_fenced_beside(&mut self, i: usize) -> Result<(), StoreError> {
        let others = self.servers.iter_mut().enumerate().filter(|(other, _)| *other != i);
        let checks = others.map(|(_, server)| move || server.with_store(RemoteStore::check_in));
        let mut checked = all_at_once(checks).into_iter().filter_map(Result::ok).flatten();
        let is_fenced = |error: &StoreError| error.kind() == StoreErrorKind::Fenced;
        match checked.find_map(|checked| checked.err().filter(is_fenced)) {
            Some(error) => Err(self.failure.record(error)),
            None => Ok(()),
        }
    }

    fn lengths(&self, pieces: &[Piece]) -> Result<Vec<usize>, StoreError> {
        let length = |piece: &Piece| {
            let part = self.shape(piece.tree)?.level_of(piece.bucket)?.part(piece.part);
            part.map(|(_, bytes)| bytes as usize)
        };
        pieces.iter().map(|piece| length(piece).ok_or_else(|| absent(piece))).collect()
    }

    /// The number of votes that a value needs, so that at least one of its voters is honest.
    fn votes_min(&self) -> usize {
        self.colluding + 1
    }

    /// Reads pieces from all present servers, and counts the servers' votes for the contents of
    /// each piece. Fails if too few servers answer.
    fn vote(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        self.begin_call()?;
        let lengths = self.lengths(pieces)?;
        // Sends all requests before it waits for an answer.
        self.servers.iter_mut().for_each(|server| server.announce(pieces));
        let mut votes = mem::take(&mut self.votes);
        votes.begin(&lengths);
        let mut failed: Vec<(usize, StoreError)> = Vec::new();
        let read = |store: &mut RemoteStore| {
            let frames = store.read(pieces)?;
            let mut contents = Vec::new();
            (0..frames.len()).for_each(|i| contents.extend_from_slice(frames.get(i)));
            Ok(contents)
        };
        let answers = at_once(&mut self.servers, |server| server.with_store_unnamed(read));
        for (i, answer) in answers.into_iter().enumerate() {
            match answer.unwrap_or_else(|why| Some(Err(why.into()))) {
                Some(Ok(answer)) => votes.add(answer),
                Some(Err(error)) => failed.push((i, error)),
                None => (),
            }
        }
        let (enough, agreed) = (self.enough, self.votes_min());
        votes.count(agreed);
        self.votes = votes;
        for (i, error) in &failed {
            if self.silent.iter().all(|(silent, _)| silent != i) {
                self.silent.push((*i, error.to_string()));
            }
        }
        // Choose the most important error.
        let error = failed.into_iter().min_by_key(|(_, error)| match error.kind() {
            StoreErrorKind::Fenced => 0,
            StoreErrorKind::Unreachable => 2,
            _ => 1,
        });
        let error = error.map(|(i, error)| self.servers[i].named(error));
        let has_enough = self.votes.voters() >= enough;
        match error {
            Some(error) if error.kind() == StoreErrorKind::Fenced => {
                Err(self.failure.record(error))
            }
            _ if has_enough => Ok(()),
            Some(error) if error.kind() != StoreErrorKind::Unreachable => Err(error),
            // If fewer answer, all of them may have missed the newest write.
            _ => Err(self.check_enough().err().unwrap_or_else(too_few)),
        }
    }

    /// Runs `act` on all present servers at once. A server that cannot be reached becomes missing.
    /// Fails if `act` fails on a server for another reason, or if too few servers remain present.
    fn on_all_present(
        &mut self,
        act: impl Fn(&mut RemoteStore) -> Result<(), StoreError> + Sync,
    ) -> Result<(), StoreError> {
        for done in at_once(&mut self.servers, |server| server.with_store(&act)) {
            match done.unwrap_or_else(|why| Some(Err(why.into()))) {
                Some(Err(error)) if error.kind() != StoreErrorKind::Unreachable => {
                    return Err(self.failure.record(error));
                }
                Some(_) | None => (),
            }
        }
        self.check_enough()
    }

    /// Waits for the answer of each server in turn; `None` for a server that was not asked. Once a
    /// link is lost, waits for all remaining servers at once, so that reconnecting to one server
    /// does not delay the others.
    fn wait_for_all(
        &mut self,
        asked: Vec<Option<Result<PendingComputation, StoreError>>>,
    ) -> Vec<Option<ServerAnswer>> {
        let mut answered: Vec<Option<ServerAnswer>> = Vec::with_capacity(asked.len());
        let mut left = Vec::new();
        for (i, (server, asked)) in self.servers.iter_mut().zip(asked).enumerate() {
            let waited = match asked {
                Some(Ok(pending)) if left.is_empty() => server.wait_on_link(pending),
                Some(Ok(pending)) => Ok(Err(pending)),
                Some(Err(error)) => Err(error),
                None => {
                    answered.push(None);
                    continue;
                }
            };
            answered.push(match waited {
                Ok(Ok(answer)) => Some(Ok(answer)),
                Ok(Err(pending)) => {
                    left.push((i, pending));
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        let places: Vec<_> = left.iter().map(|(i, _)| *i).collect();
        let mut left = left.into_iter().peekable();
        let waits = self.servers.iter_mut().enumerate().filter_map(|(i, server)| {
            let (_, pending) = left.next_if(|(next, _)| *next == i)?;
            Some(move || server.wait_for_computed(pending))
        });
        for (i, waited) in places.into_iter().zip(all_at_once(waits)) {
            answered[i] = Some(waited.unwrap_or_else(|why| Err(why.into())));
        }
        answered
    }

    fn check_enough(&self) -> Result<(), StoreError> {
        let (there, enough) = (self.servers.len() - self.missing(), self.enough);
        if there >= enough {
            return Ok(());
        }
        let missing = self.failures(|_, server| server.why_missing());
        let message =
            format!("{there} servers are available, and {enough} are needed. Missing: {missing}");
        Err(StoreError::new(StoreErrorKind::Unreachable, message))
    }
}

impl BucketStore for SharedStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.shapes.get(usize::from(tree.0))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    /// Does nothing, because records are few and are read only when they are needed.
    fn prefetch(&mut self, _pieces: &[Piece]) {}

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.vote(pieces)?;
        Ok(self.votes.frames())
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        self.vote(pieces)?;
        self.votes.each_candidate(self.votes_min(), each);
        Ok(())
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.begin_call()?;
        if self.is_read_only {
            let message = "the volume is open read-only: open it for writing";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let lengths = self.lengths(pieces)?;
        let mut sealed = SealedTrip::default();
        sealed.seal(lengths, fill);
        let all: Vec<_> = (0..pieces.len()).collect();
        let done = self
            .on_all_present(|store| store.write(pieces, &mut |blanks| sealed.put(&all, blanks)));
        // Added even if too few servers accepted the write: those that did will hold it.
        self.written.add(pieces, sealed);
        done
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.begin_call()?;
        self.on_all_present(RemoteStore::begin_to_flush)?;
        // Every present server has all writes, and enough servers must be present.
        self.on_all_present(RemoteStore::flush)
    }
}

impl ShareServers for SharedStore {
    fn count(&self) -> usize {
        self.servers.len()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        assert_eq!(requests.len(), self.servers.len(), "one request for each server");
        if let Err(error) = self.begin_call() {
            let copied = || StoreError::new(error.kind(), error.to_string());
            return requests.into_iter().map(|request| request.map(|_| Err(copied()))).collect();
        }
        let servers = self.servers.iter_mut().zip(requests);
        let asked: Vec<_> = servers
            .map(|(server, request)| {
                Some(server.begin_to_compute(request?.encode_in(tree), patience))
            })
            .collect();
        let answered = self.wait_for_all(asked);
        let failed = answered.iter().flatten().filter_map(|answered| answered.as_ref().err());
        let mut fenced = failed.filter(|error| error.kind() == StoreErrorKind::Fenced);
        if let Some(error) = fenced.next() {
            self.failure.record(StoreError::new(error.kind(), error.to_string()));
        }
        answered
    }

    fn begin_retries(&mut self) {
        self.retries.begin();
    }

    fn wait_for_missing(&mut self) {
        while self.begin_call().is_ok() && self.missing() > 0 && !self.retries.is_over() {
            self.servers.iter_mut().for_each(Server::call_soon);
            self.retries.pause();
        }
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        self.retries.back_off(failed)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        self.servers[server].key().bytes()
    }

    fn name(&self, server: usize) -> String {
        self.servers[server].name().to_owned()
    }
}

/// Runs `act` on every server, each on its own thread, so that the time limits of reconnecting run
/// in parallel.
fn at_once<T: Send>(
    servers: &mut [Server],
    act: impl Fn(&mut Server) -> T + Sync,
) -> Vec<Result<T, ThreadError>> {
    let act = &act;
    all_at_once(servers.iter_mut().map(|server| move || act(server)))
}

fn too_few() -> StoreError {
    let message = "too few servers returned the record: try again";
    StoreError::new(StoreErrorKind::Unreachable, message)
}
