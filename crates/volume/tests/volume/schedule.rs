//! A disk with a schedule: what storage sees is a function of time alone, and the disk serves
//! requests as one without a schedule does.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::support::seen::{assert_alike, leaves, looks};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallScheme, SmallVolume};
use oblivio_testkit::crash::{StoreEvent, World};
use oblivio_testkit::statistics::{Verdicts, histogram, serial_correlation, uniformity};
use oblivio_volume::device::{BlockDevice, DiskError, DiskOp, Request, WipedBytes};
use oblivio_volume::disk::Ticks;
use oblivio_volume::{Disk, SyncMoves, Volume};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

pub(crate) const ACCESSES: usize = 7;

/// Level of the leaves. With few leaves, the test for uniformity has many accesses to each.
const LEAF_LEVEL: u8 = 5;

fn volumes() -> impl Iterator<Item = SmallVolume> {
    let others = SmallVolume::default().on_each_scheme();
    [everything(), in_sets(), of_ranges(), of_exact_ranges()].into_iter().chain(others)
}

/// A volume whose requests take ranges of their own length, unless the rate is fixed.
fn of_exact_ranges() -> SmallVolume {
    SmallVolume { scheme: SmallScheme::ExactRange { between: 1, class: 2 }, ..of_ranges() }
}

/// A volume in which each access is to a range.
fn of_ranges() -> SmallVolume {
    let plain = SmallVolume::default();
    SmallVolume { scheme: SmallScheme::FixedRange { class: 2 }, blocks: plain.blocks & !3, ..plain }
}

fn in_sets() -> SmallVolume {
    SmallVolume { tree_top_ways: 2, tree_top_levels: 3, ..SmallVolume::default() }
}

fn everything() -> SmallVolume {
    SmallVolume { leaf_slots: Some(5), ..in_sets().with_map_in_tree() }
}

/// A disk without a clock, and the events that its storage saw.
pub(crate) struct Bench {
    setup: SmallVolume,
    world: World,
    disk: Disk,
    pub(crate) ticks: Ticks,
    coins: StdRng,
}

type Answer = Receiver<Result<WipedBytes, DiskError>>;

impl Bench {
    fn new(setup: SmallVolume, cache_blocks_max: u64, accesses: usize) -> Self {
        Self::with(setup, cache_blocks_max, accesses, true)
    }

    fn with(
        setup: SmallVolume,
        cache_blocks_max: u64,
        accesses: usize,
        early_write_backs: bool,
    ) -> Self {
        let world = setup.world();
        let coins = StdRng::seed_from_u64(setup.seed);
        let volume = setup.create(world.store(), world.dir(), coins).unwrap();
        Self::of((setup, world), volume, cache_blocks_max, accesses, early_write_backs)
    }

    /// A bench with an existing volume.
    pub(crate) fn of(
        (setup, world): (SmallVolume, World),
        volume: Volume,
        cache_blocks_max: u64,
        accesses: usize,
        early_write_backs: bool,
    ) -> Self {
        let cache_bytes_max = cache_blocks_max * u64::from(BLOCK_BYTES);
        let (disk, ticks) =
            Disk::start_without_clock(volume, cache_bytes_max, accesses, early_write_backs)
                .unwrap();
        Self { setup, world, disk, ticks, coins: StdRng::seed_from_u64(setup.seed + 1) }
    }

    fn disk_bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn submit(&self, op: DiskOp) -> Answer {
        let (sender, answer) = sync_channel(1);
        let done = Box::new(move |answer| drop(sender.send(answer)));
        self.disk.submit(Request { op, done });
        answer
    }

    fn write(&mut self, durable: bool) -> Answer {
        let offset = self.coins.random_range(0..self.disk_bytes());
        let bytes = self.coins.random_range(1..=self.disk_bytes() - offset).min(5000);
        let mut data = vec![0; bytes as usize];
        self.coins.fill_bytes(&mut data);
        self.submit(DiskOp::Write { offset, data: data.into(), durable })
    }

    fn read(&mut self) -> Answer {
        let offset = self.coins.random_range(0..self.disk_bytes() - 5000);
        self.submit(DiskOp::Read { offset, bytes: 5000 })
    }

    /// Closes the disk. Returns what storage saw from start to end.
    pub(crate) fn close(self) -> (SmallVolume, Vec<StoreEvent>) {
        self.disk.close().unwrap();
        (self.setup, self.world.view())
    }
}

/// A client of a disk: makes its requests before each tick.
pub(crate) type Client = fn(&mut Bench, tick: usize);

pub(crate) const CLIENTS: [(&str, Client); 6] = [
    ("idle", |_, _| ()),
    ("flushes", |bench, _| drop(bench.submit(DiskOp::Flush))),
    ("reads", |bench, _| (0..3).for_each(|_| drop(bench.read()))),
    ("bursts", |bench, tick| {
        if tick % 40 < 4 {
            drop(bench.write(tick % 4 == 3));
            drop(bench.read());
        }
    }),
    ("everything", |bench, tick| {
        drop(bench.write(tick % 2 == 0));
        drop(bench.read());
        drop(bench.submit(DiskOp::Flush));
        let disk_bytes = bench.disk_bytes();
        let offset = bench.coins.random_range(0..disk_bytes);
        drop(bench.submit(DiskOp::Zero {
            offset,
            bytes: disk_bytes - offset,
            durable: tick % 3 == 0,
        }));
    }),
    ("trims", |bench, _| {
        for _ in 0..20 {
            let bytes = bench.disk_bytes();
            drop(bench.submit(DiskOp::Trim { offset: 0, bytes, durable: false }));
        }
    }),
];

// ───────────────────────────── what storage sees ─────────────────────────────

#[test]
fn all_clients_look_alike() {
    for setup in setups() {
        let views = CLIENTS.map(|(name, client)| {
            let mut bench = Bench::new(setup, 8, ACCESSES);
            for tick in 0..120 {
                client(&mut bench, tick);
                bench.ticks.tick();
            }
            // Unanswered requests keep the disk open, which storage sees: that part is not
            // compared.
            (name, looks(&bench.world.view()))
        });
        let (_, idle) = &views[0];
        for (name, view) in &views[1..] {
            assert_alike(&[idle.clone(), view.clone()], &format!("{name} {setup:?}"));
        }
    }
}

/// Every volume with every size of state files. The options for syncing moves alternate, so that
/// each of them occurs with every volume and with every size.
pub(crate) fn setups() -> impl Iterator<Item = SmallVolume> {
    // State files that fill up with a few trims, and large ones.
    let sizes = [0, 2_000, 1 << 20];
    let pairs = volumes().enumerate().flat_map(move |(v, volume)| {
        sizes.into_iter().enumerate().map(move |(s, bytes_max)| (v + s, volume, bytes_max))
    });
    pairs.map(|(number, volume, state_file_bytes_max)| {
        let sync_moves = [SyncMoves::BeforeReads, SyncMoves::AtFlush][number % 2];
        SmallVolume { sync_moves, state_file_bytes_max, ..volume }
    })
}

#[test]
fn early_write_backs_are_not_seen() {
    let run = |client: Client, early_write_backs| {
        let mut bench = Bench::with(everything(), 8, ACCESSES, early_write_backs);
        for tick in 0..200 {
            client(&mut bench, tick);
            bench.ticks.tick();
        }
        looks(&bench.world.view())
    };
    let idle = run(CLIENTS[0].1, true);
    for (name, client) in CLIENTS {
        assert_alike(&[idle.clone(), run(client, false)], name);
    }
}

#[test]
fn closing_looks_alike_whatever_is_dirty() {
    for setup in volumes() {
        let views = [(0, true), (1, true), (3, true), (3, false)].map(|(writes, early)| {
            let mut bench = Bench::with(setup, 40, ACCESSES, early);
            for _ in 0..20 {
                bench.ticks.tick();
            }
            for _ in 0..writes {
                // Whole blocks, answered without an access.
                let offset = u64::from(BLOCK_BYTES) * bench.coins.random_range(0..setup.blocks - 5);
                let data = vec![1; 5 * BLOCK_BYTES as usize];
                let answer =
                    bench.submit(DiskOp::Write { offset, data: data.into(), durable: false });
                answer.recv().unwrap().unwrap();
            }
            looks(&bench.close().1)
        });
        let [idle, one, three, three_left] = views;
        assert_alike(&[idle.clone(), one], "1");
        assert_alike(&[idle.clone(), three], "3");
        assert_alike(&[idle, three_left], "3, none of them written back before");
    }
}

#[test]
fn leaves_are_uniform_whatever_the_requests() {
    let mut verdicts = Verdicts::new(1e-6);
    let few_leaves = SmallVolume { leaf_level: LEAF_LEVEL, ..SmallVolume::default() };
    let in_tree = SmallVolume::default().with_map_in_tree();
    let setups =
        CLIENTS.iter().flat_map(|client| [few_leaves, in_tree].map(|setup| (client, setup)));
    for ((name, client), setup) in setups {
        let range = 1 << setup.leaf_level;
        let mut bench = Bench::new(setup, 8, ACCESSES);
        for tick in 0..900 {
            client(&mut bench, tick);
            bench.ticks.tick();
        }
        let leaves = leaves(&bench.setup, &bench.world.view(), 0);
        // The last eviction of the view may be counted as an access.
        assert!(leaves.len().abs_diff(900 * ACCESSES) <= 1, "{name}: {}", leaves.len());
        verdicts
            .add(format!("{name} uniform"), uniformity(&histogram(leaves.clone(), range, range)));
        verdicts.add(format!("{name} uncorrelated"), serial_correlation(&leaves));
    }
    verdicts.conclude();
}

// ───────────────────────────── what the owner sees ─────────────────────────────

/// Reads return the data that was written last. Requests overlap, except that a client waits for
/// the answer before its next request to the same bytes.
#[test]
fn it_is_a_disk() {
    let caches = [(1, 8, 3), (2, 0, 1), (3, 200, 20)];
    for ((seed, cache_blocks_max, accesses), volume) in
        caches.into_iter().flat_map(|cache| volumes().map(move |volume| (cache, volume)))
    {
        let mut bench = Bench::new(SmallVolume { seed, ..volume }, cache_blocks_max, accesses);
        let disk_bytes = bench.disk_bytes();
        let mut model = vec![0; disk_bytes as usize];
        for _ in 0..200 {
            // Two requests at once, one in each half.
            let answers = [0, disk_bytes / 2].map(|half| {
                let offset = half + bench.coins.random_range(0..disk_bytes / 2 - 1);
                let bytes = bench.coins.random_range(1..=half + disk_bytes / 2 - offset);
                let bytes = if bench.coins.random() { bytes } else { bytes.min(40) };
                let range = offset as usize..(offset + bytes) as usize;
                let durable = bench.coins.random_range(0..4) == 0;
                match bench.coins.random_range(0..5) {
                    0 | 1 => {
                        let mut data = vec![0; bytes as usize];
                        bench.coins.fill_bytes(&mut data);
                        model[range].copy_from_slice(&data);
                        (
                            bench.submit(DiskOp::Write { offset, data: data.into(), durable }),
                            Vec::new(),
                        )
                    }
                    2 => {
                        model[range].fill(0);
                        (bench.submit(DiskOp::Zero { offset, bytes, durable }), Vec::new())
                    }
                    3 => {
                        let block = u64::from(BLOCK_BYTES);
                        let whole = (offset.next_multiple_of(block) as usize)
                            ..((offset + bytes) / block * block) as usize;
                        if !whole.is_empty() {
                            model[whole].fill(0);
                        }
                        (bench.submit(DiskOp::Trim { offset, bytes, durable }), Vec::new())
                    }
                    _ => {
                        let bytes = bytes as u32;
                        (bench.submit(DiskOp::Read { offset, bytes }), model[range].to_vec())
                    }
                }
            });
            for (answer, expected) in answers {
                assert!(answer_within(&bench, &answer, 20_000)[..] == expected);
            }
        }
        bench.disk.close().unwrap();
    }
}

/// Many clients write all the time, one reads, one flushes, and one makes a durable write. All of
/// them are answered.
#[test]
fn no_client_starves() {
    let of_blocks = [1, 2, 5].map(|accesses| (SmallVolume::default(), accesses, true));
    let of_ranges = [1, 2].map(|accesses| (of_ranges(), accesses, false));
    for (setup, accesses, early_write_backs) in of_blocks.into_iter().chain(of_ranges) {
        let mut bench = Bench::with(setup, 4, accesses, early_write_backs);
        let mut flood: Vec<_> = (0..20).map(|_| bench.write(false)).collect();
        let others = [bench.read(), bench.submit(DiskOp::Flush), bench.write(true)];
        for answer in others {
            let is_answered = (0..1000 / accesses).any(|_| {
                flood.extend((0..3).map(|_| bench.write(false)));
                bench.ticks.tick();
                answer.try_recv().is_ok()
            });
            assert!(is_answered, "{accesses}");
        }
        let waiting = flood.iter().filter(|write| write.try_recv() == Err(TryRecvError::Empty));
        assert!(waiting.count() > 0, "too few requests were waiting");
        drop(bench);
    }
}

#[test]
fn a_whole_block_is_written_and_a_cached_one_is_read_without_a_tick() {
    let bench = Bench::new(SmallVolume::default(), 8, ACCESSES);
    let data = vec![7; BLOCK_BYTES as usize];
    let write = DiskOp::Write { offset: 0, data: data.clone().into(), durable: false };
    bench.submit(write).recv().unwrap().unwrap();
    let read = DiskOp::Read { offset: 0, bytes: BLOCK_BYTES };
    assert_eq!(bench.submit(read).recv().unwrap().unwrap()[..], data);
    let flush = bench.submit(DiskOp::Flush);
    bench.ticks.tick();
    flush.try_recv().unwrap().unwrap();
}

#[test]
fn what_was_written_back_early_needs_no_waiting() {
    for (early_write_backs, ticks_expected) in [(true, 1), (false, 3)] {
        let bench = Bench::with(SmallVolume::default(), 100, ACCESSES, early_write_backs);
        let data = vec![7; 3 * ACCESSES * BLOCK_BYTES as usize];
        let write = DiskOp::Write { offset: 0, data: data.into(), durable: false };
        bench.submit(write).recv().unwrap().unwrap();
        for _ in 0..5 {
            bench.ticks.tick();
        }
        let flush = bench.submit(DiskOp::Flush);
        let mut ticks = 0;
        while flush.try_recv().is_err() {
            bench.ticks.tick();
            ticks += 1;
        }
        assert_eq!(ticks, ticks_expected);
    }
}

/// The answer, within `ticks_max` ticks.
fn answer_within(bench: &Bench, answer: &Answer, ticks_max: usize) -> WipedBytes {
    for _ in 0..ticks_max {
        if let Ok(answer) = answer.try_recv() {
            return answer.unwrap();
        }
        bench.ticks.tick();
    }
    answer.try_recv().unwrap_or_else(|_| panic!("not answered within {ticks_max} ticks")).unwrap()
}
