//! Derives calls, accesses and evictions from the order of events, as storage can.

use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::{Event, Operation};

use super::rings::Rings;
use super::run::{LEAF_LEVEL, Run, Scheme};
use crate::support::heads::without_heads;

/// One call to storage. Its pieces name buckets of the tree, not places in storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trip {
    pub(crate) operation: Operation,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) bytes: Vec<u64>,
}

impl Trip {
    /// The leaf of the requested path: the index of its deepest bucket.
    pub(crate) fn leaf(&self) -> u64 {
        let deepest = self.pieces.last().expect("a trip has pieces").bucket;
        assert_eq!(deepest.level(), LEAF_LEVEL, "a path ends at a leaf");
        deepest.index()
    }
}

/// The purpose of a read, according to its position in the public schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The read belongs to an access: any access of Path ORAM, or an AO (access-only) access of RAW
    /// ORAM.
    Access,
    /// The read belongs to an EO (eviction-only) access of RAW ORAM.
    Eviction,
}

impl Purpose {
    /// The calls of this purpose that storage sees, and the parts that they move.
    pub(crate) fn calls(self, scheme: Scheme) -> &'static [(Operation, Part)] {
        use Operation::{Read, Write};
        match (scheme, self) {
            (Scheme::Rotating(_), Self::Access) => &[(Read, Part::Whole)],
            (Scheme::Raw(_), Self::Access) => &[(Read, Part::Whole), (Write, Part::Header)],
            _ => &[(Read, Part::Whole), (Write, Part::Whole)],
        }
    }
}

/// All calls of a run, in order. For rotating RAW ORAM, without heads, and with buckets of the tree
/// instead of places in storage.
pub(crate) fn trips(run: &Run) -> Vec<Trip> {
    let mut rings = match run.setup.scheme {
        Scheme::Path | Scheme::Raw(_) => None,
        Scheme::Rotating(_) => Some(Rings::new(run.setup.tree_top_levels)),
    };
    let events = run.view.events();
    let calls = events.chunk_by(|a, b| a.trip == b.trip);
    calls
        .map(|events: &[Event]| {
            let operation = events[0].operation;
            let mut pieces: Vec<Piece> = events.iter().filter_map(|event| event.piece).collect();
            if let Some(rings) = &mut rings {
                pieces = without_heads(TreeId(0), pieces);
                rings.name_buckets(operation, &mut pieces);
            }
            let bytes = events.iter().take(pieces.len()).map(|event| event.bytes).collect();
            Trip { operation, pieces, bytes }
        })
        .collect()
}

/// The purposes of the reads of a run, which are fixed before it begins. A front end may add
/// accesses to the requests.
pub(crate) fn schedule(run: &Run) -> Vec<Purpose> {
    let accesses = 1..=run.accesses.len();
    let purposes = accesses.flat_map(|access| {
        let evicts = match run.setup.scheme {
            Scheme::Path => false,
            Scheme::Raw(evict_period) | Scheme::Rotating(evict_period) => {
                access % evict_period as usize == 0
            }
        };
        std::iter::once(Purpose::Access).chain(evicts.then_some(Purpose::Eviction))
    });
    purposes.collect()
}

/// The leaves of the reads that have the purpose `purpose`.
#[track_caller]
pub(crate) fn leaves(run: &Run, purpose: Purpose) -> Vec<u64> {
    let reads = trips(run).into_iter().filter(|trip| trip.operation == Operation::Read);
    let leaves: Vec<u64> = reads.map(|trip| trip.leaf()).collect();
    let schedule = schedule(run);
    assert_eq!(
        leaves.len(),
        schedule.len(),
        "the view must have the paths of the schedule, {:?}",
        run.setup
    );
    let scheduled = leaves.into_iter().zip(schedule);
    scheduled.filter(|(_, found)| *found == purpose).map(|(leaf, _)| leaf).collect()
}
