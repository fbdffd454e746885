//! Admission of clients: handshakes in progress, and clients that have chosen an export.
//!
//! The two are counted separately, so that connections that never finish their handshake cannot
//! keep out the owner. Each client that has chosen an export occupies a seat, and the number of
//! seats is limited. If there are too many handshakes, a randomly chosen one is dropped: if it
//! were always the first or the last, a flood of connections could target the owner's handshake. An
//! authenticated client is never dropped in favor of an unauthenticated one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::SeedableRng;
use rand::rngs::{StdRng, SysError, SysRng};
use rand::seq::IteratorRandom;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::Limits;

/// The admission state of a server.
pub(super) struct Admission {
    handshakes_max: usize,
    handshakes: Mutex<Handshakes>,
    seats: Semaphore,
    displaced: AtomicU64,
    turned_away: AtomicU64,
}

/// The numbers of refused clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounts {
    /// Clients refused because all seats were taken: see [`Limits::connections_max`].
    pub turned_away: u64,
    /// Clients that were dropped before they had chosen an export, because there were too many
    /// handshakes: see [`Limits::handshakes_max`].
    pub displaced: u64,
}

/// Handshakes in progress. The newest is the last element until an element is removed.
struct Handshakes {
    begun: u64,
    under_way: Vec<UnderWay>,
    coins: StdRng,
}

struct UnderWay {
    number: u64,
    is_known: bool,
    displaced: Arc<Notify>,
}

/// A handshake in progress. Ends when dropped.
pub(super) struct Handshake<'a> {
    admission: &'a Admission,
    number: u64,
    displaced: Arc<Notify>,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Result<Self, SysError> {
        let coins = StdRng::try_from_rng(&mut SysRng)?;
        Ok(Self {
            handshakes_max: limits.handshakes_max,
            handshakes: Mutex::new(Handshakes { begun: 0, under_way: Vec::new(), coins }),
            seats: Semaphore::new(limits.connections_max),
            displaced: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        })
    }

    /// Begins a handshake. If there are now too many, drops one of them. Returns `None` if no seat
    /// is free, because the handshake would be useless. Does not reserve a seat.
    pub(super) fn begin_handshake(&self) -> Option<Handshake<'_>> {
        self.counted((self.seats.available_permits() > 0).then_some(()))?;
        let displaced = Arc::new(Notify::new());
        let mut handshakes = self.handshakes();
        let number = handshakes.begin(displaced.clone());
        if handshakes.under_way.len() > self.handshakes_max {
            handshakes.displace_one();
            self.displaced.fetch_add(1, Ordering::Relaxed);
        }
        Some(Handshake { admission: self, number, displaced })
    }

    pub(super) fn refused_counts(&self) -> RefusedCounts {
        RefusedCounts {
            turned_away: self.turned_away.load(Ordering::Relaxed),
            displaced: self.displaced.load(Ordering::Relaxed),
        }
    }

    /// Returns `room`, and counts a refused client if it is `None`.
    fn counted<T>(&self, room: Option<T>) -> Option<T> {
        self.turned_away.fetch_add(u64::from(room.is_none()), Ordering::Relaxed);
        room
    }

    fn handshakes(&self) -> MutexGuard<'_, Handshakes> {
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handshakes {
    /// Adds a handshake, and returns its number.
    fn begin(&mut self, displaced: Arc<Notify>) -> u64 {
        self.begun += 1;
        self.under_way.push(UnderWay { number: self.begun, is_known: false, displaced });
        self.begun
    }

    /// Drops a random unauthenticated handshake other than the newest. If all older ones are
    /// authenticated, drops the newest.
    fn displace_one(&mut self) {
        let latest = self.under_way.len() - 1;
        let unknown = (0..latest).filter(|&index| !self.under_way[index].is_known);
        let index = unknown.choose(&mut self.coins).unwrap_or(latest);
        self.under_way.swap_remove(index).displaced.notify_one();
    }
}

impl<'a> Handshake<'a> {
    /// Completes when this handshake has been dropped because there were too many.
    pub(super) async fn is_displaced(&self) {
        self.displaced.notified().await;
    }

    /// Notes that the client has shown a certificate of a trusted authority.
    pub(super) fn client_is_known(&self) {
        let mut handshakes = self.admission.handshakes();
        let this =
            handshakes.under_way.iter_mut().find(|handshake| handshake.number == self.number);
        // A handshake that was displaced is no longer in the list.
        if let Some(this) = this {
            this.is_known = true;
        }
    }

    /// Takes a seat for a client that has chosen an export, if one is free.
    pub(super) fn seat(self) -> Option<SemaphorePermit<'a>> {
        self.admission.counted(self.admission.seats.try_acquire().ok())
    }
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.admission.handshakes().under_way.retain(|handshake| handshake.number != number);
    }
}
