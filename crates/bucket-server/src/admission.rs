//! Admission of connections: handshakes in progress, and authenticated connections.
//!
//! Handshakes and authenticated connections are counted separately, so that connections that never
//! authenticate cannot keep out the owner. Each authenticated connection occupies a seat, and the
//! number of seats is limited. If there are too many handshakes, a randomly chosen earlier one is
//! dropped. If it were always the first or the last, a flood could target the owner's handshake.
//!
//! If a client that uses all its connections opens another one, it has probably lost some
//! connections, and the server does not know that yet. So the server closes the connection that has
//! been silent longest, if it has been silent long enough. If that connection was still in use, its
//! client reconnects. Reconnecting fails if no seat is free then. No flushed write is lost.
//!
//! Each other server gets an equal part of the seats for servers, so that none can exclude the
//! others. Among the seats of one server, connections that have not joined a volume are closed
//! first.
//!
//! A client without a seat counts as a handshake until it has received the refusal, so a flood of
//! such clients is bounded too.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::{StdRng, SysError, SysRng};
use rand::seq::IteratorRandom;

use super::BucketLimits;
use super::clock;
use super::metrics::RefusedCounters;

/// The admission state of a server.
pub(super) struct Admission {
    limits: BucketLimits,
    /// The maximum number of connections of one other server.
    connections_per_peer_max: usize,
    state: Mutex<State>,
    /// Signals that a thread has ended, or that the server must stop.
    changed: Condvar,
}

struct State {
    is_stopped: bool,
    begun: u64,
    threads: usize,
    handshakes: Vec<Handshake>,
    seats: Vec<Seat>,
    coins: StdRng,
}

struct Handshake {
    number: u64,
    stream: Box<dyn ClosableStream>,
}

/// The stream of a connection, which other threads can close.
pub(super) trait ClosableStream: Send {
    /// Shuts down one half or both. Blocked readers or writers return.
    fn end(&self, half: Shutdown);
}

impl ClosableStream for TcpStream {
    fn end(&self, half: Shutdown) {
        // It may already be closed.
        let _ = self.shutdown(half);
    }
}

/// The kind of an authenticated connection. Each kind has separate seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Client,
    /// Another server.
    Peer,
}

struct Seat {
    number: u64,
    kind: Kind,
    client: Arc<str>,
    stream: Box<dyn ClosableStream>,
    pulse: Arc<Pulse>,
}

/// The activity of a connection, for the thread that watches it.
#[derive(Default)]
pub(super) struct Pulse {
    /// The time of the latest message, in milliseconds of the monotonic clock.
    heard: AtomicU64,
    /// The time by which the peer must have taken the message that is being sent, in the same unit.
    /// 0 if none is being sent.
    sends_until: AtomicU64,
    /// Whether the other server has joined a volume. Always true for the connection of a client.
    has_joined: AtomicBool,
}

impl Pulse {
    /// Notes that the other server has joined a volume.
    pub(super) fn joins(&self) {
        self.has_joined.store(true, Ordering::Relaxed);
    }

    /// Notes that a message has arrived.
    pub(super) fn heard(&self) {
        self.heard.store(milliseconds(clock::now()), Ordering::Relaxed);
    }

    /// Notes that a message is being sent, which the peer must take within `within`.
    pub(super) fn sends(&self, within: Duration) {
        let until = milliseconds(clock::now().saturating_add(within)).max(1);
        self.sends_until.store(until, Ordering::Relaxed);
    }

    /// Notes that the peer has taken the message.
    pub(super) fn has_sent(&self) {
        self.sends_until.store(0, Ordering::Relaxed);
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The permit for the thread of a connection. Returned when dropped.
pub(super) struct Thread<'a> {
    admission: &'a Admission,
    /// The number of the connection.
    pub(super) number: u64,
}

/// The reason why an authenticated client is refused a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// The client already has its maximum number of connections, all in use.
    OwnTaken(usize),
    /// All seats are taken.
    AllTaken,
    /// The client's link was closed, or the server is stopping.
    Ended,
}

/// The seat of an authenticated connection. Freed when dropped.
pub(super) struct ConnectionPermit<'a> {
    admission: &'a Admission,
    number: u64,
    pub(super) pulse: Arc<Pulse>,
}

impl Admission {
    /// Creates the admission state of a server with `peers` other share servers.
    pub(super) fn new(limits: &BucketLimits, peers: usize) -> Result<Self, SysError> {
        let state = State {
            is_stopped: false,
            begun: 0,
            threads: 0,
            handshakes: Vec::new(),
            seats: Vec::new(),
            coins: StdRng::try_from_rng(&mut SysRng)?,
        };
        Ok(Self {
            limits: limits.clone(),
            connections_per_peer_max: (limits.peer_connections_max / peers.max(1)).max(1),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another thread is allowed. `None` if the server must stop. The thread of a
    /// dropped connection counts until it has ended, so a flood waits for it.
    pub(super) fn thread(&self) -> Option<Thread<'_>> {
        let BucketLimits { connections_max, peer_connections_max, handshakes_max, .. } =
            self.limits;
        let threads_max = connections_max + peer_connections_max + 2 * handshakes_max;
        let is_full = |state: &mut State| !state.is_stopped && state.threads >= threads_max;
        let state = self.changed.wait_while(self.state(), is_full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped {
            return None;
        }
        state.threads += 1;
        state.begun += 1;
        Some(Thread { admission: self, number: state.begun })
    }

    /// Adds a handshake, and drops another one if there are now too many. The handshake counts
    /// until [`Self::admit`] or [`Self::drop_handshake`].
    pub(super) fn begin_handshake(
        &self,
        number: u64,
        stream: Box<dyn ClosableStream>,
        refused: &RefusedCounters,
    ) {
        let mut state = self.state();
        if state.is_stopped {
            stream.end(Shutdown::Both);
        }
        state.handshakes.push(Handshake { number, stream });
        if state.handshakes.len() > self.limits.handshakes_max {
            let State { handshakes, coins, .. } = &mut *state;
            let latest = handshakes.len() - 1;
            let index = (0..latest).choose(coins).unwrap_or(latest);
            handshakes.swap_remove(index).stream.end(Shutdown::Both);
            refused.displaced.increment();
        }
    }

    /// Removes a failed handshake. Returns false if it had already been displaced.
    pub(super) fn drop_handshake(&self, number: u64) -> bool {
        self.state().take_handshake(number).is_some()
    }

    /// Takes a seat for an authenticated client or server. If none is free, closes the connection
    /// of the same client or server that has been silent longest, if it has been silent long
    /// enough. Without a seat, the new connection counts as a handshake until
    /// [`Self::drop_handshake`].
    pub(super) fn admit(
        &self,
        number: u64,
        client: &Arc<str>,
        kind: Kind,
    ) -> Result<ConnectionPermit<'_>, NoSeat> {
        let mut state = self.state();
        if state.is_stopped {
            return Err(NoSeat::Ended);
        }
        let BucketLimits { connections_max, connections_per_client_max, .. } = self.limits;
        let (all_max, own_max) = match kind {
            Kind::Client => (connections_max, connections_per_client_max),
            Kind::Peer => (self.limits.peer_connections_max, self.connections_per_peer_max),
        };
        let is_own = |seat: &&Seat| seat.kind == kind && seat.client == *client;
        let own = state.seats.iter().filter(is_own).count();
        let makes_room = if state.count(kind) >= all_max || own >= own_max {
            let full = if own >= own_max { NoSeat::OwnTaken(own) } else { NoSeat::AllTaken };
            let after = self.limits.makes_room_after;
            Some(state.silent_longest(client, kind, after).ok_or(full)?)
        } else {
            None
        };
        let stream = state.take_handshake(number).ok_or(NoSeat::Ended)?.stream;
        if let Some(index) = makes_room {
            state.seats.swap_remove(index).stream.end(Shutdown::Both);
        }
        let pulse = Arc::<Pulse>::default();
        pulse.heard();
        if kind == Kind::Client {
            pulse.joins();
        }
        let (client, watched) = (client.clone(), pulse.clone());
        state.seats.push(Seat { number, kind, client, stream, pulse: watched });
        Ok(ConnectionPermit { admission: self, number, pulse })
    }

    /// Closes connections that do not take an answer in time.
    pub(super) fn close_slow_connections(&self) {
        let now = milliseconds(clock::now());
        for Seat { stream, pulse, .. } in &self.state().seats {
            let until = pulse.sends_until.load(Ordering::Relaxed);
            if until != 0 && until <= now {
                stream.end(Shutdown::Both);
            }
        }
    }

    /// Ends all handshakes, admits no more connections, and stops reading requests. Answers in
    /// progress are still sent.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        let handshakes = state.handshakes.iter().map(|it| (&it.stream, Shutdown::Both));
        let clients = state.seats.iter().map(|it| (&it.stream, Shutdown::Read));
        for (stream, half) in handshakes.chain(clients) {
            stream.end(half);
        }
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    /// Ends all authenticated connections at once.
    pub(super) fn cut(&self) {
        for seat in &self.state().seats {
            seat.stream.end(Shutdown::Both);
        }
    }

    /// Waits until the server must stop and all threads have ended, but at most for `time`. Returns
    /// false after a timeout.
    pub(super) fn wait_for_the_end(&self, time: Duration) -> bool {
        let still_runs = |state: &mut State| !state.is_stopped || state.threads > 0;
        let wait = self.changed.wait_timeout_while(self.state(), time, still_runs);
        !wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The numbers of client connections, of connections of other servers, and of handshakes.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.count(Kind::Client), state.count(Kind::Peer), state.handshakes.len())
    }
}

impl State {
    fn take_handshake(&mut self, number: u64) -> Option<Handshake> {
        let index = self.handshakes.iter().position(|it| it.number == number)?;
        Some(self.handshakes.swap_remove(index))
    }

    fn count(&self, kind: Kind) -> usize {
        self.seats.iter().filter(|seat| seat.kind == kind).count()
    }

    fn silent_longest(&self, client: &Arc<str>, kind: Kind, after: Duration) -> Option<usize> {
        let until = milliseconds(clock::now().saturating_sub(after));
        let is_own = |seat: &Seat| seat.kind == kind && seat.client == *client;
        let silent = self.seats.iter().enumerate().filter(|(_, seat)| is_own(seat));
        let silent = silent.map(|(index, seat)| {
            let Pulse { heard, has_joined, .. } = &*seat.pulse;
            (has_joined.load(Ordering::Relaxed), heard.load(Ordering::Relaxed), index)
        });
        silent.filter(|(_, heard, _)| *heard <= until).min().map(|(.., index)| index)
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        self.admission.state().threads -= 1;
        self.admission.changed.notify_all();
    }
}

impl Drop for ConnectionPermit<'_> {
    fn drop(&mut self) {
        self.admission.state().seats.retain(|seat| seat.number != self.number);
    }
}
