//! A store over a service with faults, and clients that die at any request.

use std::collections::HashMap;

use oblivio_core::store::{
    BucketStore, LevelShape, Part, Piece, SealedByClient, TreeId, TreeShape,
};
use oblivio_core::{BucketId, StoreErrorKind};
use oblivio_store::objects::ObjectName;
use oblivio_store::objects::memory::{Faults, MemoryObjects, MemoryService};
use oblivio_store::{OpenErrorKind, PackedMode, PackedOptions, PackedStore};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const BUCKET_BYTES: usize = 24;

/// The number of places of each ring of RAW ORAM's trees. Ring `i` is on level `3 + i`.
const PLACES: [u64; 3] = [5, 6, 8];

/// The level of the first ring.
const FIRST_LEVEL: u8 = 3;

pub(crate) fn shapes() -> Vec<TreeShape> {
    let tree = |bytes| {
        let places = [0; FIRST_LEVEL as usize].into_iter().chain(PLACES);
        TreeShape::new(places.map(|places| LevelShape::of_heads(places, bytes)).collect())
    };
    let anchors = TreeShape::new(vec![LevelShape::of_heads(0, 0), LevelShape::of_heads(2, 16)]);
    vec![anchors, tree(BUCKET_BYTES), tree(8)]
}

pub(crate) fn options(loses: bool) -> PackedOptions {
    PackedOptions::default()
        .with_chunk_bytes(4 * (BUCKET_BYTES + 8))
        .with_small_bytes_max(40)
        .with_unsynced_bytes_max(loses.then_some(1000))
}

pub(crate) fn piece(tree: u16, level: u8, index: u64) -> Piece {
    Piece { tree: TreeId(tree), bucket: BucketId::new(level, index), part: Part::Whole }
}

/// The length of a bucket.
pub(crate) fn bucket_bytes(piece: &Piece) -> usize {
    match piece.tree.0 {
        0 => 16,
        1 => BUCKET_BYTES,
        _ => 8,
    }
}

/// The buckets that eviction `number` writes: one on each level, in two trees.
pub(crate) fn eviction(number: u64) -> Vec<Piece> {
    let levels = || (FIRST_LEVEL..).zip(PLACES);
    let of_tree = |tree| levels().map(move |(level, places)| piece(tree, level, number % places));
    of_tree(1).chain(of_tree(2)).collect()
}

/// What a store may contain: for each bucket the values that a read may return.
#[derive(Default)]
struct Expected {
    durable: HashMap<Piece, Vec<u8>>,
    since_flush: HashMap<Piece, Vec<Vec<u8>>>,
}

/// The eviction that comes next, and all data that was written.
pub(crate) struct World {
    pub(crate) service: MemoryService,
    coins: StdRng,
    expected: Expected,
    evictions: u64,
    loses: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let service = MemoryService::new(seed);
        let loses = faults.losses > 0;
        PackedStore::create(Box::new(service.client()), &shapes(), &options(loses)).unwrap();
        service.set_faults(faults);
        let coins = StdRng::seed_from_u64(seed);
        Self { service, coins, expected: Expected::default(), evictions: 0, loses }
    }

    /// The buckets that the next eviction writes.
    fn eviction(&mut self) -> Vec<Piece> {
        self.evictions += 1;
        eviction(self.evictions - 1)
    }

    /// Writes `pieces`. Returns whether the store still works.
    fn write(&mut self, store: &mut dyn BucketStore, pieces: &[Piece]) -> bool {
        let mut bytes = Vec::new();
        for piece in pieces {
            let value: Vec<u8> = (0..bucket_bytes(piece)).map(|_| self.coins.random()).collect();
            bytes.extend(&value);
            self.expected.since_flush.entry(*piece).or_default().push(value);
        }
        store.write(pieces, &mut |blanks| SealedByClient::new(&bytes).put(blanks)).is_ok()
    }

    fn flush(&mut self, store: &mut dyn BucketStore) -> bool {
        let is_durable = store.flush().is_ok();
        if is_durable {
            for (piece, mut values) in self.expected.since_flush.drain() {
                self.expected.durable.extend(values.pop().map(|latest| (piece, latest)));
            }
        }
        is_durable
    }

    /// Reads `pieces` and checks that the store has the latest value of each. Returns whether the
    /// store still works.
    fn read(&mut self, store: &mut dyn BucketStore, pieces: &[Piece]) -> bool {
        let Ok(frames) = store.read(pieces) else { return false };
        for (i, piece) in pieces.iter().enumerate() {
            let latest = self.expected.since_flush.get(piece).and_then(|values| values.last());
            match latest.or_else(|| self.expected.durable.get(piece)) {
                Some(value) => assert_eq!(frames.get(i), value, "{piece:?}"),
                None => assert!(frames.get(i).iter().all(|byte| *byte == 0), "{piece:?}"),
            }
        }
        true
    }

    fn all(&self) -> Vec<Piece> {
        let trees = (0..).zip(shapes());
        let pieces = trees.flat_map(|(tree, shape)| {
            let levels = shape.levels().to_vec();
            (0..).zip(levels).flat_map(move |(level, shape)| {
                (0..shape.buckets).map(move |index| piece(tree, level, index))
            })
        });
        pieces.collect()
    }

    /// Takes the contents of a store that was opened after a crash for the durable state, after
    /// checking that each bucket has a value that was written, and its flushed value if it was
    /// not written since.
    pub(crate) fn adopt(&mut self, store: &mut dyn BucketStore) -> bool {
        let pieces = self.all();
        let Ok(frames) = store.read(&pieces) else { return false };
        let mut durable = HashMap::new();
        for (i, piece) in pieces.iter().enumerate() {
            let found = frames.get(i);
            let zeros = vec![0; found.len()];
            let flushed = self.expected.durable.get(piece).unwrap_or(&zeros);
            let since = self.expected.since_flush.get(piece);
            let since = since.into_iter().flatten();
            assert!(
                [flushed].into_iter().chain(since).any(|value| value == found),
                "{piece:?}: a bucket has a value that is neither flushed nor later: {found:?}"
            );
            durable.insert(*piece, found.to_vec());
        }
        self.expected = Expected { durable, since_flush: HashMap::new() };
        true
    }

    /// Makes `count` evictions and flushes them.
    pub(crate) fn fill(&mut self, store: &mut dyn BucketStore, count: usize) {
        self.write_evictions(store, count);
        assert!(self.flush(store));
    }

    pub(crate) fn write_evictions(&mut self, store: &mut dyn BucketStore, count: usize) {
        for _ in 0..count {
            let pieces = self.eviction();
            assert!(self.write(store, &pieces));
        }
    }

    /// Reads all buckets, as [`read`](Self::read) does.
    pub(crate) fn read_all(&mut self, store: &mut dyn BucketStore) -> bool {
        let all = self.all();
        self.read(store, &all)
    }

    /// Runs a random workload until the store fails, or for `steps` steps.
    fn work(&mut self, store: &mut dyn BucketStore, steps: usize) -> bool {
        for _ in 0..steps {
            let works = match self.coins.random_range(0..20) {
                0 => self.flush(store),
                1 => {
                    let index = self.coins.random_range(0..2);
                    self.write(store, &[piece(0, 1, index)]) && self.flush(store)
                }
                2..8 => {
                    let all = self.all();
                    let some: Vec<_> = (0..self.coins.random_range(1..5))
                        .map(|_| all[self.coins.random_range(0..all.len())])
                        .collect();
                    if self.coins.random() {
                        store.prefetch(&some);
                    }
                    self.read(store, &some)
                }
                _ => {
                    let pieces = self.eviction();
                    self.write(store, &pieces)
                }
            };
            if !works {
                return false;
            }
        }
        true
    }

    pub(crate) fn open(&self, objects: MemoryObjects) -> Result<PackedStore, OpenErrorKind> {
        PackedStore::open(Box::new(objects), PackedMode::Write, &options(self.loses))
            .map(|(store, _)| store)
            .map_err(|error| error.kind())
    }
}

/// Lets clients die at random requests, one after the other, on a service with `faults`. Returns
/// the number of deaths.
fn die_again_and_again(seed: u64, faults: Faults, deaths: usize) {
    let mut world = World::new(seed, faults);
    for _ in 0..deaths {
        let requests = match world.coins.random_range(0..3) {
            0 => world.coins.random_range(1..40),
            _ => world.coins.random_range(40..400),
        };
        let mut store = match world.open(world.service.mortal_client(requests)) {
            Ok(store) => store,
            Err(kind) => {
                assert_eq!(kind, OpenErrorKind::Unreachable, "seed {seed}");
                continue;
            }
        };
        if world.adopt(&mut store) {
            world.work(&mut store, 1000);
        }
    }
    let mut store = world.open(world.service.client()).unwrap();
    assert!(world.adopt(&mut store));
    let all = world.all();
    assert!(world.work(&mut store, 50) && world.flush(&mut store));
    assert!(world.read(&mut store, &all));
    bounded_garbage(&world, &store);
}

/// Checks that unneeded objects do not accumulate, except for heads that are cut off and fences.
fn bounded_garbage(world: &World, store: &PackedStore) {
    let objects = world.service.objects();
    let buckets = objects.iter().filter(|(name, _)| !matches!(name, ObjectName::Head(_)));
    let bytes: usize = buckets.map(|(_, body)| body.len()).sum();
    let live = store.live_bytes();
    assert!(bytes < 20_000, "{bytes} bytes for {live} live ones: {:?}", objects.keys());
}

#[test]
fn clients_that_die_lose_nothing_that_was_flushed() {
    for seed in 0..200 {
        die_again_and_again(seed, Faults::default(), 20);
    }
}

#[test]
fn lost_answers_and_torn_bodies_lose_nothing_that_was_flushed() {
    for seed in 0..200 {
        let mut faults = Faults::default();
        faults.lost_answers = 10;
        faults.torn_bodies = 10;
        faults.late_creations = 10;
        faults.conflicts = 5;
        die_again_and_again(1000 + seed, faults, 20);
    }
}

#[test]
fn an_engine_that_loses_objects_before_a_sync_loses_nothing_that_was_flushed() {
    for seed in 0..200 {
        let mut faults = Faults::default();
        faults.losses = 3;
        faults.lost_answers = 3;
        die_again_and_again(2000 + seed, faults, 20);
    }
}

#[test]
fn an_opening_fences_the_older_writer() {
    for seed in 0..50 {
        let mut world = World::new(seed, Faults::default());
        let mut first = world.open(world.service.client()).unwrap();
        let steps = world.coins.random_range(0..60);
        assert!(world.work(&mut first, steps) && world.flush(&mut first));
        let mut second = world.open(world.service.client()).unwrap();
        // The older writer may go on until its next flush, or its next look at an anchor.
        let eviction = world.eviction();
        let bytes = vec![0xee; 3 * (BUCKET_BYTES + 8)];
        for _ in 0..world.coins.random_range(1..20) {
            let written =
                first.write(&eviction, &mut |blanks| SealedByClient::new(&bytes).put(blanks));
            assert!(written.is_ok());
        }
        let refused = if world.coins.random() {
            first.read(&[piece(0, 1, 0)]).map(drop)
        } else {
            first.flush()
        };
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Fenced);
        drop(first);
        assert!(world.adopt(&mut second) && world.work(&mut second, 50));
        assert!(world.flush(&mut second));
        drop(second);
        // Nothing of the older writer appears later.
        let mut third = world.open(world.service.client()).unwrap();
        assert!(world.adopt(&mut third));
    }
}

/// The chunk that was incomplete at the last head is adopted, too.
#[test]
fn the_first_write_after_a_flush_survives_a_death_once_its_chunk_is_complete() {
    for flushed in 0..9 {
        let mut world = World::new(1, Faults::default());
        let mut store = world.open(world.service.client()).unwrap();
        world.fill(&mut store, flushed);
        // Four entries are a chunk. The next complete chunk waits for this one.
        let left = 4 - flushed % 4;
        world.write_evictions(&mut store, left + 4);
        drop(store);
        let mut store = world.open(world.service.client()).unwrap();
        for number in flushed..flushed + left {
            // The last ring has eight places, so none of these was written again.
            for piece in eviction(number as u64).into_iter().filter(|it| it.bucket.level() == 5) {
                let written = world.expected.since_flush[&piece].last().unwrap();
                let frames = store.read(&[piece]).unwrap();
                assert_eq!(frames.get(0), written, "{flushed} flushed: eviction {number}");
            }
        }
    }
}

/// Flushed buckets that were rewritten in another stream are not replaced by a chunk that is
/// adopted.
#[test]
fn an_adopted_chunk_does_not_bring_back_flushed_entries() {
    let mut world = World::new(1, Faults::default());
    let mut store = world.open(world.service.client()).unwrap();
    world.write_evictions(&mut store, 1);
    // The same bucket alone is an entry of another stream.
    let rewritten = piece(1, 5, 0);
    assert!(world.write(&mut store, &[rewritten]) && world.flush(&mut store));
    // Completes the chunk whose first entry has the older value.
    world.write_evictions(&mut store, 7);
    drop(store);
    let mut store = world.open(world.service.client()).unwrap();
    let frames = store.read(&[rewritten]).unwrap();
    assert_eq!(frames.get(0), world.expected.durable[&rewritten]);
}
