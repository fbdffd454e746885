//! A volume on rORAM: what storage sees of ranges, and which requests become ranges.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use oblivio_core::Op;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::TreeId;
use oblivio_core::view::{Event, Operation};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, EVICT_PERIOD, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{StoreEvent, Survival, World};
use oblivio_testkit::statistics::{Verdicts, histogram, serial_correlation, uniformity};
use oblivio_volume::device::{BlockDevice, DiskOp, Request};
use oblivio_volume::{Disk, DiskOptions, Extent, Volume, VolumeError, VolumeErrorKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::bench::{Bench, read, write};
use crate::support::rescued::rescue_of;
use crate::support::seen::{assert_alike, looks};

const CLASS: u8 = 3;
const RANGE: u64 = 1 << CLASS;
const BYTES: usize = BLOCK_BYTES as usize;

/// The trees that hold the slots of blocks, and of ranges.
const TREES: [TreeId; 2] = [TreeId(2), TreeId(5)];

fn volume() -> SmallVolume {
    let scheme = SmallScheme::Range { class: CLASS };
    SmallVolume { scheme, tree_top_levels: 3, leaf_level: 6, blocks: 76, ..SmallVolume::default() }
}

fn made() -> (World, Volume) {
    let world = volume().world();
    let volume = volume().create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    (world, volume)
}

fn range(number: u64) -> Extent {
    Extent { first: number * RANGE, class: CLASS }
}

/// Reads a range, or writes the blocks for which `fill` returns a byte.
fn access(
    volume: &mut Volume,
    extent: Extent,
    fill: impl Fn(u64) -> Option<u8>,
) -> Result<Vec<Vec<u8>>, VolumeError> {
    let writes: Vec<_> =
        extent.blocks().map(|block| fill(block).map(|fill| vec![fill; BYTES])).collect();
    let mut data = vec![vec![0xee; BYTES]; extent.count()];
    let ops = writes.iter().zip(&mut data);
    let ops = ops.map(|(new, data)| new.as_ref().map_or(Op::Read(data), |new| Op::Write(new)));
    volume.access_range(extent, &mut ops.collect::<Vec<_>>())?;
    Ok(data)
}

// ───────────────────────────── what storage sees ─────────────────────────────

/// Makes an access with the given step number: to a range if the flag is set, otherwise to a block.
type Workload = fn(&mut Volume, u64, bool);

const WORKLOADS: [(&str, Workload); 6] = [
    ("reads of one range", |volume, _, is_range| match is_range {
        true => drop(access(volume, range(1), |_| None).unwrap()),
        false => read(volume, 9).unwrap(),
    }),
    ("reads of unwritten blocks", |volume, step, is_range| match is_range {
        true => drop(access(volume, range(step % 9), |_| None).unwrap()),
        false => read(volume, step % 76).unwrap(),
    }),
    ("writes to one range", |volume, step, is_range| match is_range {
        true => drop(access(volume, range(2), |_| Some(step as u8)).unwrap()),
        false => write(volume, 17, 3).unwrap(),
    }),
    ("writes to some blocks of each range", |volume, step, is_range| match is_range {
        true => {
            drop(access(volume, range(step % 9), |block| (block % 3 == 0).then_some(7)).unwrap());
        }
        false => write(volume, step % 76, 3).unwrap(),
    }),
    ("the ends of the disk", |volume, step, is_range| match is_range {
        true => drop(access(volume, range(step % 2 * 8), |_| Some(1)).unwrap()),
        false => read(volume, step % 2 * 75).unwrap(),
    }),
    ("writes that are trimmed and flushed", |volume, step, is_range| {
        match is_range {
            true => drop(access(volume, range(4), |_| Some(step as u8)).unwrap()),
            false => write(volume, 35, 3).unwrap(),
        }
        volume.forget(33..39).unwrap();
        volume.flush().unwrap();
    }),
];

/// Accesses to ranges of the same classes, in the same order, look alike to storage, except for the
/// paths that are read.
#[test]
fn what_storage_sees_follows_from_the_classes_alone() {
    for seed in 0..4 {
        let views = WORKLOADS.map(|(name, workload)| {
            let mut bench = Bench::new(volume(), seed);
            let mut classes = StdRng::seed_from_u64(seed + 100);
            for survival in [Survival::All, Survival::None] {
                let (mut volume, _) = bench.open().unwrap();
                for step in 0..30 {
                    workload(&mut volume, step, classes.random());
                }
                volume.flush().unwrap();
                bench.world.crash(&mut StdRng::seed_from_u64(1), survival);
            }
            bench.open().unwrap().0.close().unwrap();
            (name, looks(&bench.world.view()))
        });
        assert!(views[0].1.len() > 1000);
        for (name, view) in &views[1..] {
            assert_alike(&[views[0].1.clone(), view.clone()], name);
        }
    }
}

/// The reads and writes of slots, without announcements: for each call, tree and level, the
/// operation and the places.
fn calls(world: &World) -> Vec<(Operation, TreeId, u8, Vec<u64>)> {
    calls_of(world, &TREES)
}

fn calls_of(world: &World, trees: &[TreeId]) -> Vec<(Operation, TreeId, u8, Vec<u64>)> {
    let mut calls: BTreeMap<(u64, TreeId, u8), (Operation, Vec<u64>)> = BTreeMap::new();
    for seen in world.take_view() {
        let StoreEvent::Event(Event { trip, operation, piece: Some(piece), .. }) = seen else {
            continue;
        };
        if operation != Operation::Prefetch && trees.contains(&piece.tree) {
            let call = calls.entry((trip, piece.tree, piece.bucket.level()));
            call.or_insert((operation, Vec::new())).1.push(piece.bucket.index());
        }
    }
    calls.into_iter().map(|((_, tree, level), (op, places))| (op, tree, level, places)).collect()
}

/// The place of a leaf's bucket on a level when eviction `g` begins.
fn place_after(g: u64, leaf: u64, level: u8) -> u64 {
    let of_level = 1u64 << level;
    let last = g - 1 - (g - 1).wrapping_sub(leaf) % of_level;
    last % (of_level + (1 << volume().tree_top_levels))
}

/// The leaf whose bucket is in this place of the last level.
fn leaf_at(g: u64, place: u64) -> u64 {
    let level = volume().leaf_level;
    (0..1 << level).find(|leaf| place_after(g, *leaf, level) == place).unwrap()
}

/// Piece by piece, a range is read on consecutive paths that begin with a fresh one, in the tree of
/// its class. Then both trees make the due evictions, whose reads and writes follow from their
/// count.
#[test]
fn a_range_is_read_from_a_fresh_path_on_and_evictions_follow_from_their_count() {
    let (world, mut volume) = made();
    let SmallVolume { leaf_level, tree_top_levels, .. } = self::volume();
    let (leaves, spare) = (1u64 << leaf_level, 1u64 << tree_top_levels);
    let levels = tree_top_levels..=leaf_level;
    let mut coins = StdRng::seed_from_u64(5);
    let (mut blocks, mut shown) = (0, [Vec::new(), Vec::new()]);
    for step in 0..4000u64 {
        world.take_view();
        let class = if coins.random() { CLASS } else { 0 };
        // One block is read, and one range read or written, again and again.
        match class {
            0 => read(&mut volume, 9).unwrap(),
            _ => drop(access(&mut volume, range(1), |_| (step % 3 == 0).then_some(1)).unwrap()),
        }
        let paths = 1u64 << class;
        let tree = TREES[usize::from(class > 0)];
        let (before, after) =
            (blocks / u64::from(EVICT_PERIOD), (blocks + paths) / u64::from(EVICT_PERIOD));
        blocks += paths;
        let (g, end) = (leaves + before, leaves + after);
        let ring = |level: u8| (1u64 << level) + spare;
        let place = |leaf, level| place_after(g, leaf, level);
        let calls = calls(&world);
        let (reads, evictions) = calls.split_at(levels.clone().count());
        let first = leaf_at(g, reads.last().unwrap().3[0]);
        shown[usize::from(class > 0)].push(first);
        for ((op, of_tree, level, places), expected) in reads.iter().zip(levels.clone()) {
            let on_level =
                (0..paths.min(1 << expected)).map(|more| place((first + more) % leaves, expected));
            assert_eq!(
                (*op, *of_tree, *level),
                (Operation::Read, tree, expected + 1),
                "step {step}"
            );
            assert!(on_level.eq(places.iter().copied()), "step {step}, level {level}");
        }
        let mut expected = Vec::new();
        if end > g {
            for tree in TREES {
                for op in [Operation::Read, Operation::Write] {
                    for level in levels.clone() {
                        let places = (g..end).map(|e| match op {
                            Operation::Read => place(e % leaves, level),
                            _ => e % ring(level),
                        });
                        expected.push((op, tree, level + 1, places.collect()));
                    }
                }
            }
        }
        assert_eq!(evictions, expected, "step {step}");
    }
    let mut verdicts = Verdicts::new(1e-6);
    for (shown, what) in shown.into_iter().zip(["blocks", "ranges"]) {
        let counts = histogram(shown.iter().copied(), leaves, leaves);
        verdicts.add(format!("{what} uniform"), uniformity(&counts));
        verdicts.add(format!("{what} uncorrelated"), serial_correlation(&shown));
    }
    verdicts.conclude();
}

/// The announcements for a range and for the evictions after it name exactly the pieces that are
/// read.
#[test]
fn what_is_announced_is_what_is_read() {
    let (world, mut volume) = made();
    for step in 0..20 {
        world.take_view();
        volume.begin_extents(&[vec![range(step % 9)]]).unwrap();
        let block = || vec![0; BYTES].into();
        volume.finish_reads(&mut (0..RANGE).map(|_| block()).collect::<Vec<_>>()).unwrap();
        let of = |operation| {
            let events = world.view().into_iter().filter_map(|seen| match seen {
                StoreEvent::Event(event) if event.operation == operation => event.piece,
                _ => None,
            });
            events.filter(|piece| piece.tree == TREES[1]).collect::<Vec<_>>()
        };
        let (announced, read) = (of(Operation::Prefetch), of(Operation::Read));
        assert!(!announced.is_empty());
        assert_eq!(announced, read, "step {step}");
        if volume.reads_to_begin_max().unwrap() < RANGE as usize {
            access(&mut volume, range(0), |_| None).unwrap();
        }
    }
}

/// Begun reads look alike to storage, whatever was written before, and so do announcements made
/// while other ranges are read.
#[test]
fn reads_that_are_begun_look_alike() {
    let views = [0, 1, 2].map(|what| {
        let (world, mut volume) = made();
        match what {
            0 => (),
            1 => drop(access(&mut volume, range(5), |_| Some(1)).unwrap()),
            _ => drop(access(&mut volume, range(5), |block| (block < 43).then_some(1)).unwrap()),
        }
        if what == 0 {
            access(&mut volume, range(1), |_| None).unwrap();
        }
        world.take_view();
        volume.begin_extents(&[vec![Extent::of_block(3)], vec![range(5)], vec![range(8)]]).unwrap();
        for blocks in [1, RANGE, RANGE] {
            let block = || vec![0; BYTES].into();
            volume.finish_reads(&mut (0..blocks).map(|_| block()).collect::<Vec<_>>()).unwrap();
        }
        looks(&world.take_view())
    });
    assert!(views[0].iter().flatten().any(|look| look.1 == Operation::Prefetch));
    assert_alike(&[views[0].clone(), views[1].clone()], "all blocks written");
    assert_alike(&[views[0].clone(), views[2].clone()], "some blocks written");
}

/// Storage that changes a bucket must not learn from the answer what the bucket held or what was
/// requested.
#[test]
fn whether_and_when_an_access_fails_does_not_depend_on_what_it_is_for() {
    const REQUESTS: [(&str, Workload); 5] = [
        ("blocks just written", |volume, _, _| drop(access(volume, range(3), |_| None))),
        ("blocks written long ago", |volume, _, _| drop(access(volume, range(1), |_| None))),
        ("blocks never written", |volume, _, _| drop(access(volume, range(7), |_| None))),
        ("a write", |volume, _, _| drop(access(volume, range(1), |_| Some(9)))),
        ("trimmed blocks", |volume, _, _| drop(access(volume, range(2), |_| None))),
    ];
    let mut bench = Bench::new(volume(), 1);
    let (mut volume, _) = bench.open().unwrap();
    for number in [1, 2] {
        access(&mut volume, range(number), |_| Some(5)).unwrap();
    }
    (0..150).for_each(|step| access(&mut volume, range(step % 6 + 3), |_| None).map(drop).unwrap());
    access(&mut volume, range(3), |_| Some(6)).unwrap();
    volume.forget(16..24).unwrap();
    volume.close().unwrap();
    let good = bench.world.snapshot();
    let mut failed = 0;
    // Each run changes another place of the first level in storage.
    for index in 0..16 {
        let answers = REQUESTS.map(|(name, ask)| {
            bench.world.restore_store(&good);
            bench.world.restore_dir(&good);
            let coins = StdRng::seed_from_u64(1);
            let (mut volume, _) =
                bench.setup.open(bench.world.store(), bench.world.dir(), coins).unwrap();
            let bucket = BucketId::new(4, index);
            bench.world.flip_bit(TREES[1], bucket, 40, 1);
            bench.world.take_view();
            ask(&mut volume, 0, true);
            let view = looks(&bench.world.take_view());
            let first = view.first().copied().flatten().map_or(0, |look| look.0);
            let view: Vec<_> = view
                .into_iter()
                .map(|look| look.map(|(trip, op, place, bytes)| (trip - first, op, place, bytes)))
                .collect();
            (name, volume.access(&mut []).is_err(), view)
        });
        failed += usize::from(answers[0].1);
        for (name, has_failed, view) in &answers[1..] {
            assert_eq!(*has_failed, answers[0].1, "{name}, {index}");
            assert_alike(&[answers[0].2.clone(), view.clone()], name);
        }
    }
    assert!(failed >= 8, "{failed}");
}

/// `Volume::check` detects a changed bit in every current bucket. Each level of a tree also has
/// spare places, whose contents do not matter.
#[test]
fn a_check_finds_any_bucket_that_was_changed() {
    let mut bench = Bench::new(volume(), 1);
    let (mut volume, _) = bench.open().unwrap();
    // Every bucket of the last level has been written.
    (0..60).for_each(|step| drop(access(&mut volume, range(step % 9), |_| Some(1)).unwrap()));
    volume.close().unwrap();
    let good = bench.world.snapshot();
    let SmallVolume { leaf_level, tree_top_levels, .. } = self::volume();
    let (mut found, mut buckets) = (0, 0);
    for tree in [2, 4, 5, 6].map(TreeId) {
        for level in tree_top_levels..=leaf_level {
            buckets += 1u64 << level;
            for index in 0..(1u64 << level) + (1 << tree_top_levels) {
                bench.world.restore_store(&good);
                bench.world.restore_dir(&good);
                let bucket = BucketId::new(level + 1, index);
                bench.world.flip_bit(tree, bucket, 60, 3);
                let checked = bench.open().and_then(|(mut volume, _)| volume.check(&mut |_| ()));
                found += u64::from(checked.is_err_and(|it| it.kind() == VolumeErrorKind::Tampered));
            }
        }
    }
    assert_eq!(found, buckets);
}

/// Every tree has all blocks, so a block that is damaged in one tree is in the other. If both are
/// damaged, rescued blocks are right or reported as doubtful.
#[test]
fn a_rescue_takes_from_one_tree_what_another_has_lost() {
    let mut bench = Bench::new(volume(), 1);
    let (mut volume, _) = bench.open().unwrap();
    for round in [1, 50] {
        (0..76).for_each(|block| write(&mut volume, block, block as u8 + round).unwrap());
        (0..20).for_each(|step| drop(access(&mut volume, range(step % 9), |_| None).unwrap()));
    }
    volume.forget(20..22).unwrap();
    volume.close().unwrap();
    let sound = bench.world.snapshot();
    let SmallVolume { leaf_level, tree_top_levels, .. } = self::volume();
    let (mut lost, mut doubtful) = (0, 0);
    for (trees, level) in [&TREES[..1], &TREES[1..], &TREES[..]]
        .into_iter()
        .flat_map(|trees| (tree_top_levels..=leaf_level).map(move |level| (trees, level)))
    {
        bench.world.restore_store(&sound);
        for index in 0..(1 << level) + (1 << tree_top_levels) {
            trees.iter().for_each(|tree| {
                bench.world.flip_bit(*tree, BucketId::new(level + 1, index), 40, 1);
            });
        }
        let (target, rescued) = rescue_of(&bench.world, 76);
        let is_in = |ranges: &[std::ops::Range<u64>], block| {
            ranges.iter().any(|range| range.contains(&block))
        };
        for block in 0..76 {
            let is_listed = [&rescued.lost, &rescued.doubtful].map(|ranges| is_in(ranges, block));
            lost += u32::from(is_listed[0]);
            doubtful += u32::from(is_listed[1]);
            if is_listed == [false; 2] {
                let right = (!(20..22).contains(&block)).then(|| vec![block as u8 + 50; BYTES]);
                assert_eq!(target.0[block as usize], right, "block {block}, level {level}");
            }
        }
        if trees.len() == 1 {
            assert_eq!((lost, doubtful), (0, 0), "level {level} of {trees:?}");
        }
    }
    assert!(lost > 0 && doubtful > 0, "{lost} lost, {doubtful} doubtful");
}

// ───────────────────────────── what becomes a range ─────────────────────────────

/// A disk, and the world that shows how many blocks and ranges the disk has accessed.
struct Counted {
    world: World,
    disk: Disk,
}

impl Counted {
    fn new(cache_blocks_max: u64) -> Self {
        Self::with(made(), cache_blocks_max)
    }

    fn with((world, volume): (World, Volume), cache_blocks_max: u64) -> Self {
        let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
        let options = DiskOptions::default().with_cache_bytes_max(cache_bytes_max);
        let disk = Disk::start(volume, &options).unwrap();
        Self { world, disk }
    }

    fn call(&self, op: DiskOp) -> Vec<u8> {
        let (sender, answer) = sync_channel(1);
        let done = Box::new(move |answer| drop(sender.send(answer)));
        self.disk.submit(Request { op, done });
        answer.recv().unwrap().unwrap().to_vec()
    }

    fn read(&self, block: u64, blocks: u64) -> Vec<u8> {
        let (offset, bytes) = (block * BYTES as u64, (blocks * BYTES as u64) as u32);
        self.call(DiskOp::Read { offset, bytes })
    }

    fn write(&self, block: u64, blocks: u64, fill: u8) {
        let data = vec![fill; blocks as usize * BYTES].into();
        self.call(DiskOp::Write { offset: block * BYTES as u64, data, durable: false });
    }

    /// Submits all requests at once, and waits until the disk has answered them without an error.
    fn ask_together(&self, ops: impl Iterator<Item = DiskOp>) {
        let (sender, answers) = sync_channel(64);
        let mut submitted = 0;
        for op in ops {
            let sender = sender.clone();
            let done = Box::new(move |answer: Result<_, _>| sender.send(answer.is_ok()).unwrap());
            self.disk.submit(Request { op, done });
            submitted += 1;
        }
        drop(sender);
        assert_eq!(answers.iter().filter(|is_ok| *is_ok).count(), submitted);
    }

    /// Accesses to blocks and to ranges since the last call.
    fn accesses(&self) -> [usize; 2] {
        self.accesses_of(TREES)
    }

    fn accesses_of<const N: usize>(&self, trees: [TreeId; N]) -> [usize; N] {
        let levels = volume().leaf_level - volume().tree_top_levels + 1;
        let calls = calls_of(&self.world, &trees);
        trees.map(|tree| {
            let count = |op| calls.iter().filter(|call| call.0 == op && call.1 == tree).count();
            // Each batch of evictions has as many reads as writes.
            (count(Operation::Read) - count(Operation::Write)) / usize::from(levels)
        })
    }
}

#[test]
fn a_read_that_covers_a_range_reads_it_at_once_whatever_is_cached() {
    let disk = Counted::new(40);
    disk.write(0, 76, 5);
    disk.call(DiskOp::Flush);
    // The cache is filled with other blocks.
    disk.read(40, 36);
    disk.accesses();
    assert_eq!(disk.read(8, RANGE), vec![5; RANGE as usize * BYTES]);
    assert_eq!(disk.accesses(), [0, 1]);
    assert_eq!(disk.read(8, RANGE), vec![5; RANGE as usize * BYTES]);
    assert_eq!(disk.accesses(), [0, 0], "all blocks are cached");
    // The same if the first blocks of the range are cached.
    for at_hand in [1, 3, RANGE - 1] {
        let disk = Counted::new(40);
        disk.read(16, at_hand);
        disk.accesses();
        disk.read(16, RANGE);
        assert_eq!(disk.accesses(), [0, 1], "{at_hand}");
    }
    // A part of the next range is cached, and newer than in storage.
    disk.write(17, 1, 6);
    let read = disk.read(15, RANGE + 2);
    // On a slow machine, dirty blocks may have been written back meanwhile.
    assert_eq!(disk.accesses()[1], 1);
    let fills: Vec<_> = read.chunks(BYTES).map(|block| block[0]).collect();
    assert_eq!(fills, [5, 5, 6, 5, 5, 5, 5, 5, 5, 5]);
    // No range is covered.
    let disk = Counted::new(40);
    disk.read(25, RANGE);
    assert_eq!(disk.accesses(), [RANGE as usize, 0]);
}

/// A read never overwrites newer data in the cache, even if storage cannot be read in advance
/// because a checkpoint is due.
#[test]
fn what_was_written_is_not_read_over() {
    let disk = Counted::new(64);
    for step in 0..90u64 {
        let number = step % 9;
        disk.write(number * RANGE + step % RANGE, 1, step as u8 + 1);
        let read = disk.read(number * RANGE, RANGE);
        assert_eq!(read[(step % RANGE) as usize * BYTES], step as u8 + 1, "step {step}");
    }
}

#[test]
fn a_range_is_written_at_once_if_all_of_it_is_dirty() {
    let disk = Counted::new(64);
    for fill in [5, 0] {
        disk.write(8, RANGE, fill);
        disk.call(DiskOp::Flush);
        assert_eq!(disk.accesses(), [0, 1]);
    }
    // All blocks are cached, and one is clean.
    disk.write(9, RANGE - 1, 4);
    disk.call(DiskOp::Flush);
    assert_eq!(disk.accesses(), [RANGE as usize - 1, 0]);
    // All blocks except one; and the end of the disk, where no range is complete.
    disk.write(17, RANGE - 1, 6);
    disk.write(72, 4, 7);
    disk.call(DiskOp::Flush);
    assert_eq!(disk.accesses(), [RANGE as usize - 1 + 4, 0]);
    assert_eq!(disk.read(72, 4), vec![7; 4 * BYTES]);
}

/// A volume in which each access is to a range.
fn fixed() -> SmallVolume {
    let scheme = SmallScheme::FixedRange { class: CLASS };
    SmallVolume { scheme, blocks: 72, ..volume() }
}

fn made_fixed() -> (World, Volume) {
    let world = fixed().world();
    let volume = fixed().create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    (world, volume)
}

/// Makes random requests to a disk and compares it with an array. `after_each` is called after
/// every request.
fn serve_like_an_array(disk: &Counted, blocks: usize, seed: u64, mut after_each: impl FnMut()) {
    let (mut coins, mut shadow) = (StdRng::seed_from_u64(seed), vec![0u8; blocks * BYTES]);
    for step in 0..400 {
        let first = coins.random_range(0..shadow.len());
        let most = (shadow.len() - first).min(20 * BYTES);
        let (offset, length) = (first as u64, coins.random_range(1..=most));
        let span = first..first + length;
        match coins.random_range(0..12) {
            0..5 => {
                let bytes = length as u32;
                let read = disk.call(DiskOp::Read { offset, bytes });
                assert!(read == shadow[span], "step {step}");
            }
            5..9 => {
                shadow[span.clone()].fill(step as u8);
                let data = vec![step as u8; length].into();
                disk.call(DiskOp::Write { offset, data, durable: step % 3 == 0 });
            }
            9 => {
                shadow[span.clone()].fill(0);
                disk.call(DiskOp::Zero { offset, bytes: length as u64, durable: false });
            }
            10 => drop(disk.call(DiskOp::Flush)),
            _ => {
                let whole = first.div_ceil(BYTES)..(first + length) / BYTES;
                if !whole.is_empty() {
                    shadow[whole.start * BYTES..whole.end * BYTES].fill(0);
                }
                disk.call(DiskOp::Trim { offset, bytes: length as u64, durable: false });
            }
        }
        after_each();
    }
    disk.disk.close().unwrap();
}

#[test]
fn all_accesses_are_to_ranges_of_one_class_whatever_is_asked() {
    // From a cache that is smaller than a range to one that is larger than the disk.
    for (cache_blocks_max, seed) in [(1, 1), (3, 2), (20, 3), (100, 4)] {
        let disk = Counted::with(made_fixed(), cache_blocks_max);
        let mut ranges = 0;
        serve_like_an_array(&disk, 72, seed, || {
            let accesses = disk.accesses();
            assert_eq!(accesses[0], 0);
            ranges += accesses[1];
        });
        assert!(ranges > 9, "{ranges}");
        assert_eq!(disk.accesses()[0], 0);
    }
}

/// A block that is trimmed while it is read ahead for a later request is read again for that
/// request, as a part of its range and not as a single block.
#[test]
fn what_left_the_cache_before_its_turn_is_read_by_ranges_too() {
    let disk = Counted::with(made_fixed(), 8);
    for round in 0..100u64 {
        let (sender, answers) = sync_channel(16);
        let (far, near) = (round * 7 % 72, (round * 7 + 35) % 72);
        let at = |block: u64| block * BYTES as u64;
        let bytes = BLOCK_BYTES;
        let write = |block| DiskOp::Write {
            offset: at(block),
            data: vec![1; BYTES].into(),
            durable: false,
        };
        let ops = [
            write(near),
            DiskOp::Read { offset: at(far), bytes },
            DiskOp::Read { offset: at((far + 16) % 72), bytes },
            DiskOp::Trim { offset: at(near), bytes: bytes.into(), durable: false },
            DiskOp::Read { offset: at(near), bytes },
        ];
        for (number, op) in ops.into_iter().enumerate() {
            let sender = sender.clone();
            let done = Box::new(move |answer| drop(sender.send((number, answer))));
            disk.disk.submit(Request { op, done });
        }
        drop(sender);
        for (number, answer) in answers {
            let answer = answer.unwrap();
            assert!(number != 4 || answer.iter().all(|byte| *byte == 0), "round {round}");
        }
    }
    disk.call(DiskOp::Flush);
    let [blocks, ranges] = disk.accesses();
    assert!(blocks == 0 && ranges > 100, "{blocks}, {ranges}");
}

#[test]
fn a_read_of_a_part_reads_the_range_and_so_does_a_write() {
    let disk = Counted::with(made_fixed(), 60);
    disk.read(9, 1);
    disk.read(10, 3);
    assert_eq!(disk.accesses(), [0, 1], "the second was cached");
    disk.read(15, 2);
    assert_eq!(disk.accesses(), [0, 1], "of the second range only");
    disk.write(33, 1, 5);
    // A block that was just written is cached.
    assert_eq!(disk.read(33, 1), vec![5; BYTES]);
    disk.call(DiskOp::Flush);
    assert_eq!(disk.accesses(), [0, 1]);
    // The data makes no difference: zeros are written, not trimmed.
    disk.write(32, RANGE, 0);
    disk.call(DiskOp::Flush);
    assert_eq!(disk.accesses(), [0, 1]);
}

/// At each tick the same number of ranges is accessed, and never a block: see also `schedule`.
#[test]
fn at_a_fixed_rate_all_accesses_are_to_ranges_of_one_class() {
    for (accesses, cache_blocks_max, seed) in [(1, 1, 1), (2, 20, 2), (3, 100, 3)] {
        let (world, volume) = made_fixed();
        let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
        let (disk, ticks) =
            Disk::start_without_clock(volume, cache_bytes_max, accesses, true).unwrap();
        let disk = Counted { world, disk };
        let (mut coins, mut shadow) = (StdRng::seed_from_u64(seed), vec![0u8; 72 * BYTES]);
        for step in 0..300u64 {
            let first = coins.random_range(0..shadow.len());
            let length = coins.random_range(1..=(shadow.len() - first).min(20 * BYTES));
            let (offset, span) = (first as u64, first..first + length);
            let (op, expected) = match coins.random_range(0..9) {
                0..4 => {
                    let bytes = length as u32;
                    (Some(DiskOp::Read { offset, bytes }), Some(shadow[span].to_vec()))
                }
                4..7 => {
                    shadow[span].fill(step as u8);
                    let data = vec![step as u8; length].into();
                    let durable = step % 3 == 0;
                    (Some(DiskOp::Write { offset, data, durable }), None)
                }
                7 => (Some(DiskOp::Flush), None),
                _ => (None, None),
            };
            if let Some(op) = op {
                let (sender, answer) = sync_channel(1);
                let done = Box::new(move |answer| drop(sender.send(answer)));
                disk.disk.submit(Request { op, done });
                // One after the other, because requests that wait together have no order.
                let answer = (0..5000).find_map(|_| {
                    ticks.tick();
                    assert_eq!(disk.accesses(), [0, accesses], "step {step}");
                    answer.try_recv().ok()
                });
                let answer = answer.expect("it starves").unwrap();
                assert!(expected.is_none_or(|expected| *answer == *expected), "step {step}");
            }
        }
        disk.disk.close().unwrap();
        assert_eq!(disk.accesses()[0], 0);
        let reopened = fixed().open(disk.world.store(), disk.world.dir(), coins);
        let disk = Counted::with((disk.world, reopened.unwrap().0), 100);
        assert!(disk.read(0, 72) == shadow, "the data survives closing");
    }
}

/// At each tick, an access reads consecutive paths from a fresh one on, both for an idle disk and
/// for repeated requests for one range.
#[test]
fn at_a_fixed_rate_every_range_is_read_from_a_fresh_path_on() {
    let mut verdicts = Verdicts::new(1e-6);
    for is_busy in [false, true] {
        let (world, volume) = made_fixed();
        let (disk, ticks) = Disk::start_without_clock(volume, 0, 1, true).unwrap();
        let leaf_level = self::volume().leaf_level;
        let leaves = 1u64 << leaf_level;
        let mut shown = Vec::new();
        for tick in 0..3000 {
            if is_busy {
                let done = Box::new(drop);
                disk.submit(Request { op: DiskOp::Read { offset: 0, bytes: 1 }, done });
            }
            world.take_view();
            ticks.tick();
            let g = leaves + tick * RANGE / u64::from(EVICT_PERIOD);
            let is_leaf = |call: &&(Operation, TreeId, u8, Vec<u64>)| {
                (call.0, call.1, call.2) == (Operation::Read, TREES[1], leaf_level + 1)
            };
            shown.push(leaf_at(g, calls(&world).iter().find(is_leaf).unwrap().3[0]));
        }
        let counts = histogram(shown.iter().copied(), leaves, leaves);
        verdicts.add(format!("uniform, {is_busy}"), uniformity(&counts));
        verdicts.add(format!("uncorrelated, {is_busy}"), serial_correlation(&shown));
    }
    verdicts.conclude();
}

/// Each range with a block of the request is accessed once, and again if a part of a block is
/// written.
#[test]
fn without_a_cache_each_range_of_a_request_is_an_access() {
    let disk = Counted::with(made_fixed(), 0);
    for fill in [3, 4] {
        disk.write(9, 1, fill);
        assert_eq!(disk.accesses(), [0, 1]);
        disk.write(6, RANGE + 3, fill + 1);
        assert_eq!(disk.accesses(), [0, 3]);
        assert_eq!(disk.read(6, RANGE + 3), vec![fill + 1; (RANGE as usize + 3) * BYTES]);
        assert_eq!(disk.accesses(), [0, 3]);
    }
    let data = vec![9; 10].into();
    disk.call(DiskOp::Write { offset: 7 * BYTES as u64 + 5, data, durable: true });
    assert_eq!(disk.accesses(), [0, 2]);
    let read = disk.read(7, 1);
    assert_eq!((read[4], read[5], read[14], read[15]), (5, 9, 9, 5));
}

// ───────────────────────────── requests as accesses of rORAM ─────────────────────────────

const CLASS_BETWEEN: u8 = 1;

/// The trees that hold the slots of blocks, of the middle ranges, and of the longest ranges.
const EXACT_TREES: [TreeId; 3] = [TreeId(2), TreeId(5), TreeId(7)];

/// A volume in which a request takes two ranges of at least its length.
fn exact() -> SmallVolume {
    let scheme = SmallScheme::ExactRange { between: CLASS_BETWEEN, class: CLASS };
    SmallVolume { scheme, ..fixed() }
}

fn made_exact() -> (World, Volume) {
    let world = exact().world();
    let volume = exact().create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    (world, volume)
}

/// Requests (first block, number of blocks) and the accesses that they take: of blocks, of middle
/// ranges, and of the longest ranges.
const EXACTLY: [(u64, u64, [usize; 3]); 9] = [
    (9, 1, [1, 0, 0]),
    (12, 2, [0, 2, 0]),
    (13, 2, [0, 2, 0]),
    (70, 2, [0, 2, 0]),
    (24, 3, [0, 0, 2]),
    (37, RANGE, [0, 0, 2]),
    (64, RANGE, [0, 0, 2]),
    (16, 2 * RANGE, [0, 0, 4]),
    (41, RANGE + 1, [1, 0, 2]),
];

#[test]
fn a_request_takes_two_ranges_that_are_as_long_wherever_it_lies() {
    for (first, blocks, expected) in EXACTLY {
        let disk = Counted::with(made_exact(), 100);
        disk.read(first, blocks);
        assert_eq!(disk.accesses_of(EXACT_TREES), expected, "{first}, {blocks}");
        disk.read(first, blocks);
        assert_eq!(disk.accesses_of(EXACT_TREES), [0; 3], "it is cached");
        for fill in [7, 0] {
            disk.write(first, blocks, fill);
            disk.call(DiskOp::Flush);
            assert_eq!(disk.accesses_of(EXACT_TREES), expected, "{first}, {blocks}, {fill}");
        }
        let uncached = Counted::with(made_exact(), 0);
        for _ in 0..2 {
            uncached.write(first, blocks, 6);
            assert_eq!(uncached.accesses_of(EXACT_TREES), expected, "{first}, {blocks}");
            assert_eq!(uncached.read(first, blocks), vec![6; blocks as usize * BYTES]);
            assert_eq!(uncached.accesses_of(EXACT_TREES), expected, "{first}, {blocks}");
        }
    }
}

/// If any block of a read is missing from the cache, the accesses follow from the length of the
/// read alone. Blocks that were read but not requested are not cached.
#[test]
fn cached_blocks_of_a_request_do_not_change_its_accesses() {
    for at_hand in [0..1, 3..8, 4..5, 7..8, 0..7] {
        let disk = Counted::with(made_exact(), 100);
        disk.write(8 + at_hand.start, at_hand.end - at_hand.start, 9);
        disk.call(DiskOp::Flush);
        disk.accesses_of(EXACT_TREES);
        disk.read(8, RANGE);
        assert_eq!(disk.accesses_of(EXACT_TREES), [0, 0, 2], "{at_hand:?}");
    }
    // The same for dirty blocks, which may be written back meanwhile.
    let disk = Counted::with(made_exact(), 100);
    disk.write(10, 1, 9);
    disk.read(8, 3);
    let [_, between, longest] = disk.accesses_of(EXACT_TREES);
    assert_eq!((between, longest), (0, 2));
    let disk = Counted::with(made_exact(), 100);
    // Only these blocks of the two ranges were requested.
    for first in [24, 28, 32, 36] {
        disk.read(first, 4);
        assert_eq!(disk.accesses_of(EXACT_TREES), [0, 0, 2], "{first}");
    }
}

/// A request is answered only after both of its ranges were read. Otherwise storage could see from
/// the time of the next request which range held the answer.
#[test]
fn no_request_is_answered_before_both_ranges_are_read() {
    for cache_blocks_max in [0, 1] {
        let disk = Counted::with(made_exact(), cache_blocks_max);
        for step in 0..60 {
            disk.read(step % 9 * RANGE, 4);
            assert_eq!(disk.accesses_of(EXACT_TREES), [0, 0, 2], "step {step}");
        }
    }
}

/// Requests that are served together are not merged into one range, even if their blocks are
/// adjacent.
#[test]
fn requests_that_wait_together_stay_apart() {
    for cache_blocks_max in [0, 100] {
        let disk = Counted::with(made_exact(), cache_blocks_max);
        disk.ask_together((0..40).map(|block| read_of(block, 1)));
        assert_eq!(disk.accesses_of(EXACT_TREES), [40, 0, 0], "cache of {cache_blocks_max}");
        // The blocks of one request lie in a range that another request reads.
        disk.ask_together((0..10).map(|step| read_of(40 + step % 2 * 4, 4)));
        let seen = disk.accesses_of(EXACT_TREES);
        let served = if cache_blocks_max == 0 { 10 } else { 2 };
        assert_eq!(seen, [0, 0, 2 * served], "cache of {cache_blocks_max}");
    }
    let uncached = Counted::with(made_exact(), 0);
    uncached.ask_together((0..40).map(|block| write_of(block, 1)));
    assert_eq!(uncached.accesses_of(EXACT_TREES), [40, 0, 0]);
    let fixed = Counted::with(made_fixed(), 0);
    for ask in [read_of, write_of] {
        fixed.ask_together((0..40).map(|block| ask(block, 1)));
        assert_eq!(fixed.accesses(), [0, 40]);
    }
}

fn read_of(block: u64, blocks: u32) -> DiskOp {
    DiskOp::Read { offset: block * BYTES as u64, bytes: blocks * BLOCK_BYTES }
}

fn write_of(block: u64, blocks: u32) -> DiskOp {
    let data = vec![3; (blocks * BLOCK_BYTES) as usize].into();
    DiskOp::Write { offset: block * BYTES as u64, data, durable: false }
}

/// Without a cache, a write first reads the blocks that it covers only in part. So storage sees
/// that it is a write, and which of its ends lie within blocks.
#[test]
fn a_write_of_parts_of_blocks_takes_what_it_reads_and_what_it_writes() {
    let bytes = BLOCK_BYTES as usize;
    for (offset, length, expected) in [
        (0, 8 * bytes, [0, 0, 2]),
        (5, 7 * bytes, [0, 0, 4]),
        (5, 8 * bytes - 5, [1, 0, 2]),
        (5, bytes, [0, 4, 0]),
        (5, 7, [2, 0, 0]),
    ] {
        let disk = Counted::with(made_exact(), 0);
        let data = vec![1; length].into();
        disk.call(DiskOp::Write { offset, data, durable: false });
        assert_eq!(disk.accesses_of(EXACT_TREES), expected, "{length} bytes at {offset}");
    }
}

/// A caller should split long requests every `RANGE` blocks, counted from the start of the disk.
/// With exact ranges it must count from the request's first block, because splits at the ends of
/// ranges would reveal to storage where ranges end.
#[test]
fn a_disk_says_how_requests_may_be_divided() {
    let division = |made| {
        let division = Counted::with(made, 40).disk.division();
        (u64::from(division.bytes) / BYTES as u64, division.from_request)
    };
    assert_eq!(division(made()), (RANGE, false));
    assert_eq!(division(made_fixed()), (RANGE, false));
    assert_eq!(division(made_exact()), (RANGE, true));
}

/// In trees that are too small for their blocks, evictions do not help. The volume must report an
/// error after a bounded number of them.
#[test]
fn trees_without_room_are_an_error() {
    let setup = SmallVolume {
        scheme: SmallScheme::Range { class: 2 },
        blocks: 60,
        slots: 1,
        stash_blocks_max: 1,
        ..SmallVolume::default()
    };
    let world = setup.world();
    let mut volume = setup.create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
    let outcome = (0..2000).try_for_each(|step| write(&mut volume, step % 60, step as u8));
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), VolumeErrorKind::InvalidConfig, "{error}");
    assert!(error.to_string().contains("more slots"), "{error}");
}

/// A block that is trimmed while it is read ahead is read again with the ranges of its request, not
/// as a single block, whatever was cached.
#[test]
fn what_left_the_cache_before_its_turn_is_read_as_it_was_asked_for() {
    let exact = Counted::with(made_exact(), 16);
    read_what_is_trimmed(&exact, 4, |step| step * 7 % 69);
    let [blocks, between, ranges] = exact.accesses_of(EXACT_TREES);
    assert!(blocks + between == 0 && ranges > 200, "{blocks}, {between}, {ranges}");
    let by_classes = Counted::new(16);
    read_what_is_trimmed(&by_classes, RANGE, |step| step % 9 * RANGE);
    let [blocks, ranges] = by_classes.accesses();
    assert!(blocks == 0 && ranges > 100, "{blocks}, {ranges}");
}

/// Makes reads of `blocks` blocks. In each round, a block of the last read is trimmed while that
/// read waits.
fn read_what_is_trimmed(disk: &Counted, blocks: u64, place: fn(u64) -> u64) {
    for round in 0..100u64 {
        let [near, far, farther] = [0, 3, 5].map(|more| place(round + more));
        let at = |block: u64| block * BYTES as u64;
        let bytes = blocks as u32 * BLOCK_BYTES;
        let read = |block: u64| DiskOp::Read { offset: at(block), bytes };
        disk.read(near, blocks);
        let ops = [
            read(far),
            read(farther),
            DiskOp::Trim {
                offset: at(near + round % 4),
                bytes: BLOCK_BYTES.into(),
                durable: false,
            },
            read(near),
        ];
        disk.ask_together(ops.into_iter());
    }
}

/// Requests of equal lengths look alike in every piece, wherever they lie and whether they read or
/// write.
#[test]
fn what_storage_sees_of_requests_follows_from_their_lengths() {
    const LENGTHS: [u64; 8] = [1, 2, 7, 8, 3, 20, 1, 2];
    let places: [fn(u64) -> u64; 4] = [
        |_| 0,
        |step| step * 11 % 52,
        // Across the border of two ranges, and at the end of the disk.
        |step| 5 + 8 * (step % 6),
        |step| 72 - LENGTHS[step as usize % LENGTHS.len()],
    ];
    let views = [false, true].map(|writes| {
        places.map(|place| {
            let disk = Counted::with(made_exact(), 0);
            for step in 0..40u64 {
                let (first, blocks) = (place(step), LENGTHS[step as usize % LENGTHS.len()]);
                match writes {
                    true => disk.write(first, blocks, step as u8),
                    false => drop(disk.read(first, blocks)),
                }
            }
            disk.disk.close().unwrap();
            looks(&disk.world.take_view())
        })
    });
    let views = views.concat();
    assert!(views[0].len() > 500);
    for view in &views[1..] {
        assert_alike(&[views[0].clone(), view.clone()], "other places");
    }
}

#[test]
fn requests_as_accesses_are_served_like_those_of_an_array() {
    for (cache_blocks_max, seed) in [(0, 5), (1, 1), (3, 2), (20, 3), (100, 4)] {
        serve_like_an_array(&Counted::with(made_exact(), cache_blocks_max), 72, seed, || ());
    }
}

#[test]
fn a_stream_is_read_ahead_by_ranges() {
    let disk = Counted::new(40);
    // Block after block, from the middle of a range on. Once the stream is as long as a range, the
    // following whole ranges are read at once.
    (3..40).for_each(|block| drop(disk.read(block, 1)));
    assert_eq!(disk.accesses(), [5 + RANGE as usize, 3]);
    // A descending sequence is no stream.
    (40..72).rev().for_each(|block| drop(disk.read(block, 1)));
    assert_eq!(disk.accesses(), [32, 0]);
}

#[test]
fn what_is_no_range_is_refused_and_nothing_is_lost() {
    let (_, mut volume) = made();
    write(&mut volume, 8, 3).unwrap();
    let wrong = [
        Extent { first: 4, class: CLASS },
        Extent { first: 72, class: CLASS },
        Extent { first: 0, class: 2 },
        Extent { first: u64::MAX - 7, class: CLASS },
        Extent { first: 0, class: 70 },
        Extent { first: 76, class: 0 },
    ];
    for extent in wrong {
        let mut data = vec![[0; BYTES]; if extent.class < 9 { extent.count() } else { 1 }];
        let mut ops: Vec<_> = data.iter_mut().map(|data| Op::Read(data)).collect();
        let refused = volume.access_range(extent, &mut ops).unwrap_err();
        assert_eq!(refused.kind(), VolumeErrorKind::InvalidRequest, "{extent:?}");
        assert_eq!(
            volume.begin_extents(&[vec![extent]]).unwrap_err().kind(),
            VolumeErrorKind::InvalidRequest
        );
    }
    let refused = volume.access_range(range(0), &mut []).unwrap_err();
    assert_eq!(refused.kind(), VolumeErrorKind::InvalidRequest);
    assert_eq!(access(&mut volume, range(1), |_| None).unwrap()[0], [3; BYTES]);
}
