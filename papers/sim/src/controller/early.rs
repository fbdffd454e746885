//! Chooses the line to write back early (IR-DWB; IR-ORAM, section IV-D, Fig. 9): the register
//! *Ptr*.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::Cycle;
use crate::cache::Victim;

/// Cycles to the next search, after a search of all sets has found no dirty LRU line.
const REST: Cycle = 1000;

/// The view of a last-level cache that early write-backs need.
pub trait LastLevel {
    /// Number of sets.
    fn sets(&self) -> u64;

    /// The set of `line`.
    fn set_of(&self, line: u64) -> u64;

    /// The LRU line of set `number`, if the set is full.
    fn next_victim(&self, number: u64) -> Option<Victim>;

    /// Notes that `line` was written to memory at the start of cycle `at`.
    fn written_early(&mut self, line: u64, at: Cycle);
}

/// Searches one set after the other for an LRU line that is dirty.
pub(super) struct EarlyWriter {
    /// The line being written back (Ptr).
    pointer: Option<u64>,
    set: u64,
    rests_until: Cycle,
    coins: StdRng,
    /// The number of early write-backs given up because the line was used again or evicted.
    pub(super) given_up: u64,
}

impl EarlyWriter {
    pub(super) fn new(coins: StdRng) -> Self {
        Self { pointer: None, set: 0, rests_until: 0, coins, given_up: 0 }
    }

    /// Returns the line to write back at `now`: the current line or, if that was used or evicted,
    /// the next line that a search finds. `None` if the search finds no line, and during the pause
    /// after such a search.
    pub(super) fn line(&mut self, now: Cycle, cache: &impl LastLevel) -> Option<u64> {
        if let Some(line) = self.pointer {
            let is_next = Some(Victim { line, dirty: true });
            if cache.next_victim(cache.set_of(line)) == is_next {
                return Some(line);
            }
            // Section IV-D: the line is not the LRU line any more. Clear Ptr.
            self.given_up += 1;
            self.pointer = None;
        }
        if now < self.rests_until {
            return None;
        }
        // Section IV-D: go round all sets, to the first LRU line that is dirty.
        for _ in 0..cache.sets() {
            let victim = cache.next_victim(self.set);
            self.set = (self.set + 1) % cache.sets();
            if let Some(Victim { line, dirty: true }) = victim {
                self.pointer = Some(line);
                return Some(line);
            }
        }
        // Section IV-D: pause, then restart from a random set.
        self.rests_until = now + REST;
        self.set = self.coins.random_range(0..cache.sets());
        None
    }

    /// Notes that the current line has been written back.
    pub(super) fn done(&mut self) {
        self.pointer = None;
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::cache::{Cache, CacheShape};

    impl LastLevel for Cache {
        fn sets(&self) -> u64 {
            self.sets()
        }

        fn set_of(&self, line: u64) -> u64 {
            self.set_of(line)
        }

        fn next_victim(&self, number: u64) -> Option<Victim> {
            self.next_victim(number)
        }

        fn written_early(&mut self, line: u64, _: Cycle) {
            self.clean(line);
        }
    }

    /// A cache with four sets of two ways. Line 0 is dirty and the next victim of its set, as is
    /// line 2.
    fn cache() -> Cache {
        let mut cache = Cache::new(CacheShape { lines: 8, ways: 2 }).unwrap();
        for (line, dirty) in
            [(0, true), (4, false), (1, false), (5, true), (2, true), (6, true), (3, true)]
        {
            cache.insert(line, dirty);
        }
        cache
    }

    #[test]
    fn it_goes_round_and_stays_with_a_line_until_it_is_done() {
        let (cache, mut early) = (cache(), EarlyWriter::new(StdRng::seed_from_u64(1)));
        assert_eq!([early.line(0, &cache), early.line(5, &cache)], [Some(0), Some(0)]);
        early.done();
        assert_eq!(early.line(9, &cache), Some(2), "set 1 has a clean one, set 3 has room");
        early.done();
        assert_eq!(early.line(9, &cache), Some(0));
        assert_eq!(early.given_up, 0);
    }

    #[test]
    fn a_line_that_is_used_is_given_up() {
        let (mut cache, mut early) = (cache(), EarlyWriter::new(StdRng::seed_from_u64(1)));
        assert_eq!(early.line(0, &cache), Some(0));
        cache.touch(0, false);
        assert_eq!(early.line(1, &cache), Some(2));
        assert_eq!(early.given_up, 1);
    }

    #[test]
    fn without_a_find_it_rests() {
        let (mut cache, mut early) = (cache(), EarlyWriter::new(StdRng::seed_from_u64(1)));
        [0, 2].into_iter().for_each(|line| cache.written_early(line, 0));
        assert_eq!(early.line(500, &cache), None);
        cache.touch(2, true);
        cache.touch(6, true);
        assert_eq!([1499, 1500].map(|now| early.line(now, &cache)), [None, Some(2)]);
    }
}
