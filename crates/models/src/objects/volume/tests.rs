//! Tests of the model: by hand, and with the numbers of the design study.

use oblivio_core::durable::range::DurableRange;
use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::scan::DurableScan;
use oblivio_core::durable::{ArrayRequirements, DurableScheme, RangePolicy};

use super::*;
use crate::objects::{Connection, Prices, S3_PRICES};

const GIB: f64 = (1u64 << 30) as f64;

fn volume(bytes: u64, block_bytes: u32, client_bytes_max: u64) -> VolumeOnObjects {
    let requirements = ArrayRequirements {
        block_bytes,
        client_bytes_max,
        tree_top_bytes_max: Some(client_bytes_max),
        ..ArrayRequirements::new(bytes, DurableRaw.name())
    };
    let config = DurableRaw.plan(&requirements).unwrap();
    VolumeOnObjects::from_config(&*config, ServiceKind::Cloud).unwrap().unwrap()
}

#[track_caller]
fn near(ours: f64, theirs: f64, part: f64) {
    assert!((ours - theirs).abs() <= part * theirs.abs(), "{ours}, not {theirs}");
}

/// The rows "(b), evictions read ten ahead" of the study of layouts behind ADR 21, in the order of
/// this table: GETs, PUTs, KiB down and up, dollars per 1,000, GiB of storage, objects, and
/// blocks per second with 100 requests in flight, 30 ms each, at 1 Gbit/s.
#[test]
fn the_model_agrees_with_the_study() {
    let prices = Prices::from_toml(S3_PRICES).unwrap();
    for (bytes, memory, row) in [
        (1 << 30, 48 << 20, [6.12, 0.024, 144.60, 24.10, 0.002568, 5.4133, 5652.5, 537.4]),
        (16 << 30, 48 << 20, [11.22, 0.044, 265.11, 44.18, 0.004708, 80.728, 84296.0, 293.1]),
        (1 << 40, 48 << 20, [34.68, 0.136, 819.82, 136.64, 0.014552, 5144.6, 5_369_364.0, 94.84]),
        (1 << 40, 1200 << 20, [16.32, 0.064, 385.80, 64.30, 0.006848, 5145.2, 5_369_938.0, 201.54]),
    ] {
        let volume = volume(bytes, 4096, memory);
        let block = volume.access() * volume.accesses_per_block();
        let connection = Connection {
            latency_seconds: 0.030,
            in_flight: 100.0,
            down_bytes_per_second: 125e6,
            up_bytes_per_second: 125e6,
        };
        let found = [
            block.gets,
            block.puts,
            block.down_bytes / 1024.0,
            block.up_bytes / 1024.0,
            1000.0 * prices.of_requests(&block),
            volume.stored_bytes() as f64 / GIB,
            volume.chunks() as f64,
            connection.accesses_per_second(&volume) / volume.accesses_per_block(),
        ];
        for (found, expected) in found.into_iter().zip(row) {
            near(found, expected, 0.01);
        }
        // Checkpoints add less than a hundredth of the money.
        let block = volume.access_with_checkpoints() * volume.accesses_per_block();
        near(1000.0 * prices.of_requests(&block), row[4], 0.01);
    }
}

/// 1 GiB: levels 12 to 17 are in storage, with chunks of 50 entries of 20,566 bytes.
#[test]
fn a_gibibyte_by_hand() {
    let volume = volume(1 << 30, 4096, 48 << 20);
    let buckets: Vec<_> = volume.levels.iter().map(|level| level.buckets).collect();
    assert_eq!(buckets, [1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17]);
    assert!(volume.levels.iter().all(|level| level.places == level.buckets + 4096));
    assert!(volume.levels.iter().all(|level| level.entry_bytes == 20_566));
    assert!(volume.levels.iter().all(|level| level.entries_per_chunk == 50));
    let in_memory: f64 = buckets.iter().map(|buckets| 74.5 / *buckets as f64).sum();
    near(volume.path_gets(), 6.0 - in_memory, 1e-9);
    let access = volume.access();
    near(access.gets, 6.0 - in_memory + 6.0 / 5.0 * (0.02 + 0.1 - 0.002), 1e-9);
    near(access.puts, 6.0 / 5.0 / 50.0, 1e-9);
    near(access.up_bytes, 6.0 / 5.0 * 20_574.0, 1e-9);
    // Two flushes with a tail in 49 of 50 cases, two heads, two listings.
    let checkpoint = volume.checkpoint();
    near(checkpoint.puts, 2.0 * 1.98, 1e-9);
    assert_eq!((checkpoint.gets, checkpoint.lists), (0.0, 2.0));
    near(checkpoint.up_bytes, 2.0 * (6.0 * 24.5 * 20_566.0 + 70e3), 1e-9);
    let average = volume.access_with_checkpoints();
    near(average.lists, 2.0 / 20_480.0, 1e-9);
    assert_eq!(volume.unneeded_bytes_max(), 4096 * 6 * 20_566);
    near(volume.gibibyte_read().gets, 262_144.0 * access.gets, 1e-9);
    assert_eq!((volume.trips_per_read(), volume.checkpoint_trips()), (1.0, 8.0));
}

#[test]
fn near_levels_save_gets_and_no_puts() {
    let far = volume(1 << 30, 4096, 48 << 20);
    // Levels of 2 × 4096 and 3 × 4096 places.
    let two = 5 * 4096 * 20_566;
    for (bytes, levels) in [(0, 0), (two - 1, 1), (two, 2), (u64::MAX, 6)] {
        assert_eq!(far.near_levels_within(bytes), levels, "{bytes}");
    }
    let half = far.clone().with_near_levels(3);
    assert_eq!(half.near_bytes(), 10 * 4096 * 20_566);
    let (all, some) = (far.access(), half.access());
    near(some.gets, all.gets / 2.0, 0.01);
    near(some.down_bytes, all.down_bytes / 2.0, 0.01);
    assert_eq!((some.puts, some.up_bytes), (all.puts, all.up_bytes));
    assert_eq!((half.chunks(), half.stored_bytes()), (far.chunks(), far.stored_bytes()));
    // With the map in the tree, pages of marks on smaller levels are near as well.
    let nested = volume(1 << 40, 4096, 48 << 20).with_near_levels(1);
    let of_tree = nested.levels[0].bytes();
    // The first level of the tree has number 12. The marks have 2 to 2^12 places on levels 1 to 12,
    // each with bits for the five slots of 2^11 buckets, and a seal of 56 bytes.
    let of_marks = (2.0 * 4095.0) * (5.0 * 2048.0 / 8.0 + 56.0);
    assert_eq!(nested.near_bytes() as f64, of_tree + of_marks);
    let none = far.with_near_levels(7);
    assert_eq!((none.near_levels(), none.access().gets, none.trips_per_read()), (6, 0.0, 0.0));
    assert_eq!(Connection::in_cloud(0.030).read_seconds(&none), 0.0);
    let by_up = Connection::in_cloud(0.030).accesses_per_second(&none);
    near(by_up, 1.25e9 / all.up_bytes, 1e-9);
}

/// A path of blocks of 64 KiB is so long that ten of them exceed the memory for requested
/// buckets. This memory also bounds the requests in flight.
#[test]
fn large_blocks_are_not_read_ahead() {
    let large = volume(1 << 40, 64 << 10, 256 << 20);
    assert_eq!((large.levels(), large.accesses_per_block()), (15, 1.0));
    assert!(!large.reads_evictions_ahead());
    near(large.access().gets, 18.0, 0.01);
    let bytes = large.levels[0].entry_bytes as f64;
    let in_cloud = Connection::in_cloud(0.030);
    let in_flight = PREFETCHED_BYTES_MAX / bytes;
    near(
        in_cloud.accesses_per_second(&large),
        in_flight / (large.access().gets * (0.030 + bytes / 60e6)),
        1e-3,
    );
    near(in_cloud.read_seconds(&large), 0.030 + bytes / 60e6, 1e-3);
    let near_file = large.with_near_levels(6);
    assert!(near_file.reads_evictions_ahead());
    near(near_file.access().gets, 9.0 * (1.0 + 0.4 / 5.0), 0.01);
    assert!(volume(1 << 30, 4096, 48 << 20).reads_evictions_ahead());
}

#[test]
fn a_link_bounds_the_accesses_per_second_by_its_bytes() {
    let volume = volume(1 << 30, 4096, 48 << 20);
    let access = volume.access();
    let over = |link: &str| Connection::over(link.parse().unwrap(), 0.030);
    near(over("8/800/10").accesses_per_second(&volume), 1e6 / access.down_bytes, 1e-9);
    near(over("8000/0.08/10").accesses_per_second(&volume), 1e4 / access.up_bytes, 1e-9);
    near(over("8/800/10").read_seconds(&volume), 0.040 + volume.path_bytes() / 1e6, 1e-9);
}

/// 256 blocks as a range are one stretch per level, and the evictions of all trees are made at
/// once.
#[test]
fn a_range_takes_a_few_gets_per_level() {
    let range = |policy| {
        let requirements = ArrayRequirements {
            range_policy: policy,
            ..ArrayRequirements::new(1 << 30, DurableRange.name())
        };
        let config = DurableRange.plan(&requirements).unwrap();
        VolumeOnObjects::from_config(&*config, ServiceKind::Cloud).unwrap().unwrap()
    };
    let volume = range(None);
    let (levels, raw) = (volume.levels() as f64, self::volume(1 << 30, 4096, 48 << 20));
    let per_tree = 1.0 + 255.0 / 50.0 + 1.0 + 50.2 / 50.0;
    let long = volume.gibibyte_read() * (1.0 / 1024.0);
    assert!(long.gets < levels * (per_tree + 2.01), "{}", long.gets);
    assert!(long.gets > levels * per_tree * 0.9, "{}", long.gets);
    assert!(long.gets < raw.access().gets * 256.0 / 10.0);
    // If every access is to a range, an access is as long.
    let fixed = range(Some(RangePolicy::Fixed(1 << 20)));
    assert_eq!(fixed.access_bytes(), 1 << 20);
    near(fixed.gibibyte_read().gets, 1024.0 * fixed.access().gets, 1e-9);
}

#[test]
fn a_scan_has_no_model() {
    let config = DurableScan.plan(&ArrayRequirements::new(1 << 20, "scan")).unwrap();
    assert!(VolumeOnObjects::from_config(&*config, ServiceKind::Folder).unwrap().is_none());
}
