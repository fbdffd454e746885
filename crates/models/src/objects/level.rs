//! A level of a tree, in chunks.

use super::Requests;

/// Bytes of a chunk's trailer per entry.
const TRAILER_BYTES_PER_ENTRY: f64 = 8.0;

/// A level of a tree in storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// The number of the level in the shape of its tree.
    pub(super) number: usize,
    /// Buckets of the tree on this level.
    pub(super) buckets: u64,
    /// Places for them: the ring that evictions write.
    pub(super) places: u64,
    /// Bytes of the slots and the head of a bucket.
    pub(super) entry_bytes: u64,
    pub(super) entries_per_chunk: u64,
}

impl Level {
    /// A level with chunks of at most `chunk_bytes` bytes of entries.
    pub(super) fn new(
        number: usize,
        [buckets, places]: [u64; 2],
        entry_bytes: u64,
        chunk_bytes: u64,
    ) -> Self {
        let entries_per_chunk = (chunk_bytes / entry_bytes.max(1)).max(1);
        Self { number, buckets, places, entry_bytes, entries_per_chunk }
    }

    /// Bytes of all places.
    pub(super) fn bytes(&self) -> f64 {
        self.places as f64 * self.entry_bytes as f64
    }

    /// Bytes of all places with the trailers of their chunks.
    pub(super) fn stored_bytes(&self) -> f64 {
        self.bytes() + self.places as f64 * TRAILER_BYTES_PER_ENTRY
    }

    /// Number of chunks once all places have been written.
    pub(super) fn chunks(&self) -> u64 {
        self.places.div_ceil(self.entries_per_chunk)
    }

    /// Probability that the entry which was written `ago` entries ago is not in memory. The latest
    /// two chunks are: one that is being filled, and a complete one.
    pub(super) fn far_at(&self, ago: u64) -> f64 {
        let per_chunk = self.entries_per_chunk;
        (ago.saturating_sub(per_chunk) as f64 / per_chunk as f64).min(1.0)
    }

    /// Probability that the current version of a random bucket is not in memory: the mean of
    /// [`Self::far_at`] from 1 to the number of buckets.
    pub(super) fn far(&self) -> f64 {
        let (buckets, per_chunk) = (self.buckets as f64, self.entries_per_chunk as f64);
        let older = (buckets - per_chunk).clamp(0.0, per_chunk);
        let oldest = (buckets - 2.0 * per_chunk).max(0.0);
        (older * (older + 1.0) / 2.0 / per_chunk + oldest) / buckets
    }

    /// Average GETs per entry, if `together` consecutive entries are read at once. A GET ends at
    /// the end of a chunk.
    fn gets_per_entry(&self, together: f64) -> f64 {
        let per_chunk = self.entries_per_chunk as f64;
        // A new GET begins with each group and with each chunk. Some begin both.
        1.0 / per_chunk + 1.0 / together - 1.0 / (per_chunk * together)
    }

    /// Reads of `count` entries of which a part of `far` is not in memory, `together` at once.
    pub(super) fn reads(&self, count: f64, together: f64, far: f64) -> Requests {
        Requests {
            gets: far * count * self.gets_per_entry(together),
            down_bytes: far * count * self.entry_bytes as f64,
            ..Requests::default()
        }
    }

    /// Writes of `count` entries.
    pub(super) fn writes(&self, count: f64) -> Requests {
        Requests {
            puts: count / self.entries_per_chunk as f64,
            up_bytes: count * (self.entry_bytes as f64 + TRAILER_BYTES_PER_ENTRY),
            ..Requests::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(ours: f64, theirs: f64, part: f64) {
        assert!((ours - theirs).abs() <= part * theirs.abs(), "{ours}, not {theirs}");
    }

    /// A level of 1,000 buckets with 10 entries per chunk, by hand.
    #[test]
    fn entries_in_memory_need_no_get() {
        let level = Level::new(9, [1000, 1100], 5000, 50_000);
        assert_eq!((level.entries_per_chunk, level.chunks()), (10, 110));
        assert_eq!([1, 10, 15, 20, 21].map(|ago| level.far_at(ago)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        // Ten entries of the complete chunk, and 0 to 9 of the open one.
        near(level.far(), 1.0 - 14.5 / 1000.0, 1e-12);
        let small = Level::new(9, [12, 20], 5000, 50_000);
        near(small.far(), (0.1 + 0.2) / 12.0, 1e-12);
        assert_eq!(Level::new(9, [10, 20], 5000, 50_000).far(), 0.0);
        // 30 entries, ten at once: in 3 chunks if groups and chunks coincide, otherwise each chunk
        // has two GETs.
        near(30.0 * level.gets_per_entry(10.0), 0.1 * 3.0 + 0.9 * 6.0, 1e-12);
        near(level.gets_per_entry(1.0), 1.0, 1e-12);
        let large = Level::new(9, [1000, 1100], 5000, 4000);
        assert_eq!(large.entries_per_chunk, 1);
        near(large.gets_per_entry(10.0), 1.0, 1e-12);
        let reads = level.reads(3.0, 1.0, 0.5);
        assert_eq!((reads.gets, reads.down_bytes), (1.5, 7500.0));
        let writes = level.writes(3.0);
        assert_eq!((writes.puts, writes.up_bytes), (0.3, 3.0 * 5008.0));
    }
}
