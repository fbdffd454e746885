//! Recognizes trips that read streams in order, so that gets can be read ahead.
//!
//! An eviction of RAW ORAM reads, on each level, the slot behind the one that the eviction before
//! it has read. If the position map is in the tree, an eviction of a large volume also reads
//! several consecutive slots with marks. Paths of accesses are read in between, at random slots. A
//! trip is part of a *run* if an earlier trip read the slots before its own in each of its streams.
//! Only slots decide, which are public.

use std::collections::VecDeque;

use super::index::Slot;

/// The number of trips that a trip is compared with. Up to 64 accesses are announced at once.
const TRIPS_MAX: usize = 80;

/// The number of trips of a run before the store reads ahead.
const RUN_MIN: usize = 3;

/// The latest trips.
#[derive(Default)]
pub(super) struct Runs {
    trips: VecDeque<Trip>,
}

struct Trip {
    /// The first and the last slot of each stream, in order.
    slots: Vec<(Slot, Slot)>,
    /// The number of trips in the run that ends here.
    length: usize,
}

impl Runs {
    /// Adds a trip to `slots`. Returns whether the slots behind the last one of each stream will
    /// probably be read soon.
    pub(super) fn add(&mut self, slots: Vec<Slot>) -> bool {
        let slots = ends_of_streams(slots);
        let follows = |trip: &Trip| {
            trip.slots.len() == slots.len()
                && trip.slots.iter().zip(&slots).all(|((_, before), (slot, _))| {
                    Slot { number: before.number.wrapping_add(1), ..*before } == *slot
                })
        };
        let before = self.trips.iter().rposition(follows);
        // A run goes on from its latest trip only.
        let before = before.and_then(|at| self.trips.remove(at));
        let length = before.map_or(1, |trip| trip.length + 1);
        self.trips.push_back(Trip { slots, length });
        if self.trips.len() > TRIPS_MAX {
            self.trips.pop_front();
        }
        length >= RUN_MIN
    }
}

/// The first and the last of `slots` in each stream, in order.
pub(super) fn ends_of_streams(mut slots: Vec<Slot>) -> Vec<(Slot, Slot)> {
    slots.sort_unstable_by_key(|slot| (slot.session, slot.stream, slot.number));
    let streams =
        slots.chunk_by(|one, other| (one.session, one.stream) == (other.session, other.stream));
    streams.filter_map(|slots| Some((*slots.first()?, *slots.last()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(numbers: [u64; 2]) -> Vec<Slot> {
        (0..).zip(numbers).map(|(stream, number)| Slot { session: 1, stream, number }).collect()
    }

    #[test]
    fn evictions_are_recognized_between_paths() {
        let mut runs = Runs::default();
        let mut is_ahead = Vec::new();
        for eviction in 0..6 {
            for path in 0..5 {
                let random = 1000 + 17 * (eviction * 5 + path);
                assert!(!runs.add(trip([random, random * 3])), "a path");
            }
            is_ahead.push(runs.add(trip([10 + eviction, 7 + eviction])));
        }
        assert_eq!(is_ahead, [false, false, true, true, true, true]);
        // One stream jumps, as at the end of its ring.
        assert!(!runs.add(trip([16, 0])) && !runs.add(trip([17, 1])) && runs.add(trip([18, 2])));
    }

    /// An eviction of a volume of 1 TiB reads two pages of marks, beside one slot of each level.
    #[test]
    fn several_slots_of_a_stream_are_one_step_of_a_run() {
        let mut runs = Runs::default();
        let mut step = |number: u64| {
            let mut slots = trip([7 + number, 2 * number]);
            slots.push(Slot { number: 2 * number + 1, ..slots[1] });
            runs.add(slots)
        };
        assert_eq!([0, 1, 2, 3].map(&mut step), [false, false, true, true]);
        // A step is left out.
        assert!(!step(5));
    }

    #[test]
    fn old_trips_are_forgotten() {
        let mut runs = Runs::default();
        runs.add(trip([1, 1]));
        runs.add(trip([2, 2]));
        for path in 0..TRIPS_MAX as u64 {
            runs.add(trip([100 + 2 * path, 7 * path]));
        }
        assert!(!runs.add(trip([3, 3])));
        assert_eq!(runs.trips.len(), TRIPS_MAX);
    }
}
