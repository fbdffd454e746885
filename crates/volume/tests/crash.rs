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
