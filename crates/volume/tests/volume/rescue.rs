//! Rescue of a damaged volume: every block that still authenticates is rescued, and lost blocks are
//! named.

use std::io;
use std::ops::Range;

use oblivio_core::durable::rotating::MapRecursion;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::TreeId;
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::owner_of;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SlotChange, SmallVolume};
use oblivio_testkit::crash::{StoreEvent, World};
use oblivio_volume::device::{DiskErrorKind, DiskOp, call};
use oblivio_volume::rescue::{Damage, RescueTarget, Rescued, RescuedDisk, Scratch, rescue};
use oblivio_volume::superblock::copies::{BACK, FRONT};
use oblivio_volume::volume::shapes;
use oblivio_volume::{Volume, VolumeErrorKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Block = [u8; BLOCK_BYTES as usize];

/// The trees that hold slots of buckets, heads of buckets, and the table of taken slots.
const TREES: [TreeId; 3] = [TreeId(2), TreeId(4), TreeId(5)];

#[derive(Default)]
struct Target(Vec<Option<Block>>);

impl RescueTarget for Target {
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        self.0[block as usize] = Some(data.try_into().unwrap());
        Ok(())
    }

    fn clear(&mut self, block: u64) -> io::Result<()> {
        self.0[block as usize] = None;
        Ok(())
    }
}

/// A volume, and the contents that its blocks should have.
struct Bench {
    world: World,
    array: Vec<Option<Block>>,
}

impl Bench {
    /// A volume that was used for a while and then killed.
    fn new(setup: SmallVolume) -> Self {
        Self::of_use(setup, |_, coins| coins.random_range(0..setup.blocks))
    }

    /// Like [`Self::new`], but `choose` returns the block of each step.
    fn of_use(setup: SmallVolume, choose: impl Fn(u64, &mut StdRng) -> u64) -> Self {
        Self::of_steps(setup, 3 * setup.blocks, choose)
    }

    fn of_steps(setup: SmallVolume, steps: u64, choose: impl Fn(u64, &mut StdRng) -> u64) -> Self {
        let world = setup.world();
        let mut coins = StdRng::seed_from_u64(setup.seed);
        let mut volume =
            setup.create(world.store(), world.dir(), StdRng::from_rng(&mut coins)).unwrap();
        let mut array = vec![None; setup.blocks as usize];
        for n in 0..steps {
            let address = choose(n, &mut coins);
            step(&mut volume, &mut array, (n, address), &mut coins);
        }
        volume.flush().unwrap();
        Self { world, array }
    }

    fn rescue(&self) -> (Target, Rescued) {
        let mut target = Target(vec![None; self.array.len()]);
        let mut store = self.world.store();
        let owner = owner_of(&mut store).unwrap();
        self.world.take_view();
        let rescued = rescue(
            store,
            &self.world.dir(),
            &owner,
            Damage::default(),
            &mut target,
            &mut |_, _| (),
        )
        .unwrap();
        assert!(!self.world.take_view().iter().any(changes), "a rescue changes nothing");
        (target, rescued)
    }

    /// Rescues, and checks that blocks that are neither lost nor doubtful are right.
    fn rescue_truly(&self) -> Rescued {
        let (target, rescued) = self.rescue();
        let is_in = |ranges: &[Range<u64>], block: usize| {
            ranges.iter().any(|range| range.contains(&(block as u64)))
        };
        for (block, expected) in self.array.iter().enumerate() {
            if is_in(&rescued.lost, block) {
                assert_eq!(target.0[block], None);
            } else if is_in(&rescued.doubtful, block) {
                assert!(target.0[block].is_some());
            } else {
                assert!(target.0[block] == *expected, "block {block} is not what it was");
            }
        }
        rescued
    }
}

#[test]
fn storage_does_not_see_what_is_read_of_what_was_rescued() {
    let setup = setups().next().unwrap();
    let bench = Bench::new(setup);
    let leaf_level = shapes(&setup.params()).unwrap()[2].level_count() as u8 - 1;
    for index in (0..1 << setup.leaf_level).step_by(9) {
        bench.world.flip_bit(TREES[0], BucketId::new(leaf_level, index), 3, 1);
    }
    let mut store = bench.world.store();
    let owner = owner_of(&mut store).unwrap();
    let file = tempfile::tempfile().unwrap();
    let same_file = file.try_clone().unwrap();
    let mut scratch = Scratch::new(file, BLOCK_BYTES, &mut StdRng::seed_from_u64(1));
    let damage = Damage::default();
    let rescued =
        rescue(store, &bench.world.dir(), &owner, damage, &mut scratch, &mut |_, _| ()).unwrap();
    assert!((1..100).contains(&count(&rescued.lost)) && rescued.blocks > 100, "{rescued:?}");
    bench.world.take_view();

    let disk = RescuedDisk::new(scratch, setup.blocks, rescued.lost.clone());
    for (block, expected) in (0..).zip(&bench.array) {
        let offset = block * u64::from(BLOCK_BYTES);
        let answer = call(&disk, DiskOp::Read { offset, bytes: BLOCK_BYTES });
        let is_in = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&block));
        if is_in(&rescued.lost) {
            assert_eq!(answer.unwrap_err().kind, DiskErrorKind::Lost);
        } else if !is_in(&rescued.doubtful) {
            assert_eq!(answer.unwrap()[..], expected.unwrap_or([0; BLOCK_BYTES as usize]));
        }
    }
    // The read covers parts of three blocks, and the middle block is lost.
    let middle = rescued.lost[0].start;
    let offset = (middle - 1) * u64::from(BLOCK_BYTES) + 100;
    let answer = call(&disk, DiskOp::Read { offset, bytes: 2 * BLOCK_BYTES });
    assert_eq!(answer.unwrap_err().kind, DiskErrorKind::Lost);
    let within = DiskOp::Read { offset: middle * u64::from(BLOCK_BYTES) + 5, bytes: 3 };
    assert_eq!(call(&disk, within).unwrap_err().kind, DiskErrorKind::Lost);
    let write = DiskOp::Write { offset: 0, data: vec![1].into(), durable: false };
    for op in [write, DiskOp::Trim { offset: 0, bytes: 1 << 10, durable: false }] {
        assert_eq!(call(&disk, op).unwrap_err().kind, DiskErrorKind::ReadOnly);
    }
    call(&disk, DiskOp::Flush).unwrap();
    assert_eq!(bench.world.take_view(), []);

    // After the scratch file was emptied, reads fail.
    let found = (0..).zip(&bench.array).find(|(block, expected)| {
        let is_lost = rescued.lost.iter().any(|range| range.contains(block));
        expected.is_some() && !is_lost
    });
    same_file.set_len(0).unwrap();
    let offset = found.unwrap().0 * u64::from(BLOCK_BYTES);
    let answer = call(&disk, DiskOp::Read { offset, bytes: BLOCK_BYTES });
    assert_eq!(answer.unwrap_err().kind, DiskErrorKind::Failed);
}

fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn changes(seen: &StoreEvent) -> bool {
    use oblivio_core::view::Operation::{Flush, Write};
    matches!(seen, StoreEvent::Event(event) if [Flush, Write].contains(&event.operation))
}

fn step(
    volume: &mut Volume,
    array: &mut [Option<Block>],
    (n, address): (u64, u64),
    coins: &mut StdRng,
) {
    if coins.random_range(0..20) == 0 {
        let end = (address + 5).min(array.len() as u64);
        volume.forget(address..end).unwrap();
        array[address as usize..end as usize].fill(None);
        return;
    }
    let data: Block = std::array::from_fn(|i| (n as usize + i) as u8);
    volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
    array[address as usize] = Some(data);
}

fn setups() -> impl Iterator<Item = SmallVolume> {
    (1..=6).flat_map(|seed| {
        let flat = SmallVolume {
            seed,
            blocks: 300,
            leaf_level: 7,
            state_file_bytes_max: 1 << 20,
            ..SmallVolume::default()
        };
        [
            flat,
            SmallVolume { state_file_bytes_max: 1 << 20, seed, ..SmallVolume::default() }
                .with_map_in_tree(),
        ]
    })
}

#[test]
fn a_sound_volume_is_rescued_completely() {
    for setup in setups() {
        let bench = Bench::new(setup);
        let (target, rescued) = bench.rescue();
        assert!(target.0 == bench.array, "{setup:?}");
        let blocks = bench.array.iter().flatten().count() as u64;
        assert_eq!(rescued, Rescued { blocks, ..Rescued::default() }, "{setup:?}");
    }
}

/// Most blocks of the position map of a nearly empty volume do not exist. A rescue must not report
/// blocks as lost for that reason.
#[test]
fn nothing_of_a_nearly_empty_sound_volume_is_lost() {
    for setup in setups() {
        let bench = Bench::of_use(setup, |n, _| if n % 2 == 0 { 3 } else { setup.blocks - 1 });
        let (target, rescued) = bench.rescue();
        assert!(target.0 == bench.array, "{setup:?}");
        let blocks = bench.array.iter().flatten().count() as u64;
        assert_eq!(rescued, Rescued { blocks, ..Rescued::default() }, "{setup:?}");
    }
    for setup in [SmallVolume::default(), SmallVolume::default().with_map_in_tree()] {
        let bench = Bench::of_steps(setup, 0, |_, _| 0);
        assert_eq!(bench.rescue().1, Rescued::default(), "{setup:?}");
    }
}

/// Whatever is damaged, blocks that are neither lost nor doubtful are right, and few are lost.
#[test]
fn a_damaged_volume_is_rescued_except_for_the_damage() {
    let (mut lost, mut doubtful, mut damaged) = (0, 0, 0);
    for setup in setups() {
        let bench = Bench::new(setup);
        let good = bench.world.snapshot();
        let shapes = shapes(&setup.params()).unwrap();
        let mut coins = StdRng::seed_from_u64(setup.seed);
        for _ in 0..25 {
            bench.world.restore_store(&good);
            let tree = TREES[coins.random_range(0..shapes.len() - 3)];
            let tree = if shapes.len() == 5 { TREES[usize::from(tree == TREES[1])] } else { tree };
            let levels = shapes[usize::from(tree.0)].levels();
            let level = loop {
                let level = coins.random_range(0..levels.len());
                if levels[level].buckets > 0 {
                    break level;
                }
            };
            let index = coins.random_range(0..levels[level].buckets);
            bench.world.flip_bit(tree, BucketId::new(level as u8, index), 3, 1);
            let rescued = bench.rescue_truly();
            lost += count(&rescued.lost);
            doubtful += count(&rescued.doubtful);
            damaged += rescued.damage.count();
            assert!(rescued.damage.count() <= 1 + u64::from(tree == TREES[2]));
        }
    }
    assert!(damaged > 100 && lost > 20 && doubtful > 20, "{damaged} {lost} {doubtful}");
}

/// Without a page of the table of taken slots, old copies of blocks reappear, including blocks of
/// the position map. Entries of such old copies must not replace those of a newer copy below in the
/// tree, and no copy on the level of the page may count as the latest.
#[test]
fn without_any_one_page_of_notes_nothing_of_the_past_is_called_the_latest() {
    let mut doubtful = 0;
    for seed in 1..=8 {
        // With so few pages, entries leave the client long before the copies that they describe.
        let setup = SmallVolume { seed, tree_top_levels: 5, ..SmallVolume::default() };
        let recursion = Some(MapRecursion { client_entries_max: 16, plb_blocks: 2 });
        let setup = SmallVolume { blocks: 1400, leaf_level: 9, recursion, ..setup };
        // Blocks under one block of the map are used for so long that others sink into the tree.
        let bench = Bench::of_use(setup, |n, coins| {
            let first = n / 40 % 11 * 128;
            coins.random_range(first..(first + 128).min(setup.blocks))
        });
        let good = bench.world.snapshot();
        let pages = shapes(&setup.params()).unwrap()[usize::from(TREES[2].0)].clone();
        for (level, shape) in pages.levels().iter().enumerate() {
            for index in 0..shape.buckets {
                bench.world.restore_store(&good);
                bench.world.flip_bit(TREES[2], BucketId::new(level as u8, index), 3, 1);
                doubtful += count(&bench.rescue_truly().doubtful);
            }
        }
    }
    assert!(doubtful > 1000, "{doubtful}");
}

/// A damaged copy of the superblock is reported. A copy that a change of key slots had not reached
/// is not damaged.
#[test]
fn damaged_copies_of_the_superblock_are_reported() {
    let setup = SmallVolume::default();
    let bench = Bench::new(setup);
    let copies =
        [FRONT, BACK].map(|tree| [0, 1].map(|index| (tree, BucketId::new(1, index)))).concat();
    let check_entries = |expected: Option<usize>| {
        let damage = bench.rescue_truly().damage;
        let expected = expected.map(|count| format!("{count} of 4 copies of the superblock"));
        assert_eq!(damage.entries().len(), expected.iter().len(), "{damage:?}");
        assert!(
            damage.entries().iter().zip(expected).all(|(entry, start)| entry.starts_with(&start))
        );
    };
    let old = bench.world.snapshot();
    for (tree, copy) in &copies {
        bench.world.flip_bit(*tree, *copy, 5000, 1);
        check_entries(Some(1));
        bench.world.restore_store(&old);
    }
    for (tree, copy) in &copies[1..] {
        bench.world.flip_bit(*tree, *copy, 0, 1);
    }
    check_entries(Some(3));
    bench.world.restore_store(&old);

    let change = SlotChange::Add { key_file: 9 };
    setup.change_slots(bench.world.store(), bench.world.dir(), change).unwrap();
    check_entries(None);
    for (tree, copy) in &copies[2..] {
        bench.world.replace_bucket(&old, *tree, *copy);
    }
    check_entries(Some(2));
    bench.world.restore_dir(&old);
    check_entries(None);
}

#[test]
fn a_rescue_with_an_old_directory_marks_all_blocks_doubtful() {
    for setup in setups() {
        let mut bench = Bench::new(setup);
        let copy = bench.world.snapshot();
        let coins = StdRng::seed_from_u64(7);
        let (mut volume, _) = setup.open(bench.world.store(), bench.world.dir(), coins).unwrap();
        let mut coins = StdRng::seed_from_u64(8);
        for n in 0..30 {
            let address = coins.random_range(0..setup.blocks);
            step(&mut volume, &mut bench.array, (n, address), &mut coins);
        }
        volume.close().unwrap();
        bench.world.restore_dir(&copy);
        let (_, rescued) = bench.rescue();
        assert!(rescued.state_is_behind, "{setup:?}");
        assert_eq!(rescued.blocks, count(&rescued.doubtful), "{setup:?}");
    }
}

/// A rescue with an old directory marks all blocks as doubtful. The copy was made between two
/// checkpoints, so anchors do not reveal its age, and the bucket that would reveal it is damaged.
#[test]
fn a_rescue_with_an_old_directory_marks_all_blocks_doubtful_whichever_bucket_is_damaged() {
    let setup = SmallVolume { blocks: 300, leaf_level: 7, ..SmallVolume::default() };
    let mut bench = Bench::new(setup);
    let coins = StdRng::seed_from_u64(7);
    let (mut volume, _) = setup.open(bench.world.store(), bench.world.dir(), coins).unwrap();
    let mut coins = StdRng::seed_from_u64(8);
    let mut use_it = |volume: &mut Volume, steps: Range<u64>| {
        for n in steps {
            let address = coins.random_range(0..setup.blocks);
            step(volume, &mut bench.array, (n, address), &mut coins);
        }
        volume.flush().unwrap();
    };
    use_it(&mut volume, 0..2);
    let copy = bench.world.snapshot();
    use_it(&mut volume, 2..8);
    drop(volume);
    bench.world.restore_dir(&copy);
    assert!(bench.rescue().1.state_is_behind);
    let latest = bench.world.snapshot();
    for index in 0..(1 << setup.leaf_level) + (1 << setup.tree_top_levels) {
        let of_leaves = BucketId::new(setup.leaf_level + 1, index);
        bench.world.flip_bit(TREES[1], of_leaves, 30, 1);
        assert!(bench.rescue().1.state_is_behind, "place {index}");
        let coins = StdRng::seed_from_u64(9);
        let opened = setup.open(bench.world.store(), bench.world.dir(), coins).map(drop);
        assert_eq!(opened.unwrap_err().kind(), VolumeErrorKind::StateRolledBack, "place {index}");
        bench.world.restore_store(&latest);
    }
    // If no bucket is left that would tell, all blocks are doubtful, and an opening needs the
    // owner's decision.
    for level in 0..setup.leaf_level + 2 {
        let places = shapes(&setup.params()).unwrap()[4].levels()[usize::from(level)].buckets;
        (0..places).for_each(|index| {
            bench.world.flip_bit(TREES[1], BucketId::new(level, index), 30, 1);
        });
    }
    let (_, rescued) = bench.rescue();
    assert_eq!(rescued.blocks, count(&rescued.doubtful));
    let says_so = |entry: &&String| entry.contains("every block may be older than the latest");
    assert_eq!(rescued.damage.entries().iter().filter(says_so).count(), 1);
    let opened = setup.open(bench.world.store(), bench.world.dir(), StdRng::seed_from_u64(9));
    assert_eq!(opened.map(drop).unwrap_err().kind(), VolumeErrorKind::Tampered);
}
