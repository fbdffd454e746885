//! Tests of the views of combinations of techniques, over a set that covers every compatible pair.

use oblivio_core::HitPolicy;
use oblivio_core::store::{Part, Piece};
use oblivio_core::view::{Event, Operation};
use oblivio_testkit::statistics::Verdicts;
use oblivio_testkit::workload::{self, Workload};

use super::FALSE_ALARMS;
use super::leaves::judge_leaves;
use super::rings::Rings;
use crate::support::grid::{
    ACCESSES_PER_EVICTION, Bound, CAPACITY, Combination, Front, GridOram, LEAVES, Map, Request,
    RequestKind, Requests, Scheme, TOP_LEVELS, Top, covering_set, requests,
};

/// Writes every block, so that all blocks exist.
fn fill(tested: &mut GridOram) {
    let all = (0..CAPACITY).map(|address| Request { address, kind: RequestKind::Write, fill: 1 });
    tested.serve_all(&all.collect::<Vec<_>>());
}

/// Tests that runs with the same addresses and coins, but other operations and data, have the same
/// view except for the ciphertext.
///
/// If the component in front treats writes differently, the operations are also the same, and only
/// the data differ. Such components are a cache that remaps at accesses, which writes back only
/// dirty blocks, and ρ, which inserts only written blocks.
#[test]
fn the_same_addresses_give_the_same_view() {
    for (seed, combination) in (1..).zip(covering_set(2)) {
        let may_change_operations =
            matches!(combination.front, Front::None | Front::CacheDelayed | Front::DelayedRho);
        let view = |kinds: fn(usize) -> RequestKind, flip| {
            let mut tested = GridOram::new(&combination, seed);
            fill(&mut tested);
            for workload in [Workload::Uniform, Workload::Zipf, Workload::TwoAlternating] {
                let kinds =
                    |i: usize, _| if may_change_operations { kinds(i) } else { by_number(i) };
                let requests = requests(workload, seed, kinds).take(400);
                let flipped =
                    requests.map(|request| Request { fill: request.fill ^ flip, ..request });
                tested.serve_all(&flipped.collect::<Vec<_>>());
            }
            tested.take_view()
        };
        let first = view(by_number, 0);
        let others: [fn(usize) -> RequestKind; 2] = [|_| RequestKind::Read, |_| RequestKind::Write];
        for (kinds, flip) in others.into_iter().zip([0xFF, 0x55]) {
            let other = view(kinds, flip);
            let differs = first.iter().zip(&other).position(|(a, b)| a != b);
            assert_eq!(differs, None, "at this event, {combination:?}");
            assert_eq!(first.len(), other.len(), "{combination:?}");
        }
    }
}

fn by_number(i: usize) -> RequestKind {
    [RequestKind::Update, RequestKind::Read, RequestKind::Write][i % 3]
}

/// An event without its random part, which is the index of the bucket.
type EventShape = (Operation, Option<(u16, u8, Part)>, u64);

/// Tests that for all requests storage sees a prefix of one sequence of shapes. In some
/// combinations, the length of the prefix depends on the requests, and nothing else does.
///
/// Evictions caused by a full stash are not part of the sequence, so every stash here has room for
/// all blocks.
#[test]
fn all_addresses_give_a_prefix_of_one_shape() {
    let loose = |combination| Combination { bound: Bound::Loose, ..combination };
    for (seed, combination) in (1..).zip(covering_set(2).into_iter().map(loose)) {
        let views = Workload::ALL.map(|workload| {
            let mut tested = GridOram::new(&combination, seed);
            let kinds = |_, is_write| if is_write { RequestKind::Write } else { RequestKind::Read };
            let all: Vec<_> = requests(workload, seed, kinds).take(500).collect();
            tested.serve_all(&all[..250]);
            // Forgetting blocks reveals nothing except the position-map blocks that it needs.
            if combination.scheme == Scheme::Rotating
                && !combination.has_cache()
                && workload != Workload::Scan
            {
                tested.forget(all[250].address..all[250].address + 1);
            }
            tested.serve_all(&all[250..]);
            shapes(&combination, &tested.take_view())
        });
        let longest =
            views.iter().max_by_key(|view| view.len()).expect("there is at least one view");
        for (workload, view) in Workload::ALL.into_iter().zip(&views) {
            let differs = view.iter().zip(longest).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{workload} differs at this event, {combination:?}");
            let is_fixed = is_fixed(&combination);
            assert!(!is_fixed || view.len() == longest.len(), "{workload}, {combination:?}");
        }
    }
}

/// Whether the number of accesses depends only on the number of requests.
fn is_fixed(combination: &Combination) -> bool {
    // Counter overflows depend on the addresses, even without a PLB.
    matches!(combination.map, Map::Flat | Map::Recursive)
        && combination.hits == HitPolicy::Access
        && combination.front == Front::None
}

fn shapes(combination: &Combination, view: &[Event]) -> Vec<EventShape> {
    // Batching is public. With a position map in the tree, it depends on the positions needed.
    let shows_ahead = combination.map != Map::Nested || combination.requests == Requests::Single;
    let events = view.iter().filter(|event| shows_ahead || event.operation != Operation::Prefetch);
    let shape = |event: &Event| {
        let place = event.piece.map(|piece| (piece.tree.0, piece.bucket.level(), piece.part));
        (event.operation, place, event.bytes)
    };
    events.map(shape).collect()
}

/// Minimum number of accesses in a run for the statistical tests of its leaves.
const ENOUGH: usize = 4000;

/// Tests that the leaves of every combination of the covering set are uniform, independent and used
/// once. If the combination serves hits, the leaves need not be [independent](HitPolicy::Serve).
#[test]
fn has_leaves_that_are_uniform_independent_and_fresh() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    let mut judged = 0;
    for (seed, combination) in (1..).zip(covering_set(2)) {
        let combination = Combination { bound: Bound::Loose, ..combination };
        for workload in [Workload::Uniform, Workload::Zipf, Workload::Scan] {
            let mut tested = GridOram::new(&combination, seed);
            let kinds = |_, is_write| if is_write { RequestKind::Write } else { RequestKind::Read };
            let all: Vec<_> = requests(workload, seed, kinds).take(10_000).collect();
            tested.serve_all(&all);
            let leaves = leaves(&combination, &tested.take_view());
            if leaves.len() < ENOUGH {
                continue;
            }
            let requested = all.iter().map(|request| workload::Request {
                address: request.address,
                is_write: request.kind == RequestKind::Write,
            });
            let serves = combination.hits == HitPolicy::Serve;
            let known = tested.composed.take_notes().or_else(|| {
                // A rotating ORAM does not report its accesses other than requests.
                (combination.map == Map::Flat
                    && combination.front == Front::None
                    && combination.scheme == Scheme::Rotating
                    && !serves)
                    .then(|| requested.collect())
            });
            let name = format!("{workload}, {combination:?}");
            judge_leaves(&name, known.as_deref(), &leaves, LEAVES, !serves, &mut verdicts);
            judged += 1;
        }
    }
    assert!(judged > 50, "{judged}");
    verdicts.conclude();
}

/// The leaves of the paths of the main tree that were read for accesses, not for evictions.
fn leaves(combination: &Combination, view: &[Event]) -> Vec<u64> {
    let mut rings = (combination.scheme == Scheme::Rotating)
        .then(|| Rings::new(if combination.top == Top::None { 0 } else { TOP_LEVELS }));
    let main: Vec<_> = view
        .iter()
        .filter_map(|event| Some((event, event.piece.filter(|piece| piece.tree.0 == 0)?)))
        .collect();
    let calls = main.chunk_by(|a, b| a.0.trip == b.0.trip);
    let paths = calls.filter_map(|call| {
        let operation = call[0].0.operation;
        let mut pieces: Vec<Piece> = call.iter().map(|(_, piece)| *piece).collect();
        if let Some(rings) = &mut rings {
            rings.name_buckets(operation, &mut pieces);
        }
        let leaf = pieces.last().expect("a call has pieces").bucket.index();
        (operation == Operation::Read).then_some(leaf)
    });
    let period = ACCESSES_PER_EVICTION as usize + 1;
    let is_access =
        |i: usize| combination.scheme == Scheme::Path || !(i + 1).is_multiple_of(period);
    paths.enumerate().filter(|(i, _)| is_access(*i)).map(|(_, leaf)| leaf).collect()
}
