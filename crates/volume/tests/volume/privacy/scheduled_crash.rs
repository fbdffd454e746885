//! Crashes of a disk that makes its accesses at a fixed rate: a recovery reveals no more than the
//! ticks before it.

use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_testkit::crash::{InjectedFault, Survival};
use oblivio_volume::Disk;
use oblivio_volume::device::{BlockDevice, DiskOp, Request};

use crate::support::bench::{Bench, is_repetition};

/// Accesses at each tick.
const ACCESSES: usize = 7;

const CACHE_BYTES: u64 = 8 * BLOCK_BYTES as u64;

/// The request that a client submits before each tick.
type Client = fn(tick: u64) -> Option<DiskOp>;

const CLIENTS: [(&str, Client); 3] = [
    ("idle", |_| None),
    ("reads", |tick| Some(DiskOp::Read { offset: at(tick), bytes: 5 * BLOCK_BYTES })),
    ("writes", |tick| {
        let data = vec![1; 5 * BLOCK_BYTES as usize];
        Some(DiskOp::Write { offset: at(tick), data: data.into(), durable: tick % 2 == 0 })
    }),
];

fn at(tick: u64) -> u64 {
    tick * 11 % 50 * u64::from(BLOCK_BYTES)
}

/// Recovery repeats all accesses since the last checkpoint, whatever their purpose. If some were
/// left out or read other paths, storage could tell that those were dummies.
#[test]
fn a_recovery_repeats_the_accesses_of_ticks_whatever_the_requests() {
    for (name, client) in CLIENTS {
        for survival in [Survival::None, Survival::All] {
            let mut all_repeated = 0;
            for crash_at in (0..130).step_by(3) {
                let setup = SmallVolume { leaf_level: 10, ..SmallVolume::default() };
                let mut bench = Bench::new(setup, crash_at);
                bench.world.plan(&[InjectedFault::CrashAt(crash_at)], &mut bench.coins);
                if let Ok((volume, _)) = bench.open() {
                    let (disk, ticks) =
                        Disk::start_without_clock(volume, CACHE_BYTES, ACCESSES, true).unwrap();
                    for tick in (0..).take_while(|_| !bench.world.is_off()) {
                        if let Some(op) = client(tick) {
                            disk.submit(Request { op, done: Box::new(drop) });
                        }
                        ticks.tick();
                    }
                }
                bench.world.crash(&mut bench.coins, survival);
                let shown = bench.leaves();
                let (_, recovery) = bench.open().unwrap();
                let repeated = bench.leaves().split_off(shown.len());
                assert_eq!(repeated.len() as u64, recovery.accesses);
                assert!(
                    is_repetition(&repeated, &shown, ACCESSES),
                    "{name}, crash at {crash_at}, {survival:?}: {repeated:?} after {shown:?}"
                );
                all_repeated += repeated.len();
            }
            assert!(all_repeated > 100, "{name}: {all_repeated}");
        }
    }
}
