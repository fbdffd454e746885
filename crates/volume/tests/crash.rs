//! A volume in a world in which machines die. `make crash` does the same at length.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod world;

use oblivio_testkit::crash::{Fault, Life, Survival};
use oblivio_volume::SyncMoves;
use world::Setup;

#[test]
fn without_faults_it_is_a_disk() {
    for seed in 0..3 {
        let setup = Setup { steps: 600, seed, ..Setup::default() };
        setup.run(&[]).unwrap();
        setup.run(&[Life::new(&[], Survival::All), Life::new(&[], Survival::None)]).unwrap();
    }
}

#[test]
fn every_tenth_operation_may_be_the_last() {
    for (sync_moves, survival) in [
        (SyncMoves::BeforeReads, Survival::None),
        (SyncMoves::BeforeReads, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::Random { torn: true }),
        (SyncMoves::AtFlush, Survival::All),
    ] {
        let setup = Setup { steps: 60, sync_moves, ..Setup::default() };
        let operations = setup.run(&[]).unwrap().operations[0].total();
        assert!(operations > 300);
        for n in (0..operations).step_by(10) {
            let life = Life::new(&[Fault::CrashAt(n)], survival);
            setup.run(&[life]).unwrap_or_else(|wrong| panic!("{setup:?}: {wrong}"));
        }
    }
}

/// Storage must not fall two checkpoints behind because openings come to nothing.
#[test]
fn two_openings_in_a_row_may_end_at_any_operation() {
    let setup = Setup { steps: 20, ..Setup::default() };
    let crash_at = |n| Life::new(&[Fault::CrashAt(n)], Survival::None);
    for first in 0..60_u64 {
        for second in first.saturating_sub(3)..=first + 3 {
            let lives =
                [Life::new(&[], Survival::None), crash_at(first), crash_at(second), crash_at(0)];
            setup.run(&lives).unwrap_or_else(|wrong| panic!("{first}, {second}: {wrong}"));
        }
    }
}
