//! At a fixed rate, what is done in the client's directory does not depend on what was asked: a tick that comes while
//! the log or a checkpoint is written is left out, and storage sees that.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, Device, SmallVolume};
use oblivio_testkit::crash::{CrashDir, DirStep, WatchedDir, World};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::schedule::{ACCESSES, Bench, CLIENTS, Client, setups};

type Steps = Arc<Mutex<Vec<DirStep>>>;

/// A directory that keeps what is done in it.
fn watched(dir: CrashDir, steps: &Steps) -> WatchedDir {
    let steps = steps.clone();
    WatchedDir::new(dir, move |step| {
        steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    })
}

/// Bytes of a record in a file that are not the record's own.
const AROUND_RECORD: usize = 36 + 16;

/// The record of a range that was forgotten. There is one for each trim.
const FORGET: DirStep = DirStep::Append { records: 1, bytes: AROUND_RECORD + 1 + 8 + 8 };

/// The record of a block that was written where it was: of a hit that makes no access.
const IN_PLACE: DirStep =
    DirStep::Append { records: 1, bytes: AROUND_RECORD + 1 + 8 + 4 + BLOCK_BYTES as usize };

/// All that was done so far. What is appended to a file that was just made counts together: of two sections of a state, one may
/// be shorter because the other is longer. All else is told append by append, because filler goes where they end.
fn take(steps: &Steps) -> Vec<DirStep> {
    let taken = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
    let mut together: Vec<DirStep> = Vec::new();
    let mut is_state = false;
    for step in taken.into_iter().filter(|step| *step != FORGET && *step != IN_PLACE) {
        is_state = step == DirStep::Create || is_state && matches!(step, DirStep::Append { .. });
        match (together.last_mut().filter(|_| is_state), &step) {
            (
                Some(DirStep::Append { records, bytes }),
                DirStep::Append { records: more, bytes: added },
            ) => {
                *records += more;
                *bytes += added;
            }
            _ => together.push(step),
        }
    }
    together
}

/// A volume that is made, and 120 ticks, before each `period`-th of which the client asks.
fn bench(
    setup: SmallVolume,
    world: &World,
    dir: WatchedDir,
    client: Client,
    period: usize,
) -> Bench {
    let coins = StdRng::seed_from_u64(setup.seed);
    let volume = setup.create(world.store(), dir, coins).unwrap();
    let mut bench = Bench::of((setup, world.clone()), volume, 8, ACCESSES, true);
    for tick in 0..120 {
        if tick % period == 0 {
            client(&mut bench, tick / period);
        }
        bench.ticks.tick();
    }
    bench
}

/// Fails unless all clients have the same done.
fn assert_alike(steps_of: impl Fn(SmallVolume, Client) -> Vec<DirStep>) {
    for setup in setups() {
        let [(_, idle), others @ ..] = CLIENTS;
        let idle = steps_of(setup, idle);
        assert!(idle.contains(&DirStep::Create), "there is no checkpoint");
        for (name, client) in others {
            let ours = steps_of(setup, client);
            let differing = ours.iter().zip(&idle).find(|(ours, idle)| ours != idle);
            assert!(differing.is_none(), "{name}: {differing:?}, {setup:?}");
            assert_eq!(ours.len(), idle.len(), "{name}, {setup:?}");
        }
    }
}

#[test]
fn the_clients_directory_takes_as_long_whoever_asks() {
    assert_alike(|setup, client| {
        let (world, steps) = (setup.world(), Steps::default());
        let dir = watched(world.dir(), &steps);
        let _bench = bench(setup, &world, dir, client, 1);
        take(&steps)
    });
}

#[test]
fn closing_and_opening_take_as_long_whoever_asked() {
    assert_alike(|setup, client| {
        let (world, steps) = (setup.world(), Steps::default());
        let dir = || watched(world.dir(), &steps);
        // So seldom that nobody waits at the end, and with room for trims: that would keep the disk open, which is seen.
        // The opening knows of the fixed rate, too.
        let device = Device::Scheduled { cache_blocks_max: 8, accesses: ACCESSES };
        let setup = SmallVolume { state_file_bytes_max: 1 << 20, device, ..setup };
        bench(setup, &world, dir(), client, 10).close();
        let coins = StdRng::seed_from_u64(setup.seed);
        drop(setup.open(world.store(), dir(), coins).unwrap());
        take(&steps)
    });
}
