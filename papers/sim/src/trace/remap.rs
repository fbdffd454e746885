//! Moves a trace into a small memory.
//!
//! A program's addresses are spread over 47 bits. An operating system assigns a page of memory to
//! each page that a program touches, and so does this module. Lines of a page stay together. A
//! trace fits any memory with at least as many pages as it touches, whatever their addresses.

use std::collections::{HashMap, HashSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{PAGE_BYTES, PAGE_LINES, Record, Trace};
use crate::SimError;

/// The rule that chooses a page of memory for a page of the program when it is first touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placing {
    /// The next free page.
    InOrder,
    /// A random free page.
    Random {
        /// Seed of the random choice.
        seed: u64,
    },
    /// The page of memory with the same number, modulo the number of pages in memory. If that page
    /// is in use, the next free page. This usually preserves distances within arrays.
    Preserving,
}

impl Trace {
    /// Moves the trace, by pages of [`PAGE_BYTES`], into a memory of `lines` lines. Lines of memory
    /// beyond its last whole page are not used.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the trace touches more pages than the memory has.
    pub fn remap(&self, lines: u64, placing: Placing) -> Result<Self, SimError> {
        let mut memory = Memory::new(lines / PAGE_LINES, placing);
        let mut given: HashMap<u64, u64> = HashMap::new();
        let moved = self.records.iter().map(|record| {
            let (page, within) = (record.line / PAGE_LINES, record.line % PAGE_LINES);
            let page = match given.get(&page) {
                Some(page) => *page,
                None => *given.entry(page).or_insert(memory.assign_page(page)?),
            };
            Some(Record { line: page * PAGE_LINES + within, ..*record })
        });
        let records = moved.collect::<Option<Vec<_>>>().ok_or_else(|| self.too_large(lines))?;
        Ok(Self { name: self.name.clone(), records })
    }

    fn too_large(&self, lines: u64) -> SimError {
        let pages = super::TraceStats::from_trace(self).pages;
        SimError::Spec(format!(
            "{} touches {pages} pages of {PAGE_BYTES} bytes, but {lines} lines have {}: give it at \
             least {} lines",
            self.name,
            lines / PAGE_LINES,
            pages * PAGE_LINES
        ))
    }
}

/// The pages of a memory, which are assigned one by one.
struct Memory {
    pages: u64,
    given: u64,
    free: FreePages,
}

/// The free pages of a memory.
enum FreePages {
    /// The pages after the last assigned page.
    Later,
    /// A lazy shuffle of all pages (Fisher and Yates), so that a large memory costs nothing.
    /// `moved` has the page at each position whose page is not the position itself.
    Shuffled { coins: Box<StdRng>, moved: HashMap<u64, u64> },
    /// All pages except the assigned pages, which this set contains.
    Others(HashSet<u64>),
}

impl Memory {
    fn new(pages: u64, placing: Placing) -> Self {
        let free = match placing {
            Placing::InOrder => FreePages::Later,
            Placing::Random { seed } => {
                let coins = Box::new(StdRng::seed_from_u64(seed));
                FreePages::Shuffled { coins, moved: HashMap::new() }
            }
            Placing::Preserving => FreePages::Others(HashSet::new()),
        };
        Self { pages, given: 0, free }
    }

    /// Assigns a page of memory to page `wanted` of the program. Returns `None` if all pages of
    /// memory are in use.
    fn assign_page(&mut self, wanted: u64) -> Option<u64> {
        let (pages, next) = (self.pages, self.given);
        if next >= pages {
            return None;
        }
        self.given += 1;
        match &mut self.free {
            FreePages::Later => Some(next),
            FreePages::Shuffled { coins, moved } => {
                let place = coins.random_range(next..pages);
                let first = moved.remove(&next).unwrap_or(next);
                if place == next {
                    return Some(first);
                }
                Some(moved.insert(place, first).unwrap_or(place))
            }
            FreePages::Others(taken) => {
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
    use crate::trace::{AccessKind, TraceStats};

    const PLACINGS: [Placing; 3] =
        [Placing::InOrder, Placing::Random { seed: 1 }, Placing::Preserving];

    fn touching(pages: impl IntoIterator<Item = u64>) -> Trace {
        let lines = pages.into_iter().map(|page| page * PAGE_LINES);
        Trace::new("a", lines.map(|line| record(0, AccessKind::Read, line)).collect()).unwrap()
    }

    fn pages(trace: &Trace) -> Vec<u64> {
        trace.records().iter().map(|record| record.line / PAGE_LINES).collect()
    }

    #[test]
    fn pages_keep_their_numbers_if_there_is_room() {
        let trace = touching([5, 6, 8 + 5, 16 + 5, 7, 5]);
        let moved = trace.remap(8 * PAGE_LINES, Placing::Preserving).unwrap();
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
        // The page touched last gets each page equally often.
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
                error.contains("touches 50 pages")
                    && error.contains("have 49: give it at least 3200"),
                "{error}"
            );
            assert!(touching(0..1).remap(0, placing).is_err());
        }
    }

    proptest! {
        #[test]
        fn only_page_numbers_change(trace in any_trace()) {
            let stats = TraceStats::from_trace(&trace);
            for placing in PLACINGS {
                let lines = stats.pages * PAGE_LINES;
                let moved = trace.remap(lines, placing).unwrap();
                prop_assert_eq!(&TraceStats::from_trace(&moved), &stats);
                for (old, new) in trace.records().iter().zip(moved.records()) {
                    prop_assert!(new.line < lines);
                    prop_assert_eq!(old.line % PAGE_LINES, new.line % PAGE_LINES);
                    prop_assert_eq!((old.gap, old.kind), (new.gap, new.kind));
                }
            }
        }
    }
}
