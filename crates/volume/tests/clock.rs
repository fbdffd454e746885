//! A schedule on a real clock: trips begin at ticks, whatever the requests.
//!
//! Punctuality depends on the machine. The test asserts only properties that hold on a busy
//! machine, and prints its measurements:
//! `cargo test -p oblivio-volume --test clock -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "this file is a test")]
#![allow(clippy::print_stdout, reason = "prints the measured jitter")]
#![allow(clippy::disallowed_methods, reason = "the test measures time")]

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use oblivio_core::store::TreeId;
use oblivio_core::view::Operation;
use oblivio_testkit::crash::CrashStore;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_testkit::{Call, Faulty};
use oblivio_volume::device::{BlockDevice, DiskOp, Request};
use oblivio_volume::{Disk, DiskOptions, Schedule};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const PERIOD: Duration = Duration::from_millis(20);
const ACCESSES: usize = 6;
const RUN: Duration = Duration::from_millis(1500);

/// The tree that holds the blocks.
const DATA_TREE: TreeId = TreeId(2);

struct Trip {
    begun: Instant,
    is_read: bool,
}

/// One step of an owner, who uses a disk in a loop. The instant is the start of the run.
type Owner = fn(&Disk, &mut StdRng, Instant);

fn submit(disk: &Disk, op: DiskOp) {
    disk.submit(Request { op, done: Box::new(drop) });
}

fn write(disk: &Disk, coins: &mut StdRng, durable: bool) {
    let block = coins.random_range(0..disk.bytes() / u64::from(BLOCK_BYTES));
    let data = vec![coins.random(); BLOCK_BYTES as usize];
    submit(
        disk,
        DiskOp::Write { offset: block * u64::from(BLOCK_BYTES), data: data.into(), durable },
    );
}

const OWNERS: [(&str, Owner); 3] = [
    ("idle", |_, _, _| std::thread::sleep(Duration::from_millis(1))),
    ("bursty", |disk, coins, start| {
        if start.elapsed().as_millis() % 200 < 20 {
            (0..8).for_each(|n| write(disk, coins, n == 7));
        }
        std::thread::sleep(Duration::from_millis(1));
    }),
    ("saturated", |disk, coins, _| {
        let durable = coins.random();
        write(disk, coins, durable);
        let offset = coins.random_range(0..disk.bytes() - 4096);
        submit(disk, DiskOp::Read { offset, bytes: 4096 });
    }),
];

#[test]
fn trips_begin_at_ticks_whatever_the_requests() {
    let mut runs = Vec::new();
    for (name, owner) in OWNERS {
        let setup = SmallVolume::default();
        let world = setup.world();
        let made = setup.create(world.store(), world.dir(), StdRng::seed_from_u64(1)).unwrap();
        made.close().unwrap();
        let (trips, noted) = channel();
        let note_trips = move |store: &mut CrashStore, call: &mut Call<'_>| {
            let is_read = call.operation == Operation::Read;
            let moves = is_read || call.operation == Operation::Write;
            if moves && call.pieces.first().is_some_and(|piece| piece.tree == DATA_TREE) {
                // The receiver is dropped at the end of the run.
                let _ = trips.send(Trip { begun: Instant::now(), is_read });
            }
            call.forward(store)
        };
        let store = Faulty::new(world.store(), note_trips);
        let (volume, _) = setup.open(store, world.dir(), StdRng::seed_from_u64(2)).unwrap();
        while noted.try_recv().is_ok() {}
        let schedule = Schedule::new(PERIOD, ACCESSES).with_early_write_backs(true);
        let schedule = Some(schedule);
        let start = Instant::now();
        let options = DiskOptions::default().with_cache_bytes_max(8192).with_schedule(schedule);
        let disk = Disk::start(volume, &options).unwrap();
        let mut coins = StdRng::seed_from_u64(3);
        while start.elapsed() < RUN {
            owner(&disk, &mut coins, start);
        }
        let punctuality = disk.punctuality().unwrap();
        let trips: Vec<_> = noted.try_iter().collect();
        runs.push((name, trips, punctuality, start));
        // The saturated disk has more requests than its closing should wait for.
        std::mem::forget(disk);
    }
    for (name, trips, punctuality, start) in &runs {
        // The first trip of a tick follows a pause; each tick has the same number of reads.
        let period = PERIOD.as_secs_f64();
        let mut phases = Vec::new();
        let mut last: Option<Instant> = None;
        for trip in trips {
            let is_first = last.is_none_or(|last| trip.begun - last > PERIOD / 4);
            if is_first {
                phases.push(((trip.begun - *start).as_secs_f64() / period).fract() * period * 1e3);
            }
            last = Some(trip.begun);
        }
        let reads = trips.iter().filter(|trip| trip.is_read).count();
        // The disk's clock starts with the disk's thread, a little after `start`.
        let usual = quantile(&phases, 50);
        let jitter: Vec<_> = phases.iter().map(|phase| (phase - usual).abs()).collect();
        let (median, worst) = (quantile(&jitter, 50), quantile(&jitter, 95));
        println!(
            "{name:10} {} ticks, {} left out; the first trip of half of them within {median:.2} ms \
             of its usual moment, of 95 % within {worst:.2} ms; latest tick {:?} after its time; \
             {reads} reads of paths",
            punctuality.ticks, punctuality.left_out, punctuality.latest
        );
        assert!(phases.len() > 20, "{name}: {} ticks", phases.len());
        assert!(median < 3.0, "{name}: the median tick is {median} ms from its usual moment");
        let expected = punctuality.ticks as usize * ACCESSES;
        let evictions = trips.len() - reads;
        // The last tick may not be over.
        assert!((reads - evictions).abs_diff(expected) <= 2 * ACCESSES, "{name}: {reads} reads");
    }
}

fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() * percent / 100]
}
