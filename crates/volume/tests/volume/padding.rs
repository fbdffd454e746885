//! At a fixed rate, operations in the client's directory do not depend on requests: a tick that
//! comes due while the log or a checkpoint is written is skipped, and storage sees that.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, Device, SmallVolume};
use oblivio_testkit::crash::{CrashDir, DirStep, WatchedDir, World};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::schedule::{ACCESSES, Bench, CLIENTS, Client, setups};

type Steps = Arc<Mutex<Vec<DirStep>>>;

/// A directory that records its operations.
fn watched(dir: CrashDir, steps: &Steps) -> WatchedDir {
    let steps = steps.clone();
    WatchedDir::new(dir, move |step| {
        steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    })
}

/// Bytes of a record in a file in addition to the record's own.
const AROUND_RECORD: usize = 36 + 16;

/// The record of a forgotten range. There is one for each trim.
const FORGET: DirStep = DirStep::Append { records: 1, bytes: AROUND_RECORD + 1 + 8 + 8 };

/// The record of a write on the client: a hit that makes no access.
const IN_PLACE: DirStep =
    DirStep::Append { records: 1, bytes: AROUND_RECORD + 1 + 8 + 4 + BLOCK_BYTES as usize };

/// Removes the recorded operations from `steps` and returns them, without [`FORGET`] and
/// [`IN_PLACE`]. Appends to a new file count together: one section of a state may be shorter
/// because another is longer. Other appends count one by one, because filler depends on where they
/// end.
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

/// Creates a volume and makes 120 ticks. The client makes its requests before every `period`-th
/// tick.
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

/// Fails unless the operations are the same for all clients.
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
fn the_time_of_the_clients_directory_does_not_depend_on_requests() {
    assert_alike(|setup, client| {
        let (world, steps) = (setup.world(), Steps::default());
        let dir = watched(world.dir(), &steps);
        let _bench = bench(setup, &world, dir, client, 1);
        take(&steps)
    });
}

#[test]
fn the_time_of_closing_and_opening_does_not_depend_on_requests() {
    assert_alike(|setup, client| {
        let (world, steps) = (setup.world(), Steps::default());
        let dir = || watched(world.dir(), &steps);
        // The requests are so rare that none waits at the end, and there is room for trims:
        // otherwise the disk would stay open, which storage sees. The opening uses the fixed rate,
        // too.
        let device = Device::Scheduled { cache_blocks_max: 8, accesses: ACCESSES };
        let setup = SmallVolume { state_file_bytes_max: 1 << 20, device, ..setup };
        bench(setup, &world, dir(), client, 10).close();
        let coins = StdRng::seed_from_u64(setup.seed);
        drop(setup.open(world.store(), dir(), coins).unwrap());
        take(&steps)
    });
}
