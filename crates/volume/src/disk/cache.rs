//! The write-back cache: cached blocks, and which of them are dirty.

use std::collections::{BTreeMap, HashMap};

use oblivio_core::wiped::WipedBytes;

/// Cached blocks by number. Secret; wiped when dropped.
///
/// Clean blocks are evicted least recently used first. Dirty blocks are written back in the same
/// order, and can be evicted only after that. A dirty block that a [`Mark`] holds keeps its place
/// in the order.
pub(super) struct Cache {
    entries: HashMap<u64, Entry>,
    /// Maps the time of the last use to the clean block used then.
    clean: BTreeMap<u64, u64>,
    /// Maps a time to a dirty block: the time of its last use. If a mark holds the block, uses
    /// after the mark do not count.
    dirty: BTreeMap<u64, u64>,
    /// The number of uses so far.
    time: u64,
    /// The latest mark. Blocks that were dirty when it was set keep their place in the write-back
    /// order.
    held: Mark,
}

/// A point in time. The blocks that were dirty then must be written back before a durable request
/// is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

struct Entry {
    data: WipedBytes,
    is_dirty: bool,
    /// The key of the entry in `clean` or `dirty`.
    time: u64,
}

impl Cache {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            clean: BTreeMap::new(),
            dirty: BTreeMap::new(),
            time: 0,
            held: Mark(0),
        }
    }

    pub(super) fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }

    pub(super) fn is_dirty(&self, block: u64) -> bool {
        self.entries.get(&block).is_some_and(|entry| entry.is_dirty)
    }

    /// Sets a mark: blocks that are dirty now keep their place in the write-back order even if they
    /// are written again. So a flush that waits for these blocks comes to an end.
    pub(super) fn mark(&mut self) -> Mark {
        self.held = Mark(self.time);
        self.held
    }

    /// Number of blocks that were dirty at `mark` and still are, up to `count_max`.
    pub(super) fn dirty_since(&self, mark: Mark, count_max: usize) -> usize {
        self.dirty.range(..=mark.0).take(count_max).count()
    }

    pub(super) fn contains(&self, block: u64) -> bool {
        self.entries.contains_key(&block)
    }

    /// The contents of a block. Counts as a use.
    pub(super) fn get(&mut self, block: u64) -> Option<&[u8]> {
        self.touch(block);
        Some(&self.entries.get(&block)?.data)
    }

    /// The contents of a block, if it is dirty. Does not count as a use.
    pub(super) fn dirty(&self, block: u64) -> Option<&[u8]> {
        self.entries.get(&block).filter(|entry| entry.is_dirty).map(|entry| &*entry.data)
    }

    /// The contents of a block, as a mutable slice. Marks the block dirty.
    pub(super) fn get_mut(&mut self, block: u64) -> Option<&mut [u8]> {
        self.touch(block);
        let entry = self.entries.get_mut(&block)?;
        if !entry.is_dirty {
            self.clean.remove(&entry.time);
            self.dirty.insert(entry.time, block);
            entry.is_dirty = true;
        }
        Some(&mut entry.data)
    }

    /// Makes a block the most recently used, if it is cached. A dirty block that a mark holds keeps
    /// its place in the order.
    pub(super) fn touch(&mut self, block: u64) {
        if let Some(entry) = self.entries.get_mut(&block)
            && !(entry.is_dirty && entry.time <= self.held.0)
        {
            let order = if entry.is_dirty { &mut self.dirty } else { &mut self.clean };
            order.remove(&entry.time);
            self.time += 1;
            order.insert(self.time, block);
            entry.time = self.time;
        }
    }

    /// Caches a block with the contents that storage has.
    pub(super) fn insert_clean(&mut self, block: u64, data: WipedBytes) {
        self.insert(block, data, false);
    }

    /// Caches a block with contents that storage does not have yet.
    pub(super) fn insert_dirty(&mut self, block: u64, data: WipedBytes) {
        self.insert(block, data, true);
    }

    fn insert(&mut self, block: u64, data: WipedBytes, is_dirty: bool) {
        let old = self.remove(block).filter(|old| old.is_dirty && old.time <= self.held.0);
        self.time += 1;
        // A flush waits until the older contents or newer ones are written back.
        let time = old.filter(|_| is_dirty).map_or(self.time, |old| old.time);
        let order = if is_dirty { &mut self.dirty } else { &mut self.clean };
        order.insert(time, block);
        self.entries.insert(block, Entry { data, is_dirty, time });
    }

    fn remove(&mut self, block: u64) -> Option<Entry> {
        let entry = self.entries.remove(&block)?;
        let order = if entry.is_dirty { &mut self.dirty } else { &mut self.clean };
        order.remove(&entry.time);
        Some(entry)
    }

    /// Removes all blocks of a range.
    pub(super) fn remove_range(&mut self, range: std::ops::Range<u64>) {
        if range.end - range.start <= self.entries.len() as u64 {
            range.for_each(|block| drop(self.remove(block)));
        } else {
            let all = self.entries.keys().copied();
            let inside: Vec<_> = all.filter(|block| range.contains(block)).collect();
            inside.into_iter().for_each(|block| drop(self.remove(block)));
        }
    }

    /// The next `count` dirty blocks to write back, with their contents.
    pub(super) fn oldest_dirty(&self, count: usize) -> Vec<(u64, &[u8])> {
        let oldest = self.dirty.values().take(count);
        oldest.map(|block| (*block, &*self.entries[block].data)).collect()
    }

    /// All dirty blocks, in the order in which they are written back.
    pub(super) fn dirty_in_order(&self) -> impl Iterator<Item = u64> {
        self.dirty.values().copied()
    }

    /// The blocks that were dirty at `mark` and still are, in the order in which they are written
    /// back.
    pub(super) fn dirty_at(&self, mark: Mark) -> impl Iterator<Item = u64> {
        self.dirty.range(..=mark.0).map(|(_, block)| *block)
    }

    /// Marks blocks clean: storage has their contents now.
    pub(super) fn mark_clean(&mut self, blocks: &[u64]) {
        for block in blocks {
            if let Some(entry) = self.entries.get_mut(block).filter(|entry| entry.is_dirty) {
                self.time += 1;
                self.dirty.remove(&entry.time);
                self.clean.insert(self.time, *block);
                (entry.time, entry.is_dirty) = (self.time, false);
            }
        }
    }

    /// Evicts clean blocks, the least recently used first, until `blocks_max` blocks are left or
    /// none is clean.
    pub(super) fn shrink(&mut self, blocks_max: usize) {
        while self.entries.len() > blocks_max
            && let Some((_, block)) = self.clean.pop_first()
        {
            self.entries.remove(&block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(fill: u8) -> WipedBytes {
        vec![fill; 4].into()
    }

    #[test]
    fn clean_blocks_leave_in_the_order_of_use_and_dirty_ones_stay() {
        let mut cache = Cache::new();
        (0..5).for_each(|block| cache.insert_clean(block, data(block as u8)));
        cache.get_mut(1).unwrap()[0] = 9;
        assert_eq!(cache.get(0), Some(&[0; 4][..]));
        cache.shrink(3);
        assert!([0, 1, 4].into_iter().all(|block| cache.contains(block)));
        cache.shrink(0);
        assert_eq!((cache.entries.len(), cache.dirty_blocks()), (1, 1));
        assert_eq!(cache.oldest_dirty(9), [(1, &[9, 1, 1, 1][..])]);
        cache.mark_clean(&[1, 77]);
        cache.shrink(0);
        assert_eq!((cache.entries.len(), cache.dirty_blocks()), (0, 0));
    }

    #[test]
    fn a_rewrite_does_not_delay_the_write_back_that_a_flush_waits_for() {
        let mut cache = Cache::new();
        (1..=2).for_each(|block| cache.insert_dirty(block, data(1)));
        let mark = cache.mark();
        cache.insert_dirty(3, data(1));
        cache.insert_dirty(1, data(2));
        assert_eq!(cache.dirty_since(mark, 9), 2);
        assert_eq!(cache.oldest_dirty(1), [(1, &[2; 4][..])]);
        cache.mark_clean(&[1, 2]);
        cache.insert_dirty(1, data(3));
        assert_eq!((cache.dirty_since(mark, 9), cache.dirty_blocks()), (0, 2));
    }

    #[test]
    fn dirty_blocks_are_named_in_the_order_of_their_last_use() {
        let mut cache = Cache::new();
        cache.insert_dirty(7, data(1));
        cache.insert_clean(8, data(2));
        cache.get_mut(8).unwrap()[0] = 3;
        cache.get_mut(7).unwrap()[0] = 4;
        let order = |cache: &Cache| -> Vec<u64> {
            cache.oldest_dirty(2).iter().map(|(block, _)| *block).collect()
        };
        assert_eq!(order(&cache), [8, 7]);
        cache.insert_dirty(8, data(5));
        assert_eq!(order(&cache), [7, 8]);
        cache.get(7).unwrap();
        assert_eq!(order(&cache), [8, 7]);
        cache.mark();
        cache.get_mut(8).unwrap()[0] = 1;
        assert_eq!(order(&cache), [8, 7], "the mark holds it");
        cache.remove_range(8..9);
        assert_eq!(order(&cache), [7]);
        cache.insert_clean(7, data(6));
        assert_eq!(cache.dirty_blocks(), 0);
    }
}
