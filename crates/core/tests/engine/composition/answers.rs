//! Tests of each combination: its answers against a plain array, its invariants, and its tallies
//! against the view of storage.

use std::collections::BTreeMap;

use oblivio_core::HitPolicy;
use oblivio_core::view::{Event, Operation};
use oblivio_testkit::workload::Workload;

use crate::support::grid::{
    ACCESSES_PER_EVICTION, CAPACITY, Combination, GridOram, Map, POSITION_MAP_DEPTH, Request,
    RequestKind, SMALL_PER_MAIN, Scheme, all_allowed, covering_set, requests,
};

const REQUESTS: usize = 700;

/// Draws a list of workloads, each with requests of all kinds.
fn mixed(seed: u64) -> Vec<Vec<Request>> {
    let kinds = |i: usize, is_write: bool| match (i % 5, is_write) {
        (0, _) => RequestKind::Update,
        (_, true) => RequestKind::Write,
        (_, false) => RequestKind::Read,
    };
    let workloads = [Workload::Uniform, Workload::Scan, Workload::Zipf, Workload::TwoAlternating];
    workloads.map(|workload| requests(workload, seed, kinds).take(REQUESTS).collect()).into()
}

#[test]
fn combinations_are_arrays_and_keep_their_invariants_and_their_tallies() {
    let rare = check_all(&covering_set(3));
    assert!(rare.room_made > 1000 && rare.forgotten > 200 && rare.hits > 2000, "{rare:?}");
}

#[test]
#[ignore = "takes nearly a minute"]
fn all_combinations_are_arrays_and_keep_their_invariants_and_their_tallies() {
    check_all(&all_allowed());
}

/// Counts of rare states in a test, which checks that they occurred.
#[derive(Debug, Default)]
struct Rare {
    room_made: u64,
    forgotten: u64,
    hits: u64,
}

fn check_all(combinations: &[Combination]) -> Rare {
    let mut rare = Rare::default();
    for (seed, combination) in (1..).zip(combinations) {
        let mut tested = GridOram::new(combination, seed);
        let mut seen = BTreeMap::new();
        for workload in mixed(seed) {
            for part in workload.chunks(REQUESTS / 10) {
                tested.serve_all(part);
                // Forget blocks that were just requested, because some of them are on the client.
                if !combination.has_cache() {
                    let first = part[0].address.min(CAPACITY - 9);
                    rare.forgotten += u64::from(tested.forget(first..first + 9));
                }
            }
            count_paths(&tested.take_view(), &mut seen);
            check_invariants(combination, &mut tested);
        }
        tested.flush();
        count_paths(&tested.take_view(), &mut seen);
        assert_tallies(combination, &tested, &seen);
        check_invariants(combination, &mut tested);
        let all =
            (0..CAPACITY).map(|address| Request { address, kind: RequestKind::Read, fill: 0 });
        tested.serve_all(&all.collect::<Vec<_>>());
        rare.room_made += tested.room_made;
        rare.hits += tested.found_on_client + tested.composed.hits();
    }
    rare
}

/// Checks the invariants. Removes the scan from the view, so that it is not counted.
#[track_caller]
fn check_invariants(combination: &Combination, tested: &mut GridOram) {
    tested.composed.check().unwrap_or_else(|error| panic!("{error}, {combination:?}"));
    tested.take_view();
}

/// Adds the number of paths read from each tree in `view` to `seen`.
fn count_paths(view: &[Event], seen: &mut BTreeMap<u16, u64>) {
    let place = |event: &Event| event.piece.map(|piece| piece.tree.0);
    let reads = view.iter().filter(|event| event.operation == Operation::Read);
    let mut last = None;
    for event in reads {
        let (tree, trip) = (place(event).unwrap(), event.trip);
        if last != Some((tree, trip)) {
            *seen.entry(tree).or_default() += 1;
        }
        last = Some((tree, trip));
    }
}

/// Checks that the tallies match the requests and the paths that storage saw.
#[track_caller]
fn assert_tallies(combination: &Combination, tested: &GridOram, seen: &BTreeMap<u16, u64>) {
    let place = format!("{combination:?}");
    let accesses = tested.composed.accesses(tested.room_made);
    for (tree, accesses) in (0..).zip(&accesses) {
        let mut paths = *accesses;
        if combination.scheme != Scheme::Path {
            paths += accesses / u64::from(ACCESSES_PER_EVICTION);
        }
        if !combination.has_rho() {
            paths += tested.room_made;
        }
        assert_eq!(seen.get(&tree), Some(&paths), "of tree {tree}, {place}");
    }
    if combination.has_rho() {
        assert_eq!(accesses[1], accesses[0] * SMALL_PER_MAIN as u64, "{place}");
    }
    let reaching = tested.composed.reaching_requests(tested.requests) - tested.found_on_client;
    if let Some(data_accesses) = tested.composed.data_accesses(tested.room_made) {
        assert_eq!(data_accesses, reaching - tested.composed.hits(), "{place}");
    }
    // Without a PLB and without hits on the client, each block of the chain costs an access.
    if (combination.map, combination.hits) == (Map::FreecursiveWithoutPlb, HitPolicy::Access)
        && let Some(position_map_accesses) = tested.composed.position_map_accesses()
    {
        let chains = reaching + tested.composed.put_back();
        assert_eq!(position_map_accesses, POSITION_MAP_DEPTH * chains, "{place}");
    }
    let hits = tested.found_on_client + tested.composed.hits();
    assert!(combination.hits == HitPolicy::Serve || hits == 0, "{place}");
}
