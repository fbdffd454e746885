//! What is measured: any ORAM of the table behind one interface.

use std::cell::Cell;
use std::rc::Rc;

use oblivio_core::front::FrontendTally;
use oblivio_core::front::rho::FreecursiveRho;
use oblivio_core::scheme::Scheme;
use oblivio_core::view::{Event, EventSink, Operation, Recorder};
use oblivio_core::{
    Access, BackedOram, CachedOram, Error, FlatOram, FreecursiveOram, MemoryStore, Oram, TakingOram,
};
use rand::rngs::StdRng;

use super::Counts;

/// Storage that counts what it sees.
pub(super) type Store = Recorder<MemoryStore, Meter>;

/// What storages of one subject saw together.
#[derive(Clone, Default)]
pub(super) struct Meter {
    seen: Rc<Cell<Seen>>,
    last_trip: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    reads: u64,
    bytes: u64,
}

impl EventSink for Meter {
    fn record(&mut self, event: &Event, _: &[u8]) {
        let mut seen = self.seen.get();
        let begins = self.last_trip.replace(event.trip) != Some(event.trip);
        seen.reads += u64::from(begins && event.operation == Operation::Read);
        seen.bytes += event.bytes;
        self.seen.set(seen);
    }
}

/// An ORAM, what its storage saw, and how many background evictions it was made to do.
pub(super) struct Subject {
    pub(super) oram: Box<dyn Measured>,
    pub(super) meter: Meter,
    pub(super) requests: u64,
    pub(super) background_evictions: u64,
}

impl Subject {
    /// Everything so far.
    pub(super) fn counts(&self) -> Counts {
        let Seen { reads, bytes } = self.meter.seen.get();
        let mut counts = self.oram.counts();
        counts.requests = self.requests;
        counts.background_evictions = self.background_evictions;
        counts.bytes = bytes;
        counts.due_evictions = reads - counts.known_paths();
        counts
    }
}

/// An ORAM that tells what it did.
pub(super) trait Measured {
    fn access(&mut self, request: Access<'_>) -> Result<(), Error>;

    /// Shrinks the stash, and answers how many background evictions that was.
    fn make_room(&mut self) -> Result<u64, Error>;

    /// All but what storage and its driver count.
    fn counts(&self) -> Counts;

    fn stash_blocks(&self) -> usize;

    fn check_invariants(&mut self) -> Result<(), Error>;
}

/// What a frontend did.
pub(super) trait Tallied: BackedOram {
    fn frontend_tally(&self) -> FrontendTally;
}

impl<B: Scheme> Tallied for FlatOram<B, StdRng> {
    fn frontend_tally(&self) -> FrontendTally {
        self.tally()
    }
}

impl<B: Scheme> Tallied for FreecursiveOram<B, StdRng> {
    fn frontend_tally(&self) -> FrontendTally {
        self.tally()
    }
}

fn counts_of(oram: &impl Tallied) -> Counts {
    let tally = oram.frontend_tally();
    Counts {
        data: tally.data_accesses,
        position_map: tally.position_map_accesses,
        remap: tally.remap_accesses,
        aes_blocks: oram.scheme().aes_blocks(),
        ..Counts::default()
    }
}

impl<O: Tallied> Measured for O {
    fn access(&mut self, request: Access<'_>) -> Result<(), Error> {
        Oram::access(self, &mut [request])
    }

    fn make_room(&mut self) -> Result<u64, Error> {
        self.evict().map(|()| 1)
    }

    fn counts(&self) -> Counts {
        counts_of(self)
    }

    fn stash_blocks(&self) -> usize {
        self.scheme().stash().blocks()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        TakingOram::check_invariants(self)
    }
}

/// An ORAM behind an LLC.
pub(super) struct UnderCache<O>(pub(super) CachedOram<O>);

impl<O: Tallied> Measured for UnderCache<O> {
    fn access(&mut self, request: Access<'_>) -> Result<(), Error> {
        self.0.access(&mut [request])
    }

    fn make_room(&mut self) -> Result<u64, Error> {
        self.0.evict().map(|()| 1)
    }

    fn counts(&self) -> Counts {
        counts_of(self.0.oram())
    }

    fn stash_blocks(&self) -> usize {
        self.0.oram().scheme().stash().blocks()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        self.0.check_invariants()
    }
}

/// ρ behind an LLC. Making room takes a round of dummies, which are no background evictions.
pub(super) struct RhoUnderCache(pub(super) CachedOram<FreecursiveRho<Store, StdRng>>);

impl Measured for RhoUnderCache {
    fn access(&mut self, request: Access<'_>) -> Result<(), Error> {
        self.0.access(&mut [request])
    }

    fn make_room(&mut self) -> Result<u64, Error> {
        self.0.oram_mut().idle_round().map(|()| 0)
    }

    fn counts(&self) -> Counts {
        let tally = self.0.oram().tally();
        Counts {
            small: tally.small_accesses,
            dummies: tally.small_dummies + tally.main_dummies,
            ..counts_of(self.0.oram().main())
        }
    }

    fn stash_blocks(&self) -> usize {
        self.0.oram().stashes().iter().map(|stash| stash.blocks()).sum()
    }

    fn check_invariants(&mut self) -> Result<(), Error> {
        self.0.oram_mut().check_invariants()
    }
}
