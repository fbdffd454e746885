//! The requests that a volume on versioned trees makes to a medium, computed from its parameters
//! alone.

use oblivio_core::Error;
use oblivio_core::durable::{DurableConfig, Fact, FactValue, RangePolicy};
use oblivio_core::pieces::TreeShape;
use rand::RngExt;
use rand::rngs::StdRng;

use super::Request;

/// A model of a volume, with its eviction counter but without data.
///
/// A tree is laid out level by level, and the store merges requests for neighbours on a level. The
/// model leaves out write-ahead records of used slots, checkpoints, and background evictions.
pub struct VolumeModel {
    /// The tree of slots and the tree of heads (bucket metadata) of each range class.
    pairs: Vec<[RotatingTree; 2]>,
    classes: Vec<u8>,
    policy: RangePolicy,
    leaf_level: u8,
    evict_period: u64,
    /// Number of accesses per block. More than one if the position map is in the tree.
    accesses_per_block: u64,
    evictions: u64,
    since_eviction: u64,
}

impl VolumeModel {
    /// Creates the model of a volume with these parameters. `None` if its scheme has no versioned
    /// trees.
    ///
    /// # Errors
    /// Any error of the parameters.
    pub fn from_config(config: &dyn DurableConfig) -> Result<Option<Self>, Error> {
        let facts = config.facts();
        let value = |name| {
            facts.iter().find_map(|fact| match fact {
                Fact::Value(its, value) if *its == name => Some(value),
                _ => None,
            })
        };
        let number = |name| match value(name) {
            Some(FactValue::Number(number)) => Some(*number),
            _ => None,
        };
        let (Some(levels), Some(evict_period)) = (number("levels"), number("evict_period")) else {
            return Ok(None);
        };
        let class = |bytes: &u64| (bytes / u64::from(config.block_bytes())).ilog2() as u8;
        let classes: Vec<_> = match value("range_bytes") {
            Some(FactValue::Numbers(sizes)) => sizes.iter().map(class).collect(),
            _ => vec![0],
        };
        let fixed = number("fixed_range_bytes").map(|bytes| class(&bytes));
        let policy = match (value("range_policy"), fixed) {
            (_, Some(class)) => RangePolicy::Fixed(class),
            (Some(FactValue::Word("exact")), _) => RangePolicy::Exact,
            _ => RangePolicy::Classes,
        };
        let mut next = 0;
        let trees = config.shapes()?;
        let pairs = trees.as_chunks::<2>().0.iter().take(classes.len());
        let pairs =
            pairs.map(|pair| pair.each_ref().map(|shape| RotatingTree::new(shape, &mut next)));
        Ok(Some(Self {
            pairs: pairs.collect(),
            classes,
            policy,
            leaf_level: levels as u8 - 1,
            evict_period,
            accesses_per_block: 1 + config.cost()?.position_map_depth as u64,
            // A new tree starts as if each path had been evicted once.
            evictions: 1 << (levels - 1),
            since_eviction: 0,
        }))
    }

    /// Makes the requests that read `blocks` blocks from `first` on, under the volume's range
    /// policy, and those of the evictions that become due.
    pub fn read(
        &mut self,
        first: u64,
        blocks: u64,
        coins: &mut StdRng,
        make: &mut dyn FnMut(Request),
    ) {
        let (mut next, end) = (first, first + blocks);
        while next < end {
            let fits = |class: &u8| {
                let range = 1u64 << class;
                next.is_multiple_of(range) && next + range <= end
            };
            let longest = self.classes.last().copied().unwrap_or(0);
            let (class, ranges, read) = match self.policy {
                RangePolicy::Classes => {
                    let class = self.classes.iter().copied().rfind(fits).unwrap_or(0);
                    (class, 1, 1 << class)
                }
                RangePolicy::Exact => {
                    let read = (end - next).min(1 << longest);
                    let class = RangePolicy::exact_class(&self.classes, read);
                    (class, if class == 0 { 1 } else { 2 }, read)
                }
                RangePolicy::Fixed(class) => (class, 1, (((next >> class) + 1) << class) - next),
            };
            let accesses = if class == 0 { self.accesses_per_block } else { ranges };
            let at = self.classes.iter().position(|it| *it == class).unwrap_or(0);
            (0..accesses).for_each(|_| self.access(at, 1 << class, coins, make));
            next += read;
        }
    }

    /// Reads `blocks` consecutive paths from a random leaf on, in the trees of the range class with
    /// index `at`. Then makes the evictions that are due, in the trees of all classes.
    fn access(
        &mut self,
        at: usize,
        blocks: u64,
        coins: &mut StdRng,
        make: &mut dyn FnMut(Request),
    ) {
        let leaf = coins.random_range(0..1u64 << self.leaf_level);
        let g = self.evictions;
        let [slots, heads] = &self.pairs[at];
        if blocks == 1 {
            slots.read(g, leaf, blocks, make);
            heads.read(g, leaf, blocks, make);
        } else {
            // A range is read level by level.
            for (slots, heads) in slots.0.iter().zip(&heads.0) {
                slots.read(g, leaf, blocks, make);
                heads.read(g, leaf, blocks, make);
            }
        }
        self.since_eviction += blocks;
        let evictions = self.since_eviction / self.evict_period;
        self.since_eviction %= self.evict_period;
        if evictions > 0 {
            for pair in &self.pairs {
                pair.iter().for_each(|tree| tree.read(g, g, evictions, make));
                pair.iter().for_each(|tree| tree.write(g, evictions, make));
            }
        }
        self.evictions += evictions;
    }
}

/// The places of a versioned tree. Each level has a ring of places, and each eviction writes its
/// bucket of the level to the next place of that ring.
struct RotatingTree(Vec<Level>);

/// A level of a tree in storage.
struct Level {
    level: u8,
    base: u64,
    places: u64,
    bucket_bytes: u64,
}

impl RotatingTree {
    /// Lays out a tree from offset `next` on, and advances `next` past the tree.
    fn new(shape: &TreeShape, next: &mut u64) -> Self {
        // The root of the shape is not a bucket of the ORAM.
        let levels = shape.levels().iter().skip(1).zip(0..).filter(|(level, _)| level.buckets > 0);
        let levels = levels.map(|(shape, level)| {
            let (base, places, bucket_bytes) = (*next, shape.buckets, shape.bucket_bytes);
            *next += places * bucket_bytes;
            Level { level, base, places, bucket_bytes }
        });
        Self(levels.collect())
    }

    /// Reads the paths to `paths` leaves from `first` on, in the state before eviction `g`.
    fn read(&self, g: u64, first: u64, paths: u64, make: &mut dyn FnMut(Request)) {
        self.0.iter().for_each(|level| level.read(g, first, paths, make));
    }

    /// Makes the write requests of `evictions` evictions from number `g` on.
    fn write(&self, g: u64, evictions: u64, make: &mut dyn FnMut(Request)) {
        for level in &self.0 {
            level.stretches((g..g + evictions).map(|eviction| eviction % level.places), make);
        }
    }
}

impl Level {
    fn read(&self, g: u64, first: u64, paths: u64, make: &mut dyn FnMut(Request)) {
        let of_level = 1u64 << self.level;
        let places = (0..paths.min(of_level)).map(|more| {
            let last = g - 1 - (g - 1).wrapping_sub(first + more) % of_level;
            last % self.places
        });
        self.stretches(places, make);
    }

    /// Makes one request per stretch of consecutive places.
    fn stretches(&self, places: impl Iterator<Item = u64>, make: &mut dyn FnMut(Request)) {
        let mut places = places.peekable();
        while let Some(start) = places.next() {
            let mut end = start + 1;
            while places.next_if_eq(&end).is_some() {
                end += 1;
            }
            let offset = self.base + start * self.bucket_bytes;
            make(Request { offset, bytes: (end - start) * self.bucket_bytes, level: self.level });
        }
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::durable::range::DurableRange;
    use oblivio_core::durable::rotating::DurableRaw;
    use oblivio_core::durable::{ArrayRequirements, DurableScheme};
    use rand::SeedableRng;

    use super::*;

    fn requests(scheme: &dyn DurableScheme, first: u64, blocks: u64) -> (usize, u64) {
        requests_of(scheme, None, first, blocks)
    }

    fn requests_of(
        scheme: &dyn DurableScheme,
        range_policy: Option<RangePolicy<u64>>,
        first: u64,
        blocks: u64,
    ) -> (usize, u64) {
        let requirements = ArrayRequirements {
            client_bytes_max: 48 << 20,
            range_policy,
            ..ArrayRequirements::new(1 << 30, scheme.name())
        };
        let mut model =
            VolumeModel::from_config(&*scheme.plan(&requirements).unwrap()).unwrap().unwrap();
        let (mut count, mut bytes, mut coins) = (0, 0, StdRng::seed_from_u64(1));
        for _ in 0..10 {
            model.read(first, blocks, &mut coins, &mut |request| {
                count += 1;
                bytes += request.bytes;
            });
        }
        (count / 10, bytes / 10)
    }

    /// Checks the number of requests for 256 blocks. Read one by one, each block takes a request
    /// for each of six levels of slots and six of heads, and each of the 51.2 evictions reads and
    /// writes all of these levels. Read as one range, the blocks take fewer than 100 requests.
    #[test]
    fn a_mebibyte_of_a_gibibyte_takes_thousands_of_requests_or_some_dozens() {
        let (by_blocks, _) = requests(&DurableRaw, 0, 256);
        assert!(by_blocks.abs_diff(256 * 12 + 512 * 24 / 10) <= 12, "{by_blocks}");
        let (by_ranges, bytes) = requests(&DurableRange, 0, 256);
        assert!((75..100).contains(&by_ranges), "{by_ranges}");
        assert!((60 << 20..80 << 20).contains(&bytes), "{bytes}");
        // One more block is read separately.
        let (more, _) = requests(&DurableRange, 0, 257);
        assert!((by_ranges + 10..by_ranges + 60).contains(&more), "{more}");
        // If all accesses are to ranges, a single block costs a whole range.
        let fixed = Some(RangePolicy::Fixed(1 << 20));
        let (one, bytes) = requests_of(&DurableRange, fixed, 7, 1);
        assert!((75..100).contains(&one) && bytes > 60 << 20, "{one}, {bytes}");
        let (two, _) = requests_of(&DurableRange, fixed, 255, 2);
        assert!(two.abs_diff(2 * one) <= 6, "{one}, {two}");
        // Two ranges, wherever the read begins.
        let exact =
            |first, blocks| requests_of(&DurableRange, Some(RangePolicy::Exact), first, blocks).0;
        assert!(exact(3, 256).abs_diff(exact(0, 200)) <= 8);
        assert!(exact(3, 1) < exact(3, 2) / 2);
    }
}
