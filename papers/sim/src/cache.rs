//! A set-associative cache of a processor. It tracks which lines are cached, but not their
//! contents.
//!
//! Replacement is LRU within each set. A line is *dirty* if it was written since it was fetched or
//! [cleaned](Cache::clean).

use crate::SimError;

/// The dimensions of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Number of lines: a multiple of `ways`.
    pub lines: usize,
    /// Ways of the cache (associativity).
    pub ways: usize,
}

/// A line in a cache, or a line that was just evicted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The number of the line.
    pub line: u64,
    /// Whether the line was written since it was fetched or cleaned. Its eviction must then write
    /// it back.
    pub dirty: bool,
}

/// A cache. The set of a line is its number modulo the number of sets.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The ways of all sets, in order of set. Within a set, the most recently used line comes
    /// first.
    places: Vec<Option<Victim>>,
    ways: usize,
    sets: u64,
}

impl Cache {
    /// Creates an empty cache.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the cache has no lines, or their number is not a multiple of its ways.
    pub fn new(shape: CacheShape) -> Result<Self, SimError> {
        let CacheShape { lines, ways } = shape;
        if lines == 0 || ways == 0 || !lines.is_multiple_of(ways) {
            return Err(SimError::Spec(format!(
                "cache of {lines} lines, {ways} ways: lines must be a multiple of ways, above 0"
            )));
        }
        Ok(Self { places: vec![None; lines], ways, sets: (lines / ways) as u64 })
    }

    /// Number of sets.
    pub fn sets(&self) -> u64 {
        self.sets
    }

    /// Accesses `line`, and marks it dirty if `changes`. The line becomes the most recently used
    /// line of its set. Returns whether it was cached. If not, nothing changes.
    pub fn touch(&mut self, line: u64, changes: bool) -> bool {
        let set = self.set_mut(line);
        let Some(place) = set.iter().position(|held| is(held, line)) else { return false };
        set[..=place].rotate_right(1);
        if let Some(held) = &mut set[0] {
            held.dirty |= changes;
        }
        true
    }

    /// Inserts `line` as the most recently used line of its set. The line must not be cached yet.
    /// If the set was full, returns its LRU line, which is evicted.
    pub fn insert(&mut self, line: u64, dirty: bool) -> Option<Victim> {
        let set = self.set_mut(line);
        debug_assert!(!set.iter().any(|held| is(held, line)), "a line is in a cache once");
        set.rotate_right(1);
        set[0].replace(Victim { line, dirty })
    }

    /// All cached lines, in order of set.
    pub fn lines(&self) -> impl Iterator<Item = u64> {
        self.places.iter().flatten().map(|held| held.line)
    }

    /// The LRU line of set `number`, if the set is full.
    pub fn next_victim(&self, number: u64) -> Option<Victim> {
        let start = number as usize * self.ways;
        self.places[start + self.ways - 1]
    }

    /// Marks `line` clean. Returns whether it was cached.
    pub fn clean(&mut self, line: u64) -> bool {
        let held = self.set_mut(line).iter_mut().flatten().find(|held| held.line == line);
        held.map(|held| held.dirty = false).is_some()
    }

    /// The set of `line`.
    pub fn set_of(&self, line: u64) -> u64 {
        line % self.sets
    }

    fn set_mut(&mut self, line: u64) -> &mut [Option<Victim>] {
        let start = self.set_of(line) as usize * self.ways;
        &mut self.places[start..start + self.ways]
    }
}

fn is(held: &Option<Victim>, line: u64) -> bool {
    held.is_some_and(|held| held.line == line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: CacheShape = CacheShape { lines: 8, ways: 2 };

    #[test]
    fn the_line_unused_for_longest_goes_first() {
        let mut cache = Cache::new(SHAPE).unwrap();
        assert_eq!(cache.insert(0, false), None);
        assert_eq!(cache.next_victim(0), None, "there is room");
        assert_eq!(cache.insert(4, true), None);
        assert!(cache.touch(0, true));
        assert_eq!(cache.next_victim(0), Some(Victim { line: 4, dirty: true }));
        assert!(cache.clean(4));
        assert_eq!(cache.insert(8, false), Some(Victim { line: 4, dirty: false }));
        assert!(!cache.touch(4, true) && !cache.clean(4));
        assert_eq!(cache.insert(12, false), Some(Victim { line: 0, dirty: true }));
    }

    #[test]
    fn a_cache_without_lines_is_refused() {
        for (lines, ways) in [(0, 1), (8, 0), (9, 2)] {
            assert!(Cache::new(CacheShape { lines, ways }).is_err());
        }
    }

    proptest! {
        /// Compares the cache with a model: a list of the cached lines in the order of their last
        /// use, from which the oldest line of a full set is evicted.
        #[test]
        fn it_is_a_list_in_order_of_use(
            uses in prop::collection::vec((0u64..24, any::<bool>()), 0..300)
        ) {
            let mut cache = Cache::new(SHAPE).unwrap();
            let mut list: Vec<Victim> = Vec::new();
            for (line, changes) in uses {
                let held = list.iter().position(|held| held.line == line);
                prop_assert_eq!(cache.touch(line, changes), held.is_some());
                if let Some(held) = held {
                    let Victim { line, dirty } = list.remove(held);
                    list.push(Victim { line, dirty: dirty | changes });
                    continue;
                }
                let of_set = |held: &&Victim| held.line % 4 == line % 4;
                let oldest = list.iter().find(of_set).copied();
                let full = list.iter().filter(of_set).count() == 2;
                let victim = oldest.filter(|_| full);
                list.retain(|held| Some(*held) != victim);
                list.push(Victim { line, dirty: changes });
                prop_assert_eq!(cache.insert(line, changes), victim);
            }
        }
    }
}
