//! The measured ORAM: one interface to the ORAM of any row of the table.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::front::{Counters, RhoTally};
use oblivio_core::view::{Event, EventSink, Operation, Recorder};
use oblivio_core::{Access, Error, Front, MemoryStore};

use super::Counts;

/// A store that counts its traffic.
pub(super) type Store = Recorder<MemoryStore, Meter>;

/// The traffic of all stores of one ORAM.
#[derive(Clone, Default)]
pub(super) struct Meter {
    seen: Arc<Mutex<Traffic>>,
    last_trip: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Traffic {
    reads: u64,
    bytes: u64,
}

impl EventSink for Meter {
    fn record(&mut self, event: &Event, _: &[u8]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = self.last_trip.replace(event.trip) != Some(event.trip);
        seen.reads += u64::from(begins && event.operation == Operation::Read);
        seen.bytes += event.bytes;
    }
}

/// An ORAM, the traffic of its stores, and the background evictions that the driver requested.
pub(super) struct Subject {
    pub(super) oram: Box<dyn Front + Send>,
    pub(super) meter: Meter,
    pub(super) requests: u64,
    pub(super) background_evictions: u64,
    pub(super) has_rho: bool,
}

impl Subject {
    pub(super) fn access(&mut self, request: Access<'_>) -> Result<(), Error> {
        self.oram.access(&mut [request])
    }

    /// Makes one background eviction, to free space in the stash. With ρ, makes a round of dummies
    /// instead, which does not count as a background eviction.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.background_evictions += u64::from(!self.has_rho);
        self.oram.evict()
    }

    /// The counts of the ORAM and of its stores since the beginning.
    pub(super) fn counts(&self) -> Counts {
        let Traffic { reads, bytes } =
            *self.meter.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Counters { front, aes_blocks, rho, .. } = self.oram.counters();
        let RhoTally { small_accesses, small_dummies, main_dummies, .. } = rho.unwrap_or_default();
        let mut counts = Counts {
            requests: self.requests,
            data: front.data_accesses,
            position_map: front.position_map_accesses,
            remap: front.remap_accesses,
            small: small_accesses,
            dummies: small_dummies + main_dummies,
            background_evictions: self.background_evictions,
            aes_blocks,
            bytes,
            ..Counts::default()
        };
        counts.due_evictions = reads - counts.known_paths();
        counts
    }
}
