//! What storage sees of a volume across crashes: nothing but how many accesses there were, and the
//! same things again.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Part, Piece, TreeId};
use oblivio_core::view::{Event, Operation};
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, EVICT_PERIOD, SmallVolume};
use oblivio_testkit::crash::{CrashStore, Fault, Seen, Survival, World};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Recovery, SyncMoves, Volume, VolumeError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Which tree of the store holds the blocks.
const DATA_TREE: TreeId = TreeId(2);

/// So many leaves that one seldom shows twice by chance.
const LEAF_LEVEL: u8 = 10;

/// Of some hundred pairs of leaves, so many may be equal by chance: with 1024 leaves, it is one in ten
/// tests of that length.
const EQUAL_BY_CHANCE_MAX: usize = 2;

fn volume(sync_moves: SyncMoves) -> SmallVolume {
    SmallVolume { leaf_level: LEAF_LEVEL, sync_moves, ..SmallVolume::default() }
}

// ───────────────────────────── leaves across crashes ─────────────────────────────

#[test]
fn a_leaf_is_shown_twice_only_where_a_sequence_is_repeated() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::None),
        (SyncMoves::BeforeReads, Survival::All),
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        // Who is killed loses nothing, and so shows nothing twice.
        (SyncMoves::AtFlush, Survival::All),
    ] {
        let mut tried = 0;
        let mut equal = 0;
        for crash_at in (0..240).step_by(4) {
            let mut bench = Bench::new(volume(sync_moves), crash_at);
            bench.access_one_block_until_the_crash(Fault::CrashAt(crash_at));
            bench.world.crash(&mut bench.coins, survival);
            let shown = bench.leaves();
            equal += usize::from(bench.recovers_and_shows_the_last_leaf_again(&shown));
            tried += 1;
        }
        assert!(equal <= EQUAL_BY_CHANCE_MAX, "{sync_moves:?} {survival:?}: {equal} of {tried}");
    }
}

/// The machine loses its power while it recovers from a kill: what was logged, and not synced, was
/// there to be recovered, and is not any more.
#[test]
fn no_leaf_that_recovery_has_shown_is_forgotten() {
    let mut equal = 0;
    for crash_at in 0..240 {
        let mut bench = Bench::new(volume(SyncMoves::BeforeReads), crash_at);
        bench.access_one_block_until_the_crash(Fault::CrashAt(crash_at));
        bench.world.crash(&mut bench.coins, Survival::All);
        let shown = bench.leaves();
        // Superblocks, the state, the anchor: then accesses are repeated.
        let in_recovery = bench.coins.random_range(12..30);
        bench.world.plan(&[Fault::CrashAt(in_recovery)], &mut bench.coins);
        let _ = bench.open();
        bench.world.crash(&mut bench.coins, Survival::None);
        // What the first recovery has shown, and nobody before it.
        let in_recovery = bench.leaves().split_off(shown.len());
        let new = in_recovery.into_iter().find(|leaf| !shown.contains(leaf));
        let again = bench.recovers_and_shows_the_last_leaf_again(&shown);
        equal += usize::from(again || new.is_some_and(|new| bench.leaves().last() == Some(&new)));
    }
    assert!(equal <= EQUAL_BY_CHANCE_MAX, "{equal}");
}

/// The price of `--sync-moves flush`, as the threat model states it. It would be a lie if this failed:
/// and the tests above could not see a repeated leaf.
#[test]
fn moves_that_were_not_synced_are_forgotten_by_a_power_loss() {
    let mut equal = 0;
    for crash_at in (100..240).step_by(4) {
        let mut bench = Bench::new(volume(SyncMoves::AtFlush), crash_at);
        bench.access_one_block_until_the_crash(Fault::CrashAt(crash_at));
        bench.world.crash(&mut bench.coins, Survival::None);
        let shown = bench.leaves();
        let (mut volume, recovery) = bench.open().unwrap();
        let repeated = bench.leaves().split_off(shown.len());
        assert_eq!(repeated.len() as u64, recovery.accesses);
        let is_repetition = |at: usize| shown[at..].starts_with(&repeated);
        assert!((0..=shown.len()).any(is_repetition), "{repeated:?} after {shown:?}");
        read(&mut volume, 0).unwrap();
        let next = *bench.leaves().last().unwrap();
        equal += usize::from(shown.contains(&next));
    }
    assert!(equal > 10, "{equal}");
}

/// Evictions that are made again have the names they had before the crash, and so need another key.
#[test]
fn what_recovery_writes_again_is_sealed_under_another_key() {
    let mut written_again = 0;
    for crash_at in (20..200).step_by(6) {
        let mut bench = Bench::new(volume(SyncMoves::BeforeReads), crash_at);
        bench.access_one_block_until_the_crash(Fault::CrashAt(crash_at));
        bench.world.crash(&mut bench.coins, Survival::All);
        let old: Vec<_> = places(&bench.setup).map(|piece| get(&bench.world, piece)).collect();
        let seen = bench.world.view().len();
        let (volume, _) = bench.open().unwrap();
        drop(volume);
        let written: Vec<_> = bench.world.view()[seen..]
            .iter()
            .filter_map(|seen| match seen {
                Seen::Event(Event { operation: Operation::Write, piece, .. }) => *piece,
                _ => None,
            })
            .collect();
        for (piece, old) in places(&bench.setup).zip(old) {
            // A place that held nothing was not sealed before.
            if written.contains(&piece) && old.iter().any(|byte| *byte != 0) {
                let new = get(&bench.world, piece);
                let equal = old.chunks_exact(16).zip(new.chunks_exact(16)).any(|(a, b)| a == b);
                assert!(!equal, "crash at {crash_at}: a mask was used twice in {piece:?}");
                written_again += 1;
            }
        }
    }
    assert!(written_again > 100, "{written_again}");
}

// ───────────────────────────── two histories ─────────────────────────────

/// What one does with a volume.
type Workload = fn(&mut Volume<CrashStore>, step: u64) -> Result<(), VolumeError>;

const READS_OF_ONE_BLOCK: Workload = |volume, _| read(volume, 7);
const WRITES_TO_ALL_BLOCKS: Workload = |volume, step| {
    let data = [step as u8; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address: step * 5 % BLOCKS, op: Op::Write(&data) }])
};

#[test]
fn two_workloads_of_one_length_look_alike_across_crashes() {
    for sync_moves in [SyncMoves::BeforeReads, SyncMoves::AtFlush] {
        for survival in [Survival::None, Survival::All] {
            for steps in [0, 1, 11, 12, 13, 50] {
                // State files that fill up soon with the data of writes, and never with reads.
                let volume = SmallVolume { state_file_bytes_max: 5_000, ..volume(sync_moves) };
                let views = [READS_OF_ONE_BLOCK, WRITES_TO_ALL_BLOCKS].map(|workload| {
                    let mut bench = Bench::new(volume, steps);
                    for _ in 0..3 {
                        let (mut volume, _) = bench.open().unwrap();
                        for step in 0..steps {
                            workload(&mut volume, step).unwrap();
                            if step % 4 == 0 {
                                volume.flush().unwrap();
                            }
                        }
                        bench.world.crash(&mut bench.coins, survival);
                        drop(volume);
                    }
                    looks(&bench.world.view())
                });
                assert_alike(&views, &format!("{sync_moves:?} {survival:?} {steps}"));
            }
        }
    }
}

// ───────────────────────────── a volume and its view ─────────────────────────────

struct Bench {
    setup: SmallVolume,
    world: World,
    coins: StdRng,
}

impl Bench {
    /// A new volume that was used a little, and closed.
    fn new(setup: SmallVolume, seed: u64) -> Self {
        let world = setup.world();
        let mut coins = StdRng::seed_from_u64(seed);
        let create = StdRng::seed_from_u64(coins.random());
        let mut volume = setup.create(world.store(), world.dir(), create).unwrap();
        (0..5).try_for_each(|_| read(&mut volume, 0)).unwrap();
        volume.close().unwrap();
        Self { setup, world, coins }
    }

    fn open(&mut self) -> Result<(Volume<CrashStore>, Recovery), VolumeError> {
        let coins = StdRng::seed_from_u64(self.coins.random());
        self.setup.open(self.world.store(), self.world.dir(), coins)
    }

    /// Each access shows the leaf that the one before has drawn.
    fn access_one_block_until_the_crash(&mut self, crash: Fault) {
        self.world.plan(&[crash], &mut self.coins);
        let Ok((mut volume, _)) = self.open() else { return };
        while read(&mut volume, 0).is_ok() {}
        assert!(self.world.is_off());
    }

    /// Opens the volume: storage must see the sequence `shown` from somewhere on, and at most one
    /// access that was logged and not made. Then accesses the same block once more: whether that shows
    /// the leaf again which was shown last.
    fn recovers_and_shows_the_last_leaf_again(&mut self, shown: &[u64]) -> bool {
        let before = self.leaves().len();
        let (mut volume, recovery) = self.open().unwrap();
        let repeated = self.leaves().split_off(before);
        assert_eq!(repeated.len() as u64, recovery.accesses);
        let is_repetition = |from: usize| {
            let (seen, new) = repeated.split_at((shown.len() - from).min(repeated.len()));
            seen == &shown[from..] && new.len() <= 1
        };
        assert!((0..=shown.len()).any(is_repetition), "{repeated:?} after {shown:?}");
        let last = repeated.last().or(shown.last());
        read(&mut volume, 0).unwrap();
        self.leaves().last() == last
    }

    /// The leaves of all accesses, as numbers in the order of evictions: storage can tell them.
    fn leaves(&self) -> Vec<u64> {
        leaves(&self.setup, &self.world.view())
    }
}

/// All places of buckets of blocks.
fn places(setup: &SmallVolume) -> impl Iterator<Item = Piece> {
    let [_, _, data, _] = shapes(&setup.params()).unwrap();
    let levels: Vec<_> = data.levels().iter().map(|level| level.buckets).collect();
    (0..).zip(levels).flat_map(|(level, buckets)| {
        (0..buckets).map(move |index| {
            let bucket = BucketId::new(level, index);
            Piece { tree: DATA_TREE, bucket, part: Part::Whole }
        })
    })
}

fn get(world: &World, piece: Piece) -> Vec<u8> {
    world.store().read(&[piece]).unwrap().get(0).to_vec()
}

fn read(volume: &mut Volume<CrashStore>, address: u64) -> Result<(), VolumeError> {
    let mut block = [0; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Read(&mut block) }])
}

/// What storage can tell without a key: which leaf each access has read the path to. Checks on the way
/// that each call has the shape of an access or an eviction.
fn leaves(setup: &SmallVolume, view: &[Seen]) -> Vec<u64> {
    let levels = usize::from(setup.leaf_level - setup.tree_top_levels) + 1;
    let tree = shapes(&setup.params()).unwrap()[usize::from(DATA_TREE.0)].clone();
    let ring = (1u64 << setup.leaf_level) + (1 << setup.tree_top_levels);
    // A new tree starts as if each leaf had been evicted once.
    let mut evictions = 1 << setup.leaf_level;
    let mut leaves = Vec::new();
    let mut since_eviction = 0;
    let calls = calls(view);
    for (i, call) in calls.iter().enumerate() {
        let [first, ..] = call[..] else {
            since_eviction = 0;
            continue;
        };
        if let [event] = call[..] {
            // An opening looks at the bucket that is written next, whether it was already.
            let piece = event.piece.unwrap();
            assert_eq!(event.operation, Operation::Read);
            assert_eq!(piece.bucket, BucketId::new(setup.leaf_level + 1, evictions % ring));
            continue;
        }
        assert_eq!(call.len(), levels, "a bucket of each level");
        for (event, level) in
            call.iter().zip(tree.levels().iter().skip(tree.level_count() - levels))
        {
            let piece = event.piece.unwrap();
            assert_eq!((piece.part, level.buckets > 0), (Part::Whole, true));
            assert!([0, level.bucket_bytes].contains(&event.bytes));
        }
        let place = call.last().unwrap().piece.unwrap().bucket.index();
        // The latest eviction that wrote there.
        let written = |before: u64| (0..before).rev().find(|e| e % ring == place).unwrap();
        match first.operation {
            Operation::Write => {
                // After a crash, evictions are made again.
                evictions = written(evictions + 1) + 1;
                assert!(since_eviction <= EVICT_PERIOD, "{since_eviction} accesses");
                since_eviction = 0;
            }
            Operation::Read => {
                let leaf = written(evictions) % (1 << setup.leaf_level);
                let next = calls.get(i + 1).map(|next| next.first().map(|event| event.operation));
                let is_due = leaf == evictions % (1 << setup.leaf_level);
                let is_eviction = next == Some(Some(Operation::Write))
                    || (is_due && matches!(next, None | Some(None)));
                // A read that failed showed its leaf all the same.
                if !is_eviction {
                    leaves.push(leaf);
                    since_eviction += 1;
                }
            }
            Operation::Prefetch | Operation::Flush => unreachable!("left out"),
        }
    }
    leaves
}

/// The calls for buckets of blocks; an empty one is a crash.
fn calls(view: &[Seen]) -> Vec<Vec<Event>> {
    let mut calls: Vec<Vec<Event>> = Vec::new();
    for seen in view {
        match seen {
            Seen::Crash => calls.push(Vec::new()),
            Seen::Event(event) => {
                let is_of_blocks = event.piece.is_some_and(|piece| piece.tree == DATA_TREE);
                if !is_of_blocks || event.operation == Operation::Prefetch {
                    continue;
                }
                match calls.last_mut() {
                    Some(call) if call.last().is_some_and(|last| last.trip == event.trip) => {
                        call.push(*event);
                    }
                    _ => calls.push(vec![*event]),
                }
            }
        }
    }
    calls
}

/// A call for a piece without its place, or a crash.
type Look = Option<(u64, Operation, Option<(TreeId, u8, Part)>, u64)>;

fn assert_alike([one, other]: &[Vec<Look>; 2], what: &str) {
    let first = one.iter().zip(other).position(|(one, other)| one != other);
    let differing = first.map(|at| (at, one[at], other[at]));
    assert_eq!((differing, one.len()), (None, other.len()), "{what}");
}

/// All that may not depend on what was done: everything but which path it was.
fn looks(view: &[Seen]) -> Vec<Look> {
    let look = |event: &Event| {
        let place = event.piece.map(|piece| (piece.tree, piece.bucket.level(), piece.part));
        (event.trip, event.operation, place, event.bytes)
    };
    view.iter()
        .map(|seen| match seen {
            Seen::Event(event) => Some(look(event)),
            Seen::Crash => None,
        })
        .collect()
}
