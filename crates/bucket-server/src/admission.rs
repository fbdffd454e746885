//! Who is let in: strangers who have not proved who they are, and clients who have.
//!
//! They are counted apart, so that strangers who only connect cannot keep out the owner. When there are too many of them, one
//! makes room for the one who came last. Chance says who: if it were the first or the last, a flood could aim at the owner's
//! handshake.
//!
//! A client that has all of its connections and comes with one more has probably lost some of them, and its system does not know
//! it yet. So the one that has been silent longest makes room, if that is long enough. If it was alive after all, its user comes back,
//! and fails if there is no room for it by then. Nothing that was flushed is lost.
//!
//! Each other server has an equal part of the seats for servers: none can keep the others out.
//! Among a server's own seats, those make room first that have joined no volume in time.
//!
//! A client without a seat counts as a stranger until it has been told so: its flood is bounded as
//! theirs is.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::{StdRng, SysError, SysRng};
use rand::seq::IteratorRandom;

use super::BucketLimits;
use super::clock;
use super::metrics::NotLetIn;

/// Of one server.
pub(super) struct Admission {
    limits: BucketLimits,
    /// Connections at a time of one other server.
    connections_per_peer_max: usize,
    state: Mutex<State>,
    /// Told when a thread ends, and when the server is to stop.
    changed: Condvar,
}

struct State {
    is_stopped: bool,
    begun: u64,
    threads: usize,
    strangers: Vec<Stranger>,
    seats: Vec<Taken>,
    coins: StdRng,
}

struct Stranger {
    number: u64,
    stream: Box<dyn Ends>,
}

/// What a connection goes over, as far as others can end it.
pub(super) trait Ends: Send {
    /// Whoever waits for this half, or uses it, is told that it is over.
    fn end(&self, half: Shutdown);
}

impl Ends for TcpStream {
    fn end(&self, half: Shutdown) {
        // It may have ended already.
        let _ = self.shutdown(half);
    }
}

/// Who was let in. Each kind has seats of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Client,
    /// Another server.
    Peer,
}

struct Taken {
    number: u64,
    kind: Kind,
    client: Arc<str>,
    stream: Box<dyn Ends>,
    pulse: Arc<Pulse>,
}

/// What a connection does, for those who watch it.
#[derive(Default)]
pub(super) struct Pulse {
    heard: AtomicU64,
    sends_until: AtomicU64,
    /// It has joined a volume, or need not.
    has_joined: AtomicBool,
}

impl Pulse {
    /// The server has said which volume it deals for.
    pub(super) fn joins(&self) {
        self.has_joined.store(true, Ordering::Relaxed);
    }

    /// A message has come.
    pub(super) fn heard(&self) {
        self.heard.store(milliseconds(clock::now()), Ordering::Relaxed);
    }

    /// What is sent from now on has to be taken within so long.
    pub(super) fn sends(&self, within: Duration) {
        let until = milliseconds(clock::now().saturating_add(within)).max(1);
        self.sends_until.store(until, Ordering::Relaxed);
    }

    /// It was.
    pub(super) fn has_sent(&self) {
        self.sends_until.store(0, Ordering::Relaxed);
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A thread of a connection, until it is dropped.
pub(super) struct Thread<'a> {
    admission: &'a Admission,
    /// Of the connection, too.
    pub(super) number: u64,
}

/// Why a client that is known gets no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// It has as many connections as it may, all of them in use.
    OwnTaken(usize),
    /// All seats are taken.
    AllTaken,
    /// Its link was ended, or the server is to stop.
    Ended,
}

/// A client that was let in, until it is dropped.
pub(super) struct Seat<'a> {
    admission: &'a Admission,
    number: u64,
    pub(super) pulse: Arc<Pulse>,
}

impl Admission {
    /// With how many other servers this one computes.
    pub(super) fn new(limits: &BucketLimits, peers: usize) -> Result<Self, SysError> {
        let state = State {
            is_stopped: false,
            begun: 0,
            threads: 0,
            strangers: Vec::new(),
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

    /// Waits until there may be one more thread. None if the server is to stop. Those who are left take a moment to end: a flood
    /// waits for them, too.
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

    /// A stranger comes, and another one is left if there is one too many. Until [`Self::is_known`] or [`Self::is_left`].
    pub(super) fn stranger(&self, number: u64, stream: Box<dyn Ends>, not_let_in: &NotLetIn) {
        let mut state = self.state();
        if state.is_stopped {
            stream.end(Shutdown::Both);
        }
        state.strangers.push(Stranger { number, stream });
        if state.strangers.len() > self.limits.handshakes_max {
            let State { strangers, coins, .. } = &mut *state;
            let latest = strangers.len() - 1;
            let place = (0..latest).choose(coins).unwrap_or(latest);
            strangers.swap_remove(place).stream.end(Shutdown::Both);
            not_let_in.displaced.one();
        }
    }

    /// A stranger did not prove who it is. Answers whether it had the time.
    pub(super) fn is_left(&self, number: u64) -> bool {
        self.state().take_stranger(number).is_some()
    }

    /// A stranger has proved to be `client`: a seat for it, if there is one. Without one it stays a
    /// stranger until [`Self::is_left`].
    pub(super) fn is_known(
        &self,
        number: u64,
        client: &Arc<str>,
        kind: Kind,
    ) -> Result<Seat<'_>, NoSeat> {
        let mut state = self.state();
        if state.is_stopped {
            return Err(NoSeat::Ended);
        }
        let BucketLimits { connections_max, connections_per_client_max, .. } = self.limits;
        let (all_max, own_max) = match kind {
            Kind::Client => (connections_max, connections_per_client_max),
            Kind::Peer => (self.limits.peer_connections_max, self.connections_per_peer_max),
        };
        let is_own = |seat: &&Taken| seat.kind == kind && seat.client == *client;
        let own = state.seats.iter().filter(is_own).count();
        let makes_room = if state.count(kind) >= all_max || own >= own_max {
            let full = if own >= own_max { NoSeat::OwnTaken(own) } else { NoSeat::AllTaken };
            let after = self.limits.makes_room_after;
            Some(state.silent_longest(client, kind, after).ok_or(full)?)
        } else {
            None
        };
        let stream = state.take_stranger(number).ok_or(NoSeat::Ended)?.stream;
        if let Some(place) = makes_room {
            state.seats.swap_remove(place).stream.end(Shutdown::Both);
        }
        let pulse = Arc::<Pulse>::default();
        pulse.heard();
        if kind == Kind::Client {
            pulse.joins();
        }
        let (client, watched) = (client.clone(), pulse.clone());
        state.seats.push(Taken { number, kind, client, stream, pulse: watched });
        Ok(Seat { admission: self, number, pulse })
    }

    /// Leaves those who do not take what they are sent.
    pub(super) fn leave_who_is_slow(&self) {
        let now = milliseconds(clock::now());
        for Taken { stream, pulse, .. } in &self.state().seats {
            let until = pulse.sends_until.load(Ordering::Relaxed);
            if until != 0 && until <= now {
                stream.end(Shutdown::Both);
            }
        }
    }

    /// Nobody comes in any more, and what clients say from now on is not read. What they are being answered still reaches them.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        let strangers = state.strangers.iter().map(|it| (&it.stream, Shutdown::Both));
        let clients = state.seats.iter().map(|it| (&it.stream, Shutdown::Read));
        for (stream, half) in strangers.chain(clients) {
            stream.end(half);
        }
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    /// Ends all connections at once.
    pub(super) fn cut(&self) {
        for taken in &self.state().seats {
            taken.stream.end(Shutdown::Both);
        }
    }

    /// Waits so long, or until the server is to stop and all threads have ended. Answers whether that is so.
    pub(super) fn wait_for_the_end(&self, time: Duration) -> bool {
        let goes_on = |state: &mut State| !state.is_stopped || state.threads > 0;
        let wait = self.changed.wait_timeout_while(self.state(), time, goes_on);
        !wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Connections of clients, of other servers, and of strangers.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.count(Kind::Client), state.count(Kind::Peer), state.strangers.len())
    }
}

impl State {
    fn take_stranger(&mut self, number: u64) -> Option<Stranger> {
        let place = self.strangers.iter().position(|it| it.number == number)?;
        Some(self.strangers.swap_remove(place))
    }

    fn count(&self, kind: Kind) -> usize {
        self.seats.iter().filter(|seat| seat.kind == kind).count()
    }

    fn silent_longest(&self, client: &Arc<str>, kind: Kind, after: Duration) -> Option<usize> {
        let until = milliseconds(clock::now().saturating_sub(after));
        let is_own = |seat: &Taken| seat.kind == kind && seat.client == *client;
        let silent = self.seats.iter().enumerate().filter(|(_, seat)| is_own(seat));
        let silent = silent.map(|(place, seat)| {
            let Pulse { heard, has_joined, .. } = &*seat.pulse;
            (has_joined.load(Ordering::Relaxed), heard.load(Ordering::Relaxed), place)
        });
        silent.filter(|(_, heard, _)| *heard <= until).min().map(|(.., place)| place)
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        self.admission.state().threads -= 1;
        self.admission.changed.notify_all();
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.admission.state().seats.retain(|seat| seat.number != self.number);
    }
}
