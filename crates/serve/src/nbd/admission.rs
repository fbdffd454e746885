//! Who is let in: strangers who have not chosen an export yet, and clients who have.
//!
//! They are counted apart, so that strangers who only connect cannot keep out the owner: when there are too
//! many of them, the one who came first makes room for the one who came last.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use super::Limits;

/// Of one server.
pub(super) struct Admission {
    handshakes_max: usize,
    handshakes: Mutex<Handshakes>,
    seats: Semaphore,
    displaced: AtomicU64,
    turned_away: AtomicU64,
}

/// Whom a server has not let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotLetIn {
    /// Clients for whom there was no room: see [`Limits::connections_max`].
    pub turned_away: u64,
    /// Clients who were left before they had chosen an export, because so many others came after them: see
    /// [`Limits::handshakes_max`].
    pub displaced: u64,
}

/// Those under way, the first of them first.
#[derive(Default)]
struct Handshakes {
    begun: u64,
    under_way: VecDeque<UnderWay>,
}

struct UnderWay {
    number: u64,
    /// Dropped, it tells the handshake to end.
    _may_go_on: oneshot::Sender<Infallible>,
}

/// A handshake under way, until it is dropped.
pub(super) struct Handshake<'a> {
    admission: &'a Admission,
    number: u64,
    may_go_on: oneshot::Receiver<Infallible>,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            handshakes_max: limits.handshakes_max,
            handshakes: Mutex::default(),
            seats: Semaphore::new(limits.connections_max),
            displaced: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        }
    }

    /// Begins a handshake, and ends the oldest one if there is one too many.
    pub(super) fn begin_handshake(&self) -> Handshake<'_> {
        let (sender, may_go_on) = oneshot::channel();
        let mut handshakes = self.handshakes();
        handshakes.begun += 1;
        let number = handshakes.begun;
        handshakes.under_way.push_back(UnderWay { number, _may_go_on: sender });
        if handshakes.under_way.len() > self.handshakes_max {
            handshakes.under_way.pop_front();
            self.displaced.fetch_add(1, Ordering::Relaxed);
        }
        Handshake { admission: self, number, may_go_on }
    }

    /// A seat for a client, if there is one. Who gets none is counted.
    pub(super) fn seat(&self) -> Option<SemaphorePermit<'_>> {
        let seat = self.seats.try_acquire().ok();
        self.turned_away.fetch_add(u64::from(seat.is_none()), Ordering::Relaxed);
        seat
    }

    pub(super) fn not_let_in(&self) -> NotLetIn {
        NotLetIn {
            turned_away: self.turned_away.load(Ordering::Relaxed),
            displaced: self.displaced.load(Ordering::Relaxed),
        }
    }

    fn handshakes(&self) -> MutexGuard<'_, Handshakes> {
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handshake<'_> {
    /// Returns when it has to end, because others came after it.
    pub(super) async fn is_displaced(&mut self) {
        // Nobody ever sends anything: it ends when the sender is dropped.
        let _ = (&mut self.may_go_on).await;
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.admission.handshakes().under_way.retain(|handshake| handshake.number != number);
    }
}
