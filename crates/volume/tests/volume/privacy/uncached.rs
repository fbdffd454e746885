//! A disk without a cache: storage sees how many blocks the waiting requests cover together, but
//! not whether they are read or written.

use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_volume::device::DiskOp;
use oblivio_volume::{Disk, DiskOptions, Volume};

use crate::support::bench::Bench;
use crate::support::seen::{StorageCall, assert_alike, looks};
use crate::support::together::together;

/// The first block of a request, and the number of blocks.
type Blocks = (u64, u64);

/// A number of blocks that exceeds one window of accesses.
const MANY: u64 = 150;

/// Requests that wait together, batch by batch.
fn workloads() -> [Vec<Vec<Blocks>>; 4] {
    [
        vec![vec![(3, 1)]; 20],
        vec![vec![(0, MANY)], vec![(7, 70)], vec![(100, 33), (0, 64), (9, 90)]],
        vec![
            (0..40).map(|block| (block, 1)).collect(),
            (0..40).map(|n| (n * 37 % 140, 5)).collect(),
        ],
        // Several requests for the same blocks.
        vec![
            vec![(5, 1); 30],
            vec![(0, 80), (60, 80)],
            (0..64).map(|n| (n % 3 * 30, 40)).collect(),
        ],
    ]
}

fn volume() -> SmallVolume {
    SmallVolume { blocks: MANY, leaf_level: 6, ..SmallVolume::default() }
}

/// Whether the n-th request is a write.
type Kind = fn(usize) -> bool;

const READS: Kind = |_| false;
const WRITES: Kind = |_| true;
const MIXED: Kind = |n| n % 3 == 1;

#[test]
fn reads_and_writes_make_equal_batches() {
    for (n, workload) in workloads().iter().enumerate() {
        for setup in [volume(), volume().with_map_in_tree()] {
            for durable in [false, true] {
                let [reads, writes, mixed] =
                    [READS, WRITES, MIXED].map(|is_write| look(setup, workload, is_write, durable));
                assert!(reads.len() > 100);
                let what = format!("workload {n}, {:?}, durable: {durable}", setup.recursion);
                assert_alike(&[reads.clone(), writes], &format!("{what}: writes"));
                assert_alike(&[reads, mixed], &format!("{what}: some writes"));
            }
        }
    }
}

#[test]
fn a_write_that_is_trimmed_at_once_makes_its_access() {
    let views = [false, true].map(|trims| {
        let mut bench = Bench::new(volume(), 1);
        let (volume, _) = bench.open().unwrap();
        let disk = disk(volume);
        for block in 0..20 {
            let trim = DiskOp::Trim { offset: 0, bytes: u64::from(BLOCK_BYTES), durable: false };
            let ops = [write((block % 5, 1), block as u8, false)].into_iter();
            let answers = together(&disk, ops.chain(trims.then_some(trim)).collect());
            assert!(answers.iter().all(Result::is_ok));
        }
        disk.close().unwrap();
        looks(&bench.world.view())
    });
    assert_alike(&views, "trims");
}

#[test]
fn a_write_of_a_part_of_a_block_looks_alike_whatever_it_writes() {
    let fills: [fn(u64) -> u8; 2] = [|_| 0, |n| n as u8];
    let views = fills.map(|fill| {
        let mut bench = Bench::new(volume(), 1);
        let (volume, _) = bench.open().unwrap();
        let disk = disk(volume);
        for n in 0..40 {
            let offset = n % 7 * u64::from(BLOCK_BYTES) + 100;
            let part = |at| DiskOp::Write {
                offset: offset + at,
                data: vec![fill(n); 50].into(),
                durable: false,
            };
            let answers = together(&disk, vec![part(0), part(100)]);
            assert!(answers.iter().all(Result::is_ok));
        }
        disk.close().unwrap();
        looks(&bench.world.view())
    });
    assert_alike(&views, "the data that is there already");
}

/// The calls that storage saw of a disk with these requests.
fn look(
    setup: SmallVolume,
    workload: &[Vec<Blocks>],
    is_write: Kind,
    durable: bool,
) -> Vec<StorageCall> {
    let mut bench = Bench::new(setup, 1);
    let (volume, _) = bench.open().unwrap();
    let disk = disk(volume);
    for batch in workload {
        let op = |(n, blocks): (usize, &Blocks)| match is_write(n) {
            true => write(*blocks, n as u8, durable),
            false => read(*blocks),
        };
        let answers = together(&disk, batch.iter().enumerate().map(op).collect());
        assert!(answers.iter().all(Result::is_ok));
    }
    disk.close().unwrap();
    looks(&bench.world.view())
}

fn disk(volume: Volume) -> Disk {
    let options = DiskOptions::default().with_cache_bytes_max(0);
    Disk::start(volume, &options).unwrap()
}

fn read((first, blocks): Blocks) -> DiskOp {
    let block_bytes = u64::from(BLOCK_BYTES);
    DiskOp::Read { offset: first * block_bytes, bytes: (blocks * block_bytes) as u32 }
}

fn write((first, blocks): Blocks, fill: u8, durable: bool) -> DiskOp {
    let block_bytes = u64::from(BLOCK_BYTES);
    let data = vec![fill; (blocks * block_bytes) as usize].into();
    DiskOp::Write { offset: first * block_bytes, data, durable }
}
