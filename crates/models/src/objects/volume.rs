//! The requests of a volume in objects, computed from its parameters alone.

use oblivio_core::Error;
use oblivio_core::durable::{DurableConfig, Fact, FactValue, find_number};
use oblivio_core::pieces::{LevelShape, TreeShape};

use super::level::Level;
use super::speed::PREFETCHED_BYTES_MAX;
use super::{Requests, ServiceKind};

/// The number of consecutive evictions whose buckets of a level the store reads with one GET, if
/// they lie in one chunk.
const EVICTIONS_AHEAD: f64 = 10.0;

/// Store flushes of a checkpoint: before the client's state is saved, and after the anchor is
/// written.
const FLUSHES_PER_CHECKPOINT: f64 = 2.0;

/// Listings of a checkpoint: the anchor is read when the checkpoint begins, and before the next
/// access. Reading an anchor lists the heads.
const LISTS_PER_CHECKPOINT: f64 = 2.0;

/// Round trips of a store flush, one after the other: complete chunks, the tail, the head.
const TRIPS_PER_FLUSH: f64 = 3.0;

/// Bytes of a head: the records of a volume and the index, as measured with a small volume.
const HEAD_BYTES: f64 = 70e3;

/// Largest range of the model, in bytes: the size of a long request.
const LONG_BYTES: u64 = 1 << 20;

/// A volume in objects: its levels, and the accesses that it makes.
///
/// Averages are over random accesses to a volume whose places have all been written. Two accesses
/// in flight that read the same bucket count twice, and retries do not count.
#[derive(Clone, Debug)]
pub struct VolumeOnObjects {
    block_bytes: u64,
    /// Blocks of an access: 1, or those of the range if all accesses are to ranges.
    unit_blocks: u64,
    /// Blocks of the largest range within [`LONG_BYTES`]; `unit_blocks` if there is none.
    long_blocks: u64,
    /// The levels of one tree in storage, the highest first.
    levels: Vec<Level>,
    /// Number of trees: one per class of ranges. All have the same levels, and every eviction is
    /// made in all of them.
    trees: f64,
    marks: Option<Marks>,
    evict_period: f64,
    accesses_per_block: f64,
    accesses_per_checkpoint: f64,
    /// Number of levels of the tree, from the highest on, that a local file holds as well. It also
    /// holds the marks on levels with smaller numbers.
    near_levels: usize,
}

/// The marks of taken slots, if the position map is in the tree. Every eviction reads and writes
/// some pages of them.
#[derive(Clone, Debug)]
struct Marks {
    /// A level of pages. Each page has two places.
    levels: Vec<Level>,
    /// Evictions that rewrite each page once.
    round_evictions: f64,
}

impl VolumeOnObjects {
    /// Creates the model of a volume with these parameters, in a service of this kind. `None` if
    /// there is no model of its scheme.
    ///
    /// # Errors
    /// Any error of the parameters.
    pub fn from_config(
        config: &dyn DurableConfig,
        service: ServiceKind,
    ) -> Result<Option<Self>, Error> {
        Self::with_chunks(config, service.chunk_bytes())
    }

    /// Creates the model of a volume whose chunks have at most `chunk_bytes` bytes of entries.
    ///
    /// # Errors
    /// Any error of the parameters.
    pub fn with_chunks(
        config: &dyn DurableConfig,
        chunk_bytes: u64,
    ) -> Result<Option<Self>, Error> {
        let (facts, cost) = (config.facts(), config.cost()?);
        let Some(evict_period) = find_number(&facts, "evict_period") else { return Ok(None) };
        if find_number(&facts, "servers").is_some() {
            return Ok(None);
        }
        let block_bytes = u64::from(config.block_bytes());
        let range_bytes = facts.iter().find_map(|fact| match fact {
            Fact::Value("range_bytes", FactValue::Numbers(bytes)) => Some(&bytes[..]),
            _ => None,
        });
        let shapes = config.shapes()?;
        let trees = range_bytes.map_or(1, <[u64]>::len);
        let [slots, heads, ..] = &shapes[..] else { return Ok(None) };
        let unit_blocks = cost.blocks_per_access;
        let long_bytes = range_bytes.unwrap_or_default().iter().filter(|it| **it <= LONG_BYTES);
        let levels = levels(slots, heads, chunk_bytes);
        let path_bytes: u64 = levels.iter().map(|level| level.entry_bytes).sum();
        let written = cost.written_bytes_per_access * evict_period as f64;
        let marks = shapes.get(2 * trees).map(|shape| {
            let swept_bytes = written - path_bytes as f64;
            Marks::new(shape, swept_bytes, chunk_bytes)
        });
        Ok(Some(Self {
            block_bytes,
            unit_blocks,
            long_blocks: long_bytes.max().map_or(unit_blocks, |bytes| bytes / block_bytes),
            levels,
            trees: trees as f64,
            marks,
            evict_period: evict_period as f64,
            accesses_per_block: (1 + cost.position_map_depth) as f64,
            accesses_per_checkpoint: cost.accesses_per_checkpoint as f64,
            near_levels: 0,
        }))
    }

    /// The same volume with its highest `levels` levels in a local file as well. Buckets on these
    /// levels are read from the file. Their chunks are written all the same, so that a lost file
    /// costs time and no data.
    #[must_use]
    pub fn with_near_levels(self, levels: usize) -> Self {
        let near_levels = levels.min(self.levels.len());
        Self { near_levels, ..self }
    }

    /// The number of levels in storage.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The number of levels that are read from a local file.
    pub fn near_levels(&self) -> usize {
        self.near_levels
    }

    /// The largest number of levels that fit in a local file of `bytes` bytes.
    pub fn near_levels_within(&self, bytes: u64) -> usize {
        let fits = |levels: &usize| self.near_bytes_of(*levels) <= bytes;
        (1..=self.levels.len()).take_while(fits).count()
    }

    /// Bytes of the local file.
    pub fn near_bytes(&self) -> u64 {
        self.near_bytes_of(self.near_levels)
    }

    fn near_bytes_of(&self, levels: usize) -> u64 {
        let of_trees = self.levels.iter().take(levels).map(Level::bytes).sum::<f64>();
        let end = self.near_end(levels);
        let marks = self.marks.iter().flat_map(|marks| &marks.levels);
        let marks = marks.filter(|level| level.number < end).map(Level::bytes);
        (self.trees * of_trees + marks.sum::<f64>()) as u64
    }

    /// The number behind that of the last near level, if `levels` levels of the tree are near.
    fn near_end(&self, levels: usize) -> usize {
        self.levels.iter().take(levels).next_back().map_or(0, |level| level.number + 1)
    }

    /// Accesses per request for a block. More than one if the position map is in the tree; they
    /// follow one another.
    pub fn accesses_per_block(&self) -> f64 {
        self.accesses_per_block
    }

    /// Bytes of the blocks of one access.
    pub fn access_bytes(&self) -> u64 {
        self.unit_blocks * self.block_bytes
    }

    /// Average requests of an access, including its share of evictions, without checkpoints.
    pub fn access(&self) -> Requests {
        self.access_to(self.unit_blocks)
    }

    /// Average requests of an access, including its share of evictions and checkpoints.
    pub fn access_with_checkpoints(&self) -> Requests {
        self.with_checkpoints(self.access(), self.unit_blocks)
    }

    /// Average requests that reading a GiB at random positions takes, including evictions and
    /// checkpoints: in ranges if the volume has them, otherwise block by block.
    pub fn gibibyte_read(&self) -> Requests {
        let blocks = self.long_blocks;
        let accesses_per_read = if blocks > 1 { 1.0 } else { self.accesses_per_block };
        let access = self.with_checkpoints(self.access_to(blocks), blocks);
        let reads = (1u64 << 30) as f64 / (blocks * self.block_bytes) as f64;
        access * (reads * accesses_per_read)
    }

    /// Whether the store reads evictions ahead: the memory for requested buckets must hold them. If
    /// not, each eviction takes one GET per level.
    pub fn reads_evictions_ahead(&self) -> bool {
        let path: u64 = self.far_levels().iter().map(|level| level.entry_bytes).sum();
        EVICTIONS_AHEAD * self.trees * path as f64 <= PREFETCHED_BYTES_MAX
    }

    /// GETs that must be answered before a block is available: those of a path.
    pub fn path_gets(&self) -> f64 {
        self.path(self.unit_blocks).gets
    }

    /// Bytes of these GETs.
    pub fn path_bytes(&self) -> f64 {
        self.path(self.unit_blocks).down_bytes
    }

    /// Average requests of a checkpoint: two flushes of the store and two listings. Deletions are
    /// left out, because services do not bill them.
    pub fn checkpoint(&self) -> Requests {
        let entries = |level: &Level| (level.entries_per_chunk - 1) as f64 / 2.0;
        let levels =
            self.levels.iter().map(|level| self.trees * level.entry_bytes as f64 * entries(level));
        // Streams are filled evenly, so that all of them may have no open entry.
        let empty = self.levels.iter().map(|level| 1.0 / level.entries_per_chunk as f64);
        let tails = 1.0 - empty.fold(1.0, f64::min);
        Requests {
            puts: FLUSHES_PER_CHECKPOINT * (tails + 1.0),
            lists: LISTS_PER_CHECKPOINT,
            up_bytes: FLUSHES_PER_CHECKPOINT * (levels.sum::<f64>() + HEAD_BYTES),
            ..Requests::default()
        }
    }

    /// Average round trips of a checkpoint, one after the other.
    pub fn checkpoint_trips(&self) -> f64 {
        FLUSHES_PER_CHECKPOINT * TRIPS_PER_FLUSH + LISTS_PER_CHECKPOINT
    }

    /// Average round trips of a read of a block, one after the other, if no eviction is due. 0 if
    /// all levels are near.
    pub fn trips_per_read(&self) -> f64 {
        if self.near_levels < self.levels.len() { self.accesses_per_block } else { 0.0 }
    }

    /// Number of chunks once all places have been written.
    pub fn chunks(&self) -> u64 {
        let of_trees = self.levels.iter().map(Level::chunks).sum::<u64>() * self.trees as u64;
        of_trees + self.marks.iter().flat_map(|marks| &marks.levels).map(Level::chunks).sum::<u64>()
    }

    /// Bytes of all chunks once all places have been written. Objects that wait for their deletion
    /// come on top.
    pub fn stored_bytes(&self) -> u64 {
        let marks = self.marks.iter().flat_map(|marks| &marks.levels).map(Level::stored_bytes);
        let trees = self.trees * self.levels.iter().map(Level::stored_bytes).sum::<f64>();
        (trees + marks.sum::<f64>()) as u64
    }

    /// Maximum bytes of objects that no bucket needs any more and that wait for a checkpoint, which
    /// deletes them.
    pub fn unneeded_bytes_max(&self) -> u64 {
        let evictions = self.accesses_per_checkpoint / self.evict_period;
        let path: u64 = self.levels.iter().map(|level| level.entry_bytes).sum();
        (evictions * self.trees * path as f64) as u64
    }

    fn with_checkpoints(&self, access: Requests, blocks: u64) -> Requests {
        access + self.checkpoint() * (blocks as f64 / self.accesses_per_checkpoint)
    }

    /// The levels that are read by GETs.
    fn far_levels(&self) -> &[Level] {
        &self.levels[self.near_levels..]
    }

    /// Requests that read the paths of `blocks` consecutive leaves of one tree.
    fn path(&self, blocks: u64) -> Requests {
        let of_level = |level: &Level| {
            let entries = blocks.min(level.buckets) as f64;
            level.reads(entries, entries, level.far())
        };
        self.far_levels().iter().map(of_level).sum()
    }

    /// Requests of an access to `blocks` blocks with its share of evictions.
    fn access_to(&self, blocks: u64) -> Requests {
        let evictions = blocks as f64 / self.evict_period;
        self.path(blocks) + self.evictions(evictions)
    }

    /// Requests of `count` evictions: on average if there are fewer than one, otherwise all at
    /// once.
    fn evictions(&self, count: f64) -> Requests {
        let at_once = match count {
            count if count > 1.0 => count,
            _ if self.reads_evictions_ahead() => EVICTIONS_AHEAD,
            _ => 1.0,
        };
        let read = |level: &Level| {
            let together = at_once.min(level.buckets as f64);
            level.reads(count, together, level.far_at(level.buckets))
        };
        let reads: Requests = self.far_levels().iter().map(read).sum();
        let writes: Requests = self.levels.iter().map(|level| level.writes(count)).sum();
        let near_end = self.near_end(self.near_levels);
        let marks = self.marks.iter().map(|marks| marks.sweeps(count, at_once, near_end));
        (reads + writes) * self.trees + marks.sum()
    }
}

impl Marks {
    /// The pages of a tree of marks. An eviction rewrites `swept_bytes` bytes of them on average.
    fn new(shape: &TreeShape, swept_bytes: f64, chunk_bytes: u64) -> Self {
        let present = (0..).zip(shape.levels()).filter(|(_, level)| level.buckets > 0);
        let levels = present.map(|(number, shape)| {
            let places = shape.buckets;
            Level::new(number, [places / 2, places], shape.bucket_bytes, chunk_bytes)
        });
        let levels: Vec<_> = levels.collect();
        let page_bytes = levels.iter().map(|level| level.bytes() / 2.0).sum::<f64>();
        Self { levels, round_evictions: page_bytes / swept_bytes }
    }

    /// Requests of the sweeps of `evictions` evictions, if the levels with numbers below `near_end`
    /// are near.
    fn sweeps(&self, evictions: f64, together: f64, near_end: usize) -> Requests {
        let of_level = |level: &Level| {
            let pages = evictions * level.buckets as f64 / self.round_evictions;
            let far = if level.number < near_end { 0.0 } else { level.far_at(level.buckets) };
            level.reads(pages, together, far) + level.writes(pages)
        };
        self.levels.iter().map(of_level).sum()
    }
}

/// The levels in storage of the tree with these shapes of slots and heads.
fn levels(slots: &TreeShape, heads: &TreeShape, chunk_bytes: u64) -> Vec<Level> {
    let levels = slots.levels().iter().zip(heads.levels()).enumerate();
    let levels = levels.filter(|(_, (level, _))| level.buckets > 0);
    let mut spare = None;
    let level = |(number, (slots, heads)): (usize, (&LevelShape, &LevelShape))| {
        let (places, bytes) = (slots.buckets, slots.bucket_bytes + heads.bucket_bytes);
        // The first level has as many spare places as buckets. Each other level has as many spare
        // places as the first one.
        let spare = *spare.get_or_insert(places / 2);
        Level::new(number, [places - spare, places], bytes, chunk_bytes)
    };
    levels.map(level).collect()
}

#[cfg(test)]
mod tests;
