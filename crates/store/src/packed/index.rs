//! The index: in which slot each bucket lies.
//!
//! A *column* is a level of a tree. Evictions write the places of a column in order, and slots of a
//! stream are numbered in the order of writes, so a column is described by few runs: places and
//! slots that both go up by one.

use std::collections::BTreeMap;
use std::ops::Range;

use foldhash::{HashMap, HashMapExt as _};

/// Maximum number of runs. A column that is written in order has one run for each session that
/// wrote it and one for the wrap of its ring.
pub(super) const RUNS_MAX: usize = 1 << 20;

/// A place for one entry of a stream. Slot `n` is in chunk `n / slots_per_chunk` of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) session: u64,
    pub(super) stream: u16,
    pub(super) number: u64,
}

/// Consecutive places of a column in consecutive slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) places: u64,
    pub(super) first: Slot,
}

/// The slot of every bucket that was written.
#[derive(Default)]
pub(super) struct Index {
    /// The runs of each column, by their first place.
    by_place: Vec<BTreeMap<u64, Run>>,
    /// The first place of each run, by its first slot. A fast hash suffices: storage that chooses
    /// the keys of a forged head slows down only its own client.
    by_slot: HashMap<(u64, u16, usize), BTreeMap<u64, u64>>,
    runs: usize,
}

impl Index {
    pub(super) fn new(columns: usize) -> Self {
        Self { by_place: vec![BTreeMap::new(); columns], by_slot: HashMap::new(), runs: 0 }
    }

    pub(super) fn run_count(&self) -> usize {
        self.runs
    }

    /// The runs of a column, by their first place.
    pub(super) fn runs(&self, column: usize) -> impl ExactSizeIterator<Item = (u64, Run)> + '_ {
        self.by_place[column].iter().map(|(first, run)| (*first, *run))
    }

    /// The slot of a bucket; `None` if it was never written.
    pub(super) fn get(&self, column: usize, place: u64) -> Option<Slot> {
        let (first, run) = self.run_of(column, place)?;
        Some(Slot { number: run.first.number + (place - first), ..run.first })
    }

    /// Records that a bucket lies in slot `to`. Returns its previous slot.
    pub(super) fn set(&mut self, column: usize, place: u64, to: Slot) -> Option<Slot> {
        let displaced = self.remove(column, place);
        let before = self.by_place[column].range_mut(..place).next_back();
        if let Some((first, run)) = before
            && first + run.places == place
            && (Slot { number: run.first.number + run.places, ..run.first }) == to
        {
            run.places += 1;
        } else {
            self.insert(column, place, Run { places: 1, first: to });
        }
        displaced
    }

    /// Adds a run whose places are in no other run.
    pub(super) fn insert(&mut self, column: usize, first: u64, run: Run) {
        let Slot { session, stream, number } = run.first;
        self.by_place[column].insert(first, run);
        self.by_slot.entry((session, stream, column)).or_default().insert(number, first);
        self.runs += 1;
    }

    /// Whether a bucket of one of `columns` lies in one of the slots `numbers` of a stream.
    pub(super) fn is_live(
        &self,
        session: u64,
        stream: u16,
        columns: &[usize],
        numbers: Range<u64>,
    ) -> bool {
        columns.iter().any(|column| {
            let Some(starts) = self.by_slot.get(&(session, stream, *column)) else { return false };
            let Some((start, first)) = starts.range(..numbers.end).next_back() else {
                return false;
            };
            let run = self.by_place[*column].get(first);
            run.is_some_and(|run| start + run.places > numbers.start)
        })
    }

    /// The buckets of one column that lie in the slots `numbers` of a stream, each with its slot.
    pub(super) fn buckets_in(
        &self,
        session: u64,
        stream: u16,
        column: usize,
        numbers: Range<u64>,
    ) -> Vec<(u64, u64)> {
        let Some(starts) = self.by_slot.get(&(session, stream, column)) else { return Vec::new() };
        let from = starts.range(..=numbers.start).next_back().map_or(numbers.start, |(at, _)| *at);
        let mut found = Vec::new();
        for (start, first) in starts.range(from..numbers.end) {
            let Some(run) = self.by_place[column].get(first) else { continue };
            let end = start.saturating_add(run.places).min(numbers.end);
            let within = (*start).max(numbers.start)..end;
            found.extend(within.map(|number| (first + (number - start), number)));
        }
        found
    }

    fn run_of(&self, column: usize, place: u64) -> Option<(u64, Run)> {
        let (first, run) = self.by_place[column].range(..=place).next_back()?;
        (place - first < run.places).then_some((*first, *run))
    }

    fn remove(&mut self, column: usize, place: u64) -> Option<Slot> {
        let (first, run) = self.run_of(column, place)?;
        let Slot { session, stream, number } = run.first;
        self.by_place[column].remove(&first);
        let starts = self.by_slot.get_mut(&(session, stream, column));
        if let Some(starts) = starts {
            starts.remove(&number);
            if starts.is_empty() {
                self.by_slot.remove(&(session, stream, column));
            }
        }
        self.runs -= 1;
        let before = place - first;
        if before > 0 {
            self.insert(column, first, Run { places: before, first: run.first });
        }
        let behind = run.places - before - 1;
        if behind > 0 {
            let first = Slot { number: number + before + 1, ..run.first };
            self.insert(column, place + 1, Run { places: behind, first });
        }
        Some(Slot { number: number + before, ..run.first })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn slot(number: u64) -> Slot {
        Slot { session: 1, stream: 0, number }
    }

    #[test]
    fn a_ring_written_in_order_has_two_runs() {
        let mut index = Index::new(1);
        for number in 0..1000 {
            let place = number % 12;
            let displaced = index.set(0, place, slot(number));
            assert_eq!(displaced, number.checked_sub(12).map(slot));
            assert_eq!(index.get(0, place), Some(slot(number)));
            assert!(index.run_count() <= 2, "{:?}", index.by_place);
        }
        assert!(!index.is_live(1, 0, &[0], 0..988));
        assert!(index.is_live(1, 0, &[0], 0..989));
        assert!(index.is_live(1, 0, &[0], 999..1005));
        assert!(!index.is_live(1, 0, &[0], 1000..1005));
        assert!(!index.is_live(2, 0, &[0], 0..1005));
        assert_eq!(index.buckets_in(1, 0, 0, 0..990), [(4, 988), (5, 989)]);
    }

    proptest! {
        /// Compares the index with a table of the slot of each bucket.
        #[test]
        fn any_writes_agree_with_a_table(
            writes in prop::collection::vec((0usize..2, 0u64..20, 0u16..2, 0u64..4), 1..200)
        ) {
            let mut index = Index::new(2);
            let mut table = HashMap::new();
            let mut next = [0, 0];
            for (column, place, stream, skipped) in writes {
                next[usize::from(stream)] += 1 + skipped / 3;
                let to = Slot { session: 1, stream, number: next[usize::from(stream)] };
                prop_assert_eq!(index.set(column, place, to), table.insert((column, place), to));
                for (&(column, place), slot) in &table {
                    prop_assert_eq!(index.get(column, place), Some(*slot));
                }
                let counted: u64 = (0..2)
                    .flat_map(|column| index.runs(column).map(|(_, run)| run.places))
                    .sum();
                prop_assert_eq!(counted, table.len() as u64);
                for numbers in [0..3, 2..9, 40..80] {
                    let within = |(&(column, place), slot): (&(usize, u64), &Slot)| {
                        (column == 0 && slot.stream == 0 && numbers.contains(&slot.number))
                            .then_some((place, slot.number))
                    };
                    let mut live: Vec<_> = table.iter().filter_map(within).collect();
                    live.sort_unstable_by_key(|(_, number)| *number);
                    let is_live = index.is_live(1, 0, &[0], numbers.clone());
                    prop_assert_eq!(is_live, !live.is_empty());
                    prop_assert_eq!(index.buckets_in(1, 0, 0, numbers.clone()), live);
                }
            }
        }
    }
}
