//! Counts how often accesses used each leaf, to test whether leaves are uniform.
//!
//! If evictions write buckets in turn, the bucket at the end of a path moves to another place with
//! each eviction of that path. So the places that accesses read are not uniform, although the
//! leaves are. Storage sees the places that evictions write, so it can compute each leaf up to a
//! constant shift. A constant shift does not change whether leaves are uniform.

use oblivio_core::store::Part;
use oblivio_core::view::{Event, Operation};

use super::uniformity::BINS_MAX;

/// A use of a bucket on the level of the leaves, as storage sees it.
#[derive(Clone, Copy)]
pub(crate) struct BucketVisit {
    /// Number of previous accesses.
    pub(crate) access: u64,
    /// Index of the bucket on its level, in storage's numbering.
    pub(crate) bucket: u64,
    /// Whether an eviction wrote the bucket; otherwise an access read it.
    pub(crate) is_eviction: bool,
}

/// The rule by which a bucket of the deepest level of a tree determines the leaf of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafMap {
    deepest: u8,
    leaves: u64,
    /// Number of places of the deepest level, if evictions write them in turn.
    ring: Option<u64>,
    /// Whether a path that is read and then written belongs to an eviction.
    evicts: bool,
}

impl LeafMap {
    /// The map of a tree whose accesses read a path and write it back.
    pub(super) fn of_paths(deepest: u8) -> Self {
        Self { deepest, leaves: 1 << deepest, ring: None, evicts: false }
    }

    /// The map of a tree whose evictions write buckets in turn. `top` is the first level in
    /// storage, and `index_max` is the highest index used on the level `deepest`. The tree counts
    /// as a rotating tree if `index_max` is possible in one. Level `j` of a rotating tree is stored
    /// on level `j + 1`, with `2^first` additional places, where `first` is its first level in
    /// storage.
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

/// Counts the accesses to a tree.
pub(super) struct LeafCounts {
    map: LeafMap,
    /// Number of accesses to each run of leaves.
    bins: Vec<u64>,
    accesses: u64,
    evictions: u64,
    /// Number of accesses with unknown leaves: before the first eviction, or to places that hold no
    /// current bucket.
    unknown: u64,
    /// The place written last. `None` before the first eviction.
    written: Option<u64>,
    /// Number of evictions since the first observed one, modulo 2^64.
    turn: u64,
    /// A path that was read. The next write or read shows whether an eviction or an access read it.
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

    /// Counts the next event of the tree. Passes the visible accesses and evictions to `visit`.
    pub(super) fn record(&mut self, event: &Event, visit: &mut dyn FnMut(BucketVisit)) {
        let Some(piece) = event.piece else { return };
        // A slot is read after the header of its bucket, which was already counted.
        if piece.bucket.level() != self.map.deepest || matches!(piece.part, Part::Slot(_)) {
            return;
        }
        let bucket = piece.bucket.index();
        match event.operation {
            // Neighbouring buckets read together are a range. The first is at the leaf that was
            // drawn.
            Operation::Read if self.last_trip.replace(event.trip) != Some(event.trip) => {
                self.end_access(visit);
                self.pending = Some(Reading { bucket, leaf: self.leaf(bucket) });
            }
            Operation::Write if self.map.evicts => {
                self.pending = None;
                self.evictions += 1;
                self.write(bucket);
                visit(BucketVisit { access: self.accesses, bucket, is_eviction: true });
            }
            _ => (),
        }
    }

    /// Counts the pending path read as an access, because no write has followed it.
    pub(super) fn end_access(&mut self, visit: &mut dyn FnMut(BucketVisit)) {
        let Some(Reading { bucket, leaf }) = self.pending.take() else { return };
        visit(BucketVisit { access: self.accesses, bucket, is_eviction: false });
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
            // A recovery writes the latest eviction again.
            let is_ahead = ahead <= ring / 2;
            self.turn = if is_ahead {
                self.turn.wrapping_add(ahead)
            } else {
                self.turn.wrapping_sub(ring - ahead)
            };
        }
        self.written = Some(place);
    }

    /// The leaf of a bucket, up to a constant shift. `None` before the first eviction, or if the
    /// place holds no current bucket.
    fn leaf(&self, bucket: u64) -> Option<u64> {
        let Some(ring) = self.map.ring else { return Some(bucket) };
        let since = (self.written? % ring + ring - bucket % ring) % ring;
        (since < self.map.leaves).then(|| self.turn.wrapping_sub(since) & (self.map.leaves - 1))
    }

    /// Number of leaves of the tree.
    pub(super) fn leaves(&self) -> u64 {
        self.map.leaves
    }

    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Number of evictions, if they write buckets in turn.
    pub(super) fn evictions(&self) -> Option<u64> {
        self.map.evicts.then_some(self.evictions)
    }

    /// Number of accesses with unknown leaves.
    pub(super) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Whether all counts of this tree equal those of `other`.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.map == other.map
            && self.bins == other.bins
            && [self.accesses, self.evictions, self.unknown]
                == [other.accesses, other.evictions, other.unknown]
    }

    /// Number of accesses to each of several equally long runs of leaves.
    pub(super) fn bins(&self) -> &[u64] {
        &self.bins
    }
}

#[cfg(test)]
mod tests;
