//! Correct protocols pass with a crash or failure at every operation. Flawed ones are caught.

use oblivio_volume::device::{BlockDevice, DiskError};

use super::toys::{BLOCK, DISK, Flaw, InPlaceDisk, JournalDisk, LogDisk, Toy, shapes};
use crate::crash::{
    CrashDir, CrashStore, FailedSync, InjectedFault, Life, Loss, OpKind, Survival, Trial,
};

fn trial(seed: u64, failed_sync: FailedSync) -> Trial {
    let (bytes, block_bytes) = (DISK as u64, BLOCK as u32);
    Trial { shapes: shapes(), disks: 1, bytes, block_bytes, steps: 60, seed, failed_sync }
}

/// For each operation of a life, runs the life with each kind of fault there, and then a life that
/// crashes early. Returns the number of lives that a fault struck, or the first violation.
fn explore<D: BlockDevice>(
    seeds: u64,
    modes: &[Survival],
    mut open: impl FnMut(CrashStore, CrashDir) -> Result<D, DiskError>,
) -> Result<usize, String> {
    let mut struck = 0;
    for seed in 0..seeds {
        let calm = [Life::new(&[], Survival::None), Life::new(&[], Survival::None)];
        let ran =
            trial(seed, FailedSync::Drops).run(&calm, &mut open).map_err(|loss| loss.message)?;
        for point in 0..ran.operations[0].total() {
            let store = modes[point as usize % modes.len()];
            for (fault, survival) in faults(point, modes) {
                let failed_sync = match point % 4 {
                    0 => FailedSync::Retains,
                    _ => FailedSync::Drops,
                };
                let lives = [
                    Life { faults: vec![fault], store, dir: survival },
                    Life::new(
                        &[InjectedFault::CrashAt(point % 20)],
                        modes[seed as usize % modes.len()],
                    ),
                ];
                let in_trial = |loss: Loss| format!("seed {seed}, {lives:?}: {loss}");
                let trial = trial(seed, failed_sync);
                struck += trial.run(&lives, &mut open).map_err(in_trial)?.struck();
            }
        }
    }
    Ok(struck)
}

fn faults(point: u64, modes: &[Survival]) -> impl Iterator<Item = (InjectedFault, Survival)> + '_ {
    modes.iter().flat_map(move |survival| {
        [
            InjectedFault::CrashAt(point),
            InjectedFault::FailAt(point),
            InjectedFault::FailEvery(point + 1),
            InjectedFault::DiskFullAt(point),
            InjectedFault::DiskFullFrom(point),
        ]
        .map(|fault| (fault, *survival))
    })
}

/// Flawed protocols get more seeds, because their search ends with the first violation.
fn seeds(flaw: Flaw) -> u64 {
    if flaw == Flaw::None { 4 } else { 40 }
}

fn log_disk(flaw: Flaw, modes: &[Survival]) -> Result<usize, String> {
    explore(seeds(flaw), modes, |_, dir| Toy::new(LogDisk::open(dir, flaw)))
}

fn journal_disk(flaw: Flaw, modes: &[Survival]) -> Result<usize, String> {
    explore(seeds(flaw), modes, |store, dir| Toy::new(JournalDisk::open(store, dir, flaw)))
}

#[test]
fn a_correct_log_passes_everywhere() {
    let struck = log_disk(Flaw::None, &Survival::MODES).unwrap();
    assert!(struck > 1000, "{struck} faults struck");
}

#[test]
fn each_flaw_of_a_log_is_caught() {
    for flaw in [
        Flaw::FlushDoesNotSync,
        Flaw::SyncIsRetried,
        Flaw::FailedAppendIsIgnored,
        Flaw::NoChecksum,
        Flaw::RenameBeforeSync,
        Flaw::NamesAreNotSynced,
        Flaw::OldLogIsTrusted,
    ] {
        assert!(log_disk(flaw, &Survival::MODES).is_err(), "{flaw:?} passed");
    }
}

#[test]
fn a_correct_journal_passes_everywhere() {
    let struck = journal_disk(Flaw::None, &Survival::MODES).unwrap();
    assert!(struck > 1000, "{struck} faults struck");
}

#[test]
fn each_flaw_of_a_journal_is_caught() {
    for flaw in [
        Flaw::FlushDoesNotSync,
        Flaw::SyncIsRetried,
        Flaw::NamesAreNotSynced,
        Flaw::StoreBeforeLog,
        Flaw::StoreIsNotFlushed,
    ] {
        assert!(journal_disk(flaw, &Survival::MODES).is_err(), "{flaw:?} passed");
    }
}

#[test]
fn torn_blocks_of_in_place_writes_are_caught() {
    let in_place =
        |modes: &[Survival]| explore(6, modes, |store, _| Toy::new(InPlaceDisk::open(store)));
    let wrong = in_place(&[Survival::Random { torn: true }]).unwrap_err();
    assert!(wrong.contains("Torn"), "{wrong}");
}

#[test]
fn the_same_trial_is_the_same_run() {
    let lives = [Life::new(&[InjectedFault::FailAt(9)], Survival::Random { torn: true })];
    let run = |seed| {
        let mut seen = Vec::new();
        let ran = trial(seed, FailedSync::Drops).run(&lives, |store, dir| {
            let world = store.world.clone();
            let disk = Toy::new(JournalDisk::open(store, dir, Flaw::None));
            seen.push((world.view(), world.snapshot().files().clone()));
            disk
        });
        (ran, seen)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).1, run(6).1);
    let ran = run(5).0.unwrap();
    assert_eq!((ran.struck(), ran.operations.len()), (1, 2));
    assert!(ran.operations[1].count(OpKind::StoreFlush) > 0);
}

#[test]
fn a_log_that_accepts_records_of_an_older_log_is_caught() {
    let survival = Survival::Random { torn: false };
    let run = |seed, flaw, point| {
        let lives =
            [Life::new(&[], Survival::None), Life::new(&[InjectedFault::CrashAt(point)], survival)];
        trial(seed, FailedSync::Drops).run(&lives, |_, dir| Toy::new(LogDisk::open(dir, flaw)))
    };
    let mut points = (0..400).flat_map(|seed| (8..14).map(move |point| (seed, point)));
    for (seed, point) in points.clone().take(200) {
        run(seed, Flaw::None, point).unwrap();
    }
    assert!(points.any(|(seed, point)| run(seed, Flaw::NoGeneration, point).is_err()));
}
