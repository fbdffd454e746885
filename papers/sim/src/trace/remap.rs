//! Moving a trace into a small memory.
//!
//! A program's addresses are spread over 47 bits. An operating system gives it a page of memory for
//! each of its own that it touches, and that is done here: pages keep their lines together, and a
//! footprint that fits the memory fits, wherever its addresses were.

use std::collections::{HashMap, HashSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{PAGE_BYTES, PAGE_LINES, Record, Trace};
use crate::SimError;

/// Which page of memory a page gets when it is touched first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placing {
    /// The next.
    InOrder,
    /// Any of those that are free, as coins of this seed fall.
    Random {
        /// Where the coins come from.
        seed: u64,
    },
    /// That of its own number, counted round the memory, or the next that is free. So distances within an array stay as they are.
    AsItIs,
}

impl Trace {
    /// The trace with its pages of [`PAGE_BYTES`] moved into a memory of `lines` lines. Lines that make
    /// no whole page are left out.
    ///
    /// # Errors
    /// [`SimError::Spec`] when the trace touches more pages than the memory has.
    pub fn remap(&self, lines: u64, placing: Placing) -> Result<Self, SimError> {
        let mut memory = Memory::new(lines / PAGE_LINES, placing);
        let mut given: HashMap<u64, u64> = HashMap::new();
        let moved = self.records.iter().map(|record| {
            let (page, within) = (record.line / PAGE_LINES, record.line % PAGE_LINES);
            let page = match given.get(&page) {
                Some(page) => *page,
                None => *given.entry(page).or_insert(memory.give(page)?),
            };
            Some(Record { line: page * PAGE_LINES + within, ..*record })
        });
        let records = moved.collect::<Option<Vec<_>>>().ok_or_else(|| self.too_large(lines))?;
        Ok(Self { name: self.name.clone(), records })
    }

    fn too_large(&self, lines: u64) -> SimError {
        let pages = super::TraceStats::of(self).pages;
        SimError::Spec(format!(
            "{} touches {pages} pages of {PAGE_BYTES} bytes, and {lines} lines have {}: give it {} \
             lines or more",
            self.name,
            lines / PAGE_LINES,
            pages * PAGE_LINES
        ))
    }
}

/// The pages of a memory, which are given away one by one.
struct Memory {
    pages: u64,
    given: u64,
    free: Free,
}

/// Which pages of a memory are free.
enum Free {
    /// All from here on.
    Later,
    /// They are shuffled as they are given away (Fisher and Yates), so that it costs nothing to have many: which page is at a place, if it is not the one with
    /// that number.
    Shuffled { coins: Box<StdRng>, moved: HashMap<u64, u64> },
    /// All but these.
    Others(HashSet<u64>),
}

impl Memory {
    fn new(pages: u64, placing: Placing) -> Self {
        let free = match placing {
            Placing::InOrder => Free::Later,
            Placing::Random { seed } => {
                let coins = Box::new(StdRng::seed_from_u64(seed));
                Free::Shuffled { coins, moved: HashMap::new() }
            }
            Placing::AsItIs => Free::Others(HashSet::new()),
        };
        Self { pages, given: 0, free }
    }

    /// The page for a page of the program; none if all are taken.
    fn give(&mut self, wanted: u64) -> Option<u64> {
        let (pages, next) = (self.pages, self.given);
        if next >= pages {
            return None;
        }
        self.given += 1;
        match &mut self.free {
            Free::Later => Some(next),
            Free::Shuffled { coins, moved } => {
                let place = coins.random_range(next..pages);
                let first = moved.remove(&next).unwrap_or(next);
                if place == next {
                    return Some(first);
                }
                Some(moved.insert(place, first).unwrap_or(place))
            }
            Free::Others(taken) => {
                let mut places = (0..pages).map(|more| (wanted % pages + more) % pages);
                places.find(|place| taken.insert(*place))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::tests::{any_trace, record};
    use crate::trace::{Kind, TraceStats};

    const PLACINGS: [Placing; 3] = [Placing::InOrder, Placing::Random { seed: 1 }, Placing::AsItIs];

    fn touching(pages: impl IntoIterator<Item = u64>) -> Trace {
        let lines = pages.into_iter().map(|page| page * PAGE_LINES);
        Trace::new("a", lines.map(|line| record(0, Kind::Read, line)).collect()).unwrap()
    }

    fn pages(trace: &Trace) -> Vec<u64> {
        trace.records().iter().map(|record| record.line / PAGE_LINES).collect()
    }

    #[test]
    fn pages_stay_where_they_are_as_far_as_there_is_room() {
        let trace = touching([5, 6, 8 + 5, 16 + 5, 7, 5]);
        let moved = trace.remap(8 * PAGE_LINES, Placing::AsItIs).unwrap();
        assert_eq!(pages(&moved), [5, 6, 7, 0, 1, 5]);
    }

    #[test]
    fn the_first_page_touched_is_the_first() {
        let trace = touching([1 << 40, 7, 1 << 40, 1 << 50, 7]);
        let moved = trace.remap(3 * PAGE_LINES, Placing::InOrder).unwrap();
        assert_eq!(pages(&moved), [0, 1, 0, 2, 1]);
    }

    #[test]
    fn a_random_page_is_any_and_none_is_given_twice() {
        let trace = touching((0..50).map(|page| page << 30));
        let random = |seed, pages: u64| {
            trace
                .remap(pages * PAGE_LINES + 5, Placing::Random { seed })
                .map(|moved| self::pages(&moved))
        };
        let full = random(1, 50).unwrap();
        assert_eq!(full.iter().collect::<HashSet<_>>().len(), 50);
        assert!(full.iter().all(|page| *page < 50) && !full.is_sorted());
        assert_eq!(full, random(1, 50).unwrap());
        assert_ne!(full, random(2, 50).unwrap());
        assert!(random(1, 1 << 50).unwrap().iter().any(|page| *page > 1 << 48));
        // The last page to be touched gets each as often as any other.
        let lasts = (0..5000).map(|seed| random(seed, 50).unwrap()[49]).collect::<Vec<_>>();
        let counts = (0..50).map(|page| lasts.iter().filter(|last| **last == page).count());
        assert!(
            counts.clone().all(|count| (50..160).contains(&count)),
            "{:?}",
            counts.collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_memory_too_small_is_refused_with_what_is_needed() {
        for placing in PLACINGS {
            let error =
                touching(0..50).remap(50 * PAGE_LINES - 1, placing).unwrap_err().to_string();
            assert!(
                error.contains("touches 50 pages") && error.contains("have 49: give it 3200"),
                "{error}"
            );
            assert!(touching(0..1).remap(0, placing).is_err());
        }
    }

    proptest! {
        #[test]
        fn all_but_the_place_of_pages_stays(trace in any_trace()) {
            let stats = TraceStats::of(&trace);
            for placing in PLACINGS {
                let lines = stats.pages * PAGE_LINES;
                let moved = trace.remap(lines, placing).unwrap();
                prop_assert_eq!(&TraceStats::of(&moved), &stats);
                for (old, new) in trace.records().iter().zip(moved.records()) {
                    prop_assert!(new.line < lines);
                    prop_assert_eq!(old.line % PAGE_LINES, new.line % PAGE_LINES);
                    prop_assert_eq!((old.gap, old.kind), (new.gap, new.kind));
                }
            }
        }
    }
}
