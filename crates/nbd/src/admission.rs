//! Who is let in: strangers who have not chosen an export yet, and clients who have.
//!
//! They are counted apart, so that strangers who only connect cannot keep out the owner. When there are too
//! many of them, one makes room for the one who came last. Chance says who: if it were the first or the last,
//! a flood could aim at the owner's handshake. Who has shown a certificate makes room for nobody who has not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::SeedableRng;
use rand::rngs::{StdRng, SysError, SysRng};
use rand::seq::IteratorRandom;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

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

/// Those under way, the latest of them last until another one is removed.
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

/// A handshake under way, until it is dropped.
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

    /// Begins a handshake, and ends another one if there is one too many. None if it would be in vain, as no
    /// seat is free; it takes none.
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

    pub(super) fn not_let_in(&self) -> NotLetIn {
        NotLetIn {
            turned_away: self.turned_away.load(Ordering::Relaxed),
            displaced: self.displaced.load(Ordering::Relaxed),
        }
    }

    /// What a client gets; who gets nothing is counted.
    fn counted<T>(&self, room: Option<T>) -> Option<T> {
        self.turned_away.fetch_add(u64::from(room.is_none()), Ordering::Relaxed);
        room
    }

    fn handshakes(&self) -> MutexGuard<'_, Handshakes> {
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handshakes {
    /// The number of the new one.
    fn begin(&mut self, displaced: Arc<Notify>) -> u64 {
        self.begun += 1;
        self.under_way.push(UnderWay { number: self.begun, is_known: false, displaced });
        self.begun
    }

    /// Ends one of those who are not known: the latest only if there is no other.
    fn displace_one(&mut self) {
        let latest = self.under_way.len() - 1;
        let unknown = (0..latest).filter(|&place| !self.under_way[place].is_known);
        let place = unknown.choose(&mut self.coins).unwrap_or(latest);
        self.under_way.swap_remove(place).displaced.notify_one();
    }
}

impl<'a> Handshake<'a> {
    /// Returns when it has to end, because others came after it.
    pub(super) async fn is_displaced(&self) {
        self.displaced.notified().await;
    }

    /// The client has shown a certificate of somebody who vouches for it.
    pub(super) fn client_is_known(&self) {
        let mut handshakes = self.admission.handshakes();
        let this =
            handshakes.under_way.iter_mut().find(|handshake| handshake.number == self.number);
        // One that was displaced meanwhile is about to end.
        if let Some(this) = this {
            this.is_known = true;
        }
    }

    /// The client has chosen an export: a seat for it, if one is free.
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
