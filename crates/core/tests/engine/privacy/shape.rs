//! Tests that views of runs of one length differ only in leaves and ciphertext.

use oblivio_core::store::Part;
use oblivio_core::view::Operation;

use oblivio_testkit::workload::Workload;

use super::run::{Frontend, Run, Scheme, Setup, States};

const ACCESSES: usize = 1000;

/// An event without its random part, which is the index of the bucket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventShape {
    trip: u64,
    operation: Operation,
    place: Option<(u16, u8, Part)>,
    bytes: u64,
}

pub(crate) fn shape(run: &Run) -> Vec<EventShape> {
    let events = run.view.events().iter().map(|event| EventShape {
        trip: event.trip,
        operation: event.operation,
        place: event.piece.map(|piece| (piece.tree.0, piece.bucket.level(), piece.part)),
        bytes: event.bytes,
    });
    events.collect()
}

/// Makes all runs of `setup`, and checks that their views have the same shape. Returns the rare
/// states that occurred.
#[track_caller]
pub(crate) fn assert_alike(setup: &Setup) -> States {
    let mut states = States::default();
    let mut first: Option<Vec<EventShape>> = None;
    for run in setup.runs() {
        states += run.states;
        let shape = shape(&run);
        assert!(shape.len() > setup.accesses, "the view is too short");
        let Some(first) = &first else {
            first = Some(shape);
            continue;
        };
        let differs = first.iter().zip(&shape).position(|(a, b)| a != b);
        let Run { workload, setup, .. } = run;
        assert_eq!(differs, None, "{workload} differs at this event, {setup:?}");
        assert_eq!(first.len(), shape.len(), "{workload} has another length, {setup:?}");
    }
    states
}

#[test]
fn workloads_of_one_length_look_alike() {
    let rotating = [Scheme::Rotating(1), Scheme::Rotating(3)];
    for scheme in [Scheme::Path, Scheme::Raw(1), Scheme::Raw(3)].into_iter().chain(rotating) {
        let mut states = States::default();
        for setup in Setup::new(scheme, ACCESSES).variants() {
            states += assert_alike(&setup);
        }
        states.assert_rare_ones_occurred(10);
        assert!(states.repeats_in_batch >= 100, "{states:?}");
        let forgets = rotating.contains(&scheme);
        assert!(!forgets || states.forgotten_just_before >= 100, "{states:?}");
    }
}

/// Tests that, for all requests, the view of Freecursive ORAM has the same shape as the view of
/// equally many single accesses with a flat position map. So accesses to data and to the position
/// map look alike.
#[test]
fn freecursive_looks_like_as_many_single_accesses() {
    for scheme in [Scheme::Path, Scheme::Raw(1), Scheme::Raw(3)] {
        let mut states = States::default();
        for setup in Setup::freecursive(scheme, ACCESSES).variants() {
            for run in setup.runs() {
                states += run.states;
                let Run { workload, setup, accesses, .. } = &run;
                // The number of accesses depends only on the addresses, whatever is known about the
                // blocks.
                let expected_accesses = run.states.frontend.accesses();
                assert_eq!(
                    accesses.len() as u64,
                    expected_accesses,
                    "{workload} makes another number of accesses, {setup:?}"
                );
                let single = Setup {
                    frontend: Frontend::Flat,
                    batched: false,
                    accesses: accesses.len(),
                    ..*setup
                };
                let (seen, single) = (shape(&run), shape(&single.run(Workload::Uniform)));
                let differs = seen.iter().zip(&single).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{workload} differs at this event, {setup:?}");
                assert_eq!(seen.len(), single.len(), "{workload} has another length, {setup:?}");
            }
        }
        states.assert_rare_ones_occurred(10);
        states.assert_rare_ones_of_the_frontend_occurred(1000);
    }
}

/// Checks that the views of all runs of `setup` have the same shape if some batches begin with the
/// stash at its bound. The bound is set to the maximum number of blocks with which any batch
/// begins. So some batches begin at the bound and none above it, and other runs stay far below.
#[track_caller]
fn assert_alike_at_the_bound(setup: &Setup) -> States {
    let stash_blocks_max = setup.runs().map(|run| run.states.most_at_start).fold(1, usize::max);
    let states = assert_alike(&Setup { stash_blocks_max, ..*setup });
    assert!(states.stash_at_bound > 0, "no batch began at the bound: {states:?}");
    assert!(states.stash_empty > 0, "no batch began with an empty stash: {states:?}");
    states
}

#[test]
fn a_stash_at_its_bound_looks_like_an_empty_one() {
    for scheme in Scheme::each(3) {
        assert_alike_at_the_bound(&Setup::new(scheme, ACCESSES));
    }
}

#[test]
fn a_stash_that_passes_its_bound_within_a_batch_looks_like_an_empty_one() {
    for scheme in Scheme::each(3) {
        let setup = Setup { batched: true, ..Setup::new(scheme, ACCESSES) };
        let states = assert_alike_at_the_bound(&setup);
        // The stash is counted only after evictions, so for RAW ORAM its peak within a batch is
        // unknown.
        let passed = states.peak_stash_blocks > states.most_at_start;
        assert!(passed || scheme != Scheme::Path, "no batch passed the bound: {states:?}");
    }
}
