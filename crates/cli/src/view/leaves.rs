//! Which leaves accesses went to, and whether as chance has it.
//!
//! Where evictions come in their order, the bucket on the path to a leaf may lie in another place after each of them, so places
//! are not uniform, and leaves are. From the places that evictions write, storage knows how many there were, but for a
//! constant; so it knows each leaf but for a constant, which does not change whether leaves are uniform.

use oblivio_core::store::Part;
use oblivio_core::view::{Event, Operation};

use super::uniformity::BINS_MAX;

/// A bucket on the level of the leaves that storage saw being used.
#[derive(Clone, Copy)]
pub(crate) struct Visit {
    /// How many accesses came before.
    pub(crate) access: u64,
    /// Which bucket of its level, as storage counts them.
    pub(crate) bucket: u64,
    /// Written by an eviction, rather than read by an access.
    pub(crate) is_eviction: bool,
}

/// How the buckets of the deepest level of a tree belong to leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafMap {
    deepest: u8,
    leaves: u64,
    /// Places of the deepest level, where evictions write to one after the other.
    ring: Option<u64>,
    /// Whether a path that is read and then written belongs to an eviction.
    evicts: bool,
}

impl LeafMap {
    /// Each access reads a path, and writes it back.
    pub(super) fn of_paths(deepest: u8) -> Self {
        Self { deepest, leaves: 1 << deepest, ring: None, evicts: false }
    }

    /// Evictions write to one bucket after the other, up to `index_max`. If no bucket is beyond the places that a rotating
    /// tree has, it is one: level `j` of it lies on level `j + 1`, with as many places more as the first level has buckets.
    pub(super) fn of_evictions(top: u8, deepest: u8, index_max: u64) -> Self {
        let places = top.checked_sub(1).map(|first| (1 << (deepest - 1)) + (1 << first));
        match places.filter(|places| index_max < *places) {
            Some(places) => {
                Self { deepest, leaves: 1 << (deepest - 1), ring: Some(places), evicts: true }
            }
            None => Self { deepest, leaves: 1 << deepest, ring: None, evicts: true },
        }
    }
}

/// The accesses to a tree.
pub(super) struct LeafCounts {
    map: LeafMap,
    /// Of each run of leaves, how many accesses went there.
    bins: Vec<u64>,
    accesses: u64,
    evictions: u64,
    /// Accesses before the first eviction, and to places that hold nothing of today: their leaves are not known.
    unknown: u64,
    /// The place that was written last, and how many evictions there were since the first that was seen.
    written: Option<u64>,
    turn: u64,
    /// A path that was read. Whether by an access or by an eviction, the next write or read tells.
    pending: Option<Reading>,
    last_trip: Option<u64>,
}

#[derive(Clone, Copy)]
struct Reading {
    bucket: u64,
    leaf: Option<u64>,
}

impl LeafCounts {
    pub(super) fn new(map: LeafMap) -> Self {
        let bins = vec![0; map.leaves.min(BINS_MAX) as usize];
        Self {
            map,
            bins,
            accesses: 0,
            evictions: 0,
            unknown: 0,
            written: None,
            turn: 0,
            pending: None,
            last_trip: None,
        }
    }

    /// The next event of the tree. `visit` is told of what is seen of accesses and evictions.
    pub(super) fn record(&mut self, event: &Event, visit: &mut dyn FnMut(Visit)) {
        let Some(piece) = event.piece else { return };
        // A slot is read after the header of its bucket, which was counted.
        if piece.bucket.level() != self.map.deepest || matches!(piece.part, Part::Slot(_)) {
            return;
        }
        let bucket = piece.bucket.index();
        match event.operation {
            // Neighbouring buckets that are read together are a range, and the first of them is at the leaf that was drawn.
            Operation::Read if self.last_trip.replace(event.trip) != Some(event.trip) => {
                self.end_access(visit);
                self.pending = Some(Reading { bucket, leaf: self.leaf(bucket) });
            }
            Operation::Write if self.map.evicts => {
                self.pending = None;
                self.evictions += 1;
                self.write(bucket);
                visit(Visit { access: self.accesses, bucket, is_eviction: true });
            }
            _ => (),
        }
    }

    /// The view has ended.
    pub(super) fn end_access(&mut self, visit: &mut dyn FnMut(Visit)) {
        let Some(Reading { bucket, leaf }) = self.pending.take() else { return };
        visit(Visit { access: self.accesses, bucket, is_eviction: false });
        self.accesses += 1;
        match leaf {
            Some(leaf) => {
                let bins = self.bins.len() as u64;
                self.bins[(leaf / (self.map.leaves / bins)) as usize] += 1;
            }
            None => self.unknown += 1,
        }
    }

    fn write(&mut self, place: u64) {
        if let (Some(ring), Some(before)) = (self.map.ring, self.written) {
            let ahead = (place % ring + ring - before % ring) % ring;
            // A recovery writes the latest again.
            let is_ahead = ahead <= ring / 2;
            self.turn = if is_ahead {
                self.turn.wrapping_add(ahead)
            } else {
                self.turn.wrapping_sub(ring - ahead)
            };
        }
        self.written = Some(place);
    }

    /// The leaf of a bucket, but for a constant.
    fn leaf(&self, bucket: u64) -> Option<u64> {
        let Some(ring) = self.map.ring else { return Some(bucket) };
        let since = (self.written? % ring + ring - bucket % ring) % ring;
        (since < self.map.leaves).then(|| self.turn.wrapping_sub(since) & (self.map.leaves - 1))
    }

    /// How many leaves there are.
    pub(super) fn leaves(&self) -> u64 {
        self.map.leaves
    }

    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Evictions, where they come in their order.
    pub(super) fn evictions(&self) -> Option<u64> {
        self.map.evicts.then_some(self.evictions)
    }

    /// Accesses whose leaves are not known.
    pub(super) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Whether nothing tells its counts from those of another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.map == other.map
            && self.bins == other.bins
            && [self.accesses, self.evictions, self.unknown]
                == [other.accesses, other.evictions, other.unknown]
    }

    /// How many accesses went to each of some runs of leaves of one length.
    pub(super) fn bins(&self) -> &[u64] {
        &self.bins
    }
}

#[cfg(test)]
mod tests;
