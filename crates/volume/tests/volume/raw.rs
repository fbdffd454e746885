//! Across crashes, storage sees of a volume only the number of accesses, and repetitions of
//! accesses that it has seen.

use std::collections::HashSet;

use crate::support::bench::{Bench, is_repetition, read};
use crate::support::seen::{DATA_TREE, assert_alike, looks};
use oblivio_core::store::Piece;
use oblivio_core::view::Operation;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, OpKind, StoreEvent, Survival};
use oblivio_volume::{SyncMoves, Volume, VolumeError};
use rand::RngExt;

/// Level of the leaves. There are enough leaves that few repeat by chance.
const LEAF_LEVEL: u8 = 10;

/// Maximum number of equal pairs by chance among about a hundred pairs of leaves. With 1024 leaves,
/// one in ten tests of that length has an equal pair.
const EQUAL_BY_CHANCE_MAX: usize = 2;

fn volume(sync_moves: SyncMoves) -> SmallVolume {
    SmallVolume { leaf_level: LEAF_LEVEL, sync_moves, ..SmallVolume::default() }
}

/// Volumes with all of the position map on the client, and with most of it in the tree. In the
/// second case, too, the requested blocks are close to each other, so the number of accesses is the
/// same.
fn volumes(sync_moves: SyncMoves) -> [SmallVolume; 2] {
    let in_tree = SmallVolume::default().with_map_in_tree();
    [volume(sync_moves), SmallVolume { leaf_level: LEAF_LEVEL, sync_moves, ..in_tree }]
}

// ───────────────────────────── leaves across crashes ─────────────────────────────

#[test]
fn a_leaf_is_shown_twice_only_where_a_sequence_is_repeated() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::None),
        (SyncMoves::BeforeReads, Survival::All),
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        // A client that is killed loses nothing, so it shows nothing twice.
        (SyncMoves::AtFlush, Survival::All),
    ] {
        for volume in volumes(sync_moves) {
            let mut tried = 0;
            let mut equal = 0;
            for crash_at in (0..240).step_by(4) {
                let mut bench = Bench::new(volume, crash_at);
                bench.access_one_block_until_the_crash(InjectedFault::CrashAt(crash_at));
                bench.world.crash(&mut bench.coins, survival);
                let shown = bench.leaves();
                equal += usize::from(bench.recovers_and_shows_the_last_leaf_again(&shown));
                tried += 1;
            }
            assert!(equal <= EQUAL_BY_CHANCE_MAX, "{volume:?} {survival:?}: {equal} of {tried}");
        }
    }
}

/// Reads overlap: while storage reads the paths of some accesses, the moves of the next accesses
/// become durable. Storage must not see the next paths before that.
#[test]
fn a_leaf_is_shown_twice_only_where_a_sequence_is_repeated_if_reads_overlap() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::None),
        (SyncMoves::BeforeReads, Survival::All),
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::All),
    ] {
        let setup = volume(sync_moves);
        let mut equal = 0;
        for crash_at in 0..240 {
            let mut bench = Bench::new(setup, crash_at);
            bench.begin_reads_of_one_block_until_the_crash(InjectedFault::CrashAt(crash_at));
            bench.world.crash(&mut bench.coins, survival);
            let shown = bench.leaves();
            equal += usize::from(bench.recovers_and_shows_the_last_leaf_again(&shown));
        }
        assert!(equal <= EQUAL_BY_CHANCE_MAX, "{setup:?} {survival:?}: {equal}");
    }
}

/// Every announced leaf is also read, at the latest by the recovery after a crash: an announcement
/// shows a leaf to storage as a read does.
#[test]
fn no_leaf_that_was_announced_is_forgotten() {
    let setup = volume(SyncMoves::BeforeReads);
    let spare = 1 << setup.tree_top_levels;
    let mut all = 0;
    for crash_at in 0..240 {
        let mut bench = Bench::new(setup, crash_at);
        bench.world.take_view();
        bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut bench.coins);
        if let Ok((mut volume, _)) = bench.open() {
            let windows: [&[u64]; 2] = [&[1, 2, 3, 4], &[5, 6, 7]];
            let _ = match crash_at % 2 {
                0 => overlapping(&mut volume, &windows),
                _ => (0..)
                    .try_for_each(|_| windows.iter().try_for_each(|it| together(&mut volume, it))),
            };
        }
        bench.world.crash(&mut bench.coins, Survival::None);
        bench.open().unwrap();
        let view = bench.world.take_view();
        let places = |operation| {
            let events = view.iter().filter_map(move |seen| match seen {
                StoreEvent::Event(event) if event.operation == operation => event.piece,
                _ => None,
            });
            let of_leaves =
                |piece: &Piece| piece.tree == DATA_TREE && piece.bucket.level() > LEAF_LEVEL;
            events.filter(of_leaves).map(|piece| piece.bucket.index())
        };
        let read: HashSet<_> = places(Operation::Read).collect();
        let announced: Vec<_> = places(Operation::Prefetch).collect();
        all += announced.len();
        // An eviction in between moves a bucket along its ring: its new bucket is read instead.
        let leaves = 1 << LEAF_LEVEL;
        let is_read = |place: &u64| {
            read.contains(place) || read.contains(&((place + leaves) % (leaves + spare)))
        };
        assert!(announced.iter().all(is_read), "crash at {crash_at}");
    }
    assert!(all > 1000, "{all}");
}

/// A leaf that recovery has shown must not be forgotten if the power fails during recovery. After a
/// kill, recovery still finds records that were logged but not synced; a power loss can drop them.
#[test]
fn no_leaf_that_recovery_has_shown_is_forgotten() {
    let mut equal = 0;
    for crash_at in 0..240 {
        let mut bench = Bench::new(volume(SyncMoves::BeforeReads), crash_at);
        bench.access_one_block_until_the_crash(InjectedFault::CrashAt(crash_at));
        bench.world.crash(&mut bench.coins, Survival::All);
        let shown = bench.leaves();
        // Superblocks, the state and the anchor come first, then repeated accesses.
        let in_recovery = bench.coins.random_range(12..30);
        bench.world.plan(&[InjectedFault::CrashAt(in_recovery)], &mut bench.coins);
        let _ = bench.open();
        bench.world.crash(&mut bench.coins, Survival::None);
        // A leaf that the first recovery has shown, and no access before it.
        let in_recovery = bench.leaves().split_off(shown.len());
        let new = in_recovery.into_iter().find(|leaf| !shown.contains(leaf));
        let again = bench.recovers_and_shows_the_last_leaf_again(&shown);
        equal += usize::from(again || new.is_some_and(|new| bench.leaves().last() == Some(&new)));
    }
    assert!(equal <= EQUAL_BY_CHANCE_MAX, "{equal}");
}

/// The cost of `--sync-moves flush`, as the threat model states it. If this failed, the statement
/// would be wrong, and the tests above could not detect a repeated leaf.
#[test]
fn moves_that_were_not_synced_are_forgotten_by_a_power_loss() {
    let mut equal = 0;
    for crash_at in (100..240).step_by(4) {
        let mut bench = Bench::new(volume(SyncMoves::AtFlush), crash_at);
        bench.access_one_block_until_the_crash(InjectedFault::CrashAt(crash_at));
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

// ───────────────────────────── two histories ─────────────────────────────

/// Runs step `step` of a workload.
type Workload = fn(&mut Volume, step: u64) -> Result<(), VolumeError>;

const READS_OF_ONE_BLOCK: Workload = |volume, _| read(volume, 7);
const WRITES_TO_ALL_BLOCKS: Workload = |volume, step| {
    let data = [step as u8; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address: step * 5 % BLOCKS, op: Op::Write(&data) }])
};

#[test]
fn two_workloads_of_one_length_look_alike_across_crashes() {
    let syncs = [SyncMoves::BeforeReads, SyncMoves::AtFlush];
    for volume in syncs.into_iter().flat_map(volumes) {
        for survival in [Survival::None, Survival::All] {
            for steps in [0, 1, 11, 12, 13, 50] {
                // State files that fill up soon with the data of writes, and never with reads.
                let volume = SmallVolume { state_file_bytes_max: 5_000, ..volume };
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
                assert_alike(&views, &format!("{volume:?} {survival:?} {steps}"));
            }
        }
    }
}

// ───────────────────────────── blocks that are on the client ─────────────────────────────

/// If the owner allows it, a request for a block on the client makes no access. Its write still
/// survives a crash.
#[test]
fn blocks_on_the_client_make_an_access_unless_the_owner_says_otherwise() {
    for (tree_top_ways, in_tree) in [(0, false), (2, false), (0, true), (2, true)] {
        let volume = SmallVolume { tree_top_ways, tree_top_levels: 4, ..SmallVolume::default() };
        let volume = if in_tree { volume.with_map_in_tree() } else { volume };
        let mut bench = Bench::new(volume, 1);
        let before = bench.leaves().len();
        let (mut volume, _) = bench.open().unwrap();
        for step in 0..100u8 {
            let data = [step; BLOCK_BYTES as usize];
            let address = u64::from(step % 3);
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        volume.flush().unwrap();
        bench.world.crash(&mut bench.coins, Survival::None);
        drop(volume);
        let accesses = bench.leaves().len() - before;
        if tree_top_ways == 0 {
            assert_eq!(accesses, 100);
        } else {
            assert!((3..60).contains(&accesses), "{accesses}");
        }
        let (mut volume, _) = bench.open().unwrap();
        for address in 0..3 {
            let mut block = [0; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Read(&mut block) }]).unwrap();
            assert_eq!(block[0], [99, 97, 98][address as usize]);
        }
    }
}

// ───────────────────────────── a volume and its view ─────────────────────────────

/// Like [`no_leaf_that_recovery_has_shown_is_forgotten`], but after a failed sync of the log, whose
/// records may be in a cache only. The volume is opened again on the same machine, and the power
/// fails during recovery.
#[test]
fn no_leaf_that_recovery_has_shown_is_forgotten_after_a_failed_sync() {
    let setup = volume(SyncMoves::BeforeReads);
    let (mut tried, mut equal) = (0, 0);
    for seed in 0..1000 {
        let mut bench = Bench::new(setup, seed);
        // Leaves that are shown again detect a client that forgets what it has shown.
        bench.evictions_forgotten_max = 1 << setup.tree_top_levels;
        bench.world.plan(&[InjectedFault::FailAt(seed % 250)], &mut bench.coins);
        let Ok((mut volume, _)) = bench.open() else { continue };
        let has_failed = (0..150).any(|_| read(&mut volume, 0).is_err());
        drop(volume);
        let failure = bench.world.first_failure().map(|failure| failure.kind);
        if !has_failed || failure != Some(OpKind::FileSync) {
            continue;
        }
        let shown = bench.leaves().len();
        let crash_at = bench.coins.random_range(12..40);
        bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut bench.coins);
        let _ = bench.open();
        bench.world.crash(&mut bench.coins, Survival::None);
        let leaves = bench.leaves();
        let (before, in_recovery) = leaves.split_at(shown);
        let is_new = |leaf: &&u64| !before.contains(leaf);
        let Some(new) = in_recovery.iter().find(is_new).copied() else { continue };
        let Ok((mut volume, _)) = bench.open() else { continue };
        let shown = bench.leaves().len();
        read(&mut volume, 0).unwrap();
        tried += 1;
        equal += usize::from(bench.leaves()[shown] == new);
    }
    assert!(tried >= 10 && equal <= EQUAL_BY_CHANCE_MAX, "{equal} of {tried}");
}

/// Trims make no accesses. To storage, an opening with trims in the log looks like one without.
#[test]
fn an_opening_looks_alike_whether_blocks_were_trimmed() {
    let view = |trims: u64| {
        let mut bench = Bench::new(volume(SyncMoves::BeforeReads), 1);
        let (mut volume, _) = bench.open().unwrap();
        (0..trims).for_each(|block| volume.forget(block..block + 1).unwrap());
        volume.flush().unwrap();
        drop(volume);
        bench.world.crash(&mut bench.coins, Survival::All);
        bench.world.take_view();
        bench.open().unwrap();
        looks(&bench.world.take_view())
    };
    assert_alike(&[view(0), view(20)], "no trims and twenty");
}

/// Reads windows of blocks in turn until an error, and begins each window before the previous one
/// is finished.
fn overlapping(volume: &mut Volume, windows: &[&[u64]]) -> Result<(), VolumeError> {
    let mut begun: Option<&[u64]> = None;
    for window in windows.iter().copied().cycle() {
        if volume.reads_to_begin_max()? >= window.len() {
            volume.begin_reads(&[window])?;
            finish(volume, begun.replace(window))?;
        } else {
            // A checkpoint must come first.
            finish(volume, begun.take())?;
            together(volume, window)?;
        }
    }
    Ok(())
}

fn finish(volume: &mut Volume, begun: Option<&[u64]>) -> Result<(), VolumeError> {
    let Some(window) = begun else { return Ok(()) };
    let mut data: Vec<_> = window.iter().map(|_| WipedBytes::zeros(BLOCK_BYTES as usize)).collect();
    volume.finish_reads(&mut data)
}

fn together(volume: &mut Volume, window: &[u64]) -> Result<(), VolumeError> {
    let mut data = vec![[0; BLOCK_BYTES as usize]; window.len()];
    let batch = window.iter().zip(&mut data);
    let batch = batch.map(|(address, data)| Access { address: *address, op: Op::Read(data) });
    volume.access(&mut batch.collect::<Vec<_>>())
}

impl Bench {
    /// Accesses one block until the crash. Each access shows the leaf that the previous one has
    /// drawn.
    pub(crate) fn access_one_block_until_the_crash(&mut self, crash: InjectedFault) {
        self.world.plan(&[crash], &mut self.coins);
        let Ok((mut volume, _)) = self.open() else { return };
        while read(&mut volume, 0).is_ok() {}
        assert!(self.world.is_off());
    }

    /// Overlaps reads of one block until the crash: each begins before the previous one is made.
    fn begin_reads_of_one_block_until_the_crash(&mut self, crash: InjectedFault) {
        self.world.plan(&[crash], &mut self.coins);
        let Ok((mut volume, _)) = self.open() else { return };
        assert!(overlapping(&mut volume, &[&[0], &[0]]).is_err());
        assert!(self.world.is_off());
    }

    /// Opens the volume, whose recovery repeats accesses. Storage must see `shown` again from some
    /// point on, and then at most two new leaves: accesses that were logged but not made.
    /// Then accesses the same block once more. Returns whether storage sees the last leaf again.
    fn recovers_and_shows_the_last_leaf_again(&mut self, shown: &[u64]) -> bool {
        let before = self.leaves().len();
        let (mut volume, recovery) = self.open().unwrap();
        let repeated = self.leaves().split_off(before);
        assert_eq!(repeated.len() as u64, recovery.accesses);
        assert!(is_repetition(&repeated, shown, 2), "{repeated:?} after {shown:?}");
        let last = repeated.last().or(shown.last());
        read(&mut volume, 0).unwrap();
        self.leaves().last() == last
    }
}
