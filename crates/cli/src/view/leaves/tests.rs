use oblivio_core::BucketId;
use oblivio_core::store::{Piece, TreeId};

use super::*;

/// A linear congruential generator of draws below a bound.
fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |range| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % range
    }
}

fn event(trip: u64, operation: Operation, level: u8, index: u64) -> Event {
    let bucket = BucketId::new(level, index);
    let piece = Some(Piece { tree: TreeId(2), bucket, part: Part::Whole });
    Event { trip, operation, piece, bytes: 1 }
}

/// The events that storage sees on the leaf level of a rotating tree, after `begun` earlier
/// evictions.
fn rotating(level: u8, top: u8, begun: u64, leaf: &mut dyn FnMut(u64) -> u64) -> Vec<Event> {
    let (leaves, ring) = (1 << level, (1 << level) + (1 << top));
    let (mut events, mut trip) = (Vec::new(), 0);
    for access in 0..40_000u64 {
        let g = leaves + begun + access / 5;
        let place = |leaf: u64| {
            let last = g - 1 - ((g - 1 - leaf) & (leaves - 1));
            last % ring
        };
        trip += 1;
        events.push(event(trip, Operation::Read, level + 1, place(leaf(leaves))));
        if access % 5 == 4 {
            events.push(event(trip + 1, Operation::Read, level + 1, place(g & (leaves - 1))));
            events.push(event(trip + 2, Operation::Write, level + 1, g % ring));
            trip += 2;
        }
    }
    events
}

fn counted(map: LeafMap, events: &[Event]) -> (LeafCounts, Vec<BucketVisit>) {
    let (mut counts, mut visits) = (LeafCounts::new(map), Vec::new());
    events.iter().for_each(|event| counts.record(event, &mut |visit| visits.push(visit)));
    counts.end_access(&mut |visit| visits.push(visit));
    (counts, visits)
}

fn p(counts: &LeafCounts) -> f64 {
    super::super::uniformity::Uniformity::of(counts.bins()).unwrap().p
}

#[test]
fn leaves_of_a_rotating_tree_are_found_wherever_evictions_have_come_to() {
    for (level, top, begun) in [(10, 6, 0), (10, 6, 777), (13, 3, 5_000_000), (4, 4, 9)] {
        let mut draw = draws(begun);
        let events = rotating(level, top, begun, &mut draw);
        let map = LeafMap::of_evictions(top + 1, level + 1, (1 << level) + (1 << top) - 1);
        assert_eq!(map.ring, Some((1 << level) + (1 << top)));
        let (counts, _) = counted(map, &events);
        assert_eq!((counts.accesses(), counts.evictions()), (40_000, Some(8000)));
        assert_eq!(counts.unknown(), 5, "before the first eviction");
        assert!(p(&counts) > 1e-3, "{level}, {top}, {begun}: {:?}", counts.bins());
    }
}

#[test]
fn a_leaf_that_comes_too_often_is_seen_through_the_rotation() {
    let mut draw = draws(1);
    let mut turn = 0;
    let mut leaning = |leaves: u64| {
        turn += 1;
        if turn % 10 == 0 { 37 } else { draw(leaves) }
    };
    let events = rotating(10, 6, 777, &mut leaning);
    let map = LeafMap::of_evictions(7, 11, (1 << 10) + (1 << 6) - 1);
    let (counts, _) = counted(map, &events);
    assert!(p(&counts) < 1e-9, "{:?}", counts.bins());
}

#[test]
fn places_of_a_rotating_tree_are_not_uniform_though_leaves_are() {
    let events = rotating(8, 7, 0, &mut draws(3));
    // Interpreted as a tree without rotation.
    let map = LeafMap { ring: None, leaves: 512, ..LeafMap::of_evictions(8, 9, 383) };
    assert!(p(&counted(map, &events).0) < 1e-9);
}

#[test]
fn accesses_are_distinguished_from_evictions() {
    let events = [
        event(1, Operation::Read, 3, 5),
        event(1, Operation::Read, 2, 1),
        event(2, Operation::Read, 3, 6),
        event(3, Operation::Read, 3, 1),
        event(4, Operation::Write, 3, 7),
        event(5, Operation::Prefetch, 3, 4),
        event(6, Operation::Read, 3, 2),
    ];
    let (counts, visits) = counted(LeafMap::of_evictions(0, 3, 7), &events);
    let visits: Vec<_> =
        visits.iter().map(|visit| (visit.access, visit.bucket, visit.is_eviction)).collect();
    assert_eq!(visits, [(0, 5, false), (1, 6, false), (2, 7, true), (2, 2, false)]);
    assert_eq!((counts.accesses(), counts.evictions()), (3, Some(1)));
}

#[test]
fn each_read_counts_as_an_access_if_accesses_write_back_their_paths() {
    let paths = [5, 6, 1, 1, 3];
    let events = (0..).zip(paths).flat_map(|(access, leaf)| {
        [Operation::Read, Operation::Write].map(|operation| {
            event(2 * access + u64::from(operation == Operation::Write), operation, 3, leaf)
        })
    });
    let (counts, visits) = counted(LeafMap::of_paths(3), &events.collect::<Vec<_>>());
    assert_eq!((counts.accesses(), counts.evictions()), (5, None));
    assert_eq!(counts.bins(), [0, 2, 0, 1, 0, 1, 1, 0]);
    assert!(visits.iter().all(|visit| !visit.is_eviction));
}

#[test]
fn a_range_that_is_read_together_counts_once() {
    let mut events: Vec<_> = (4..8).map(|index| event(1, Operation::Read, 3, index)).collect();
    events.push(Event {
        piece: events[0].piece.map(|piece| Piece { part: Part::Slot(1), ..piece }),
        trip: 2,
        ..events[0]
    });
    let (counts, _) = counted(LeafMap::of_evictions(0, 3, 7), &events);
    assert_eq!(counts.bins(), [0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn no_order_of_events_makes_it_panic() {
    let mut draw = draws(7);
    for (top, deepest) in [(0, 1), (1, 2), (1, 40), (39, 40), (5, 9)] {
        for index_max in [0, u64::MAX] {
            let map = LeafMap::of_evictions(top, deepest, index_max);
            let operations = [Operation::Read, Operation::Write, Operation::Prefetch];
            let events: Vec<_> = (0..2000)
                .map(|trip| {
                    let operation = operations[draw(3) as usize];
                    event(trip / 3, operation, deepest, draw(u64::MAX) & ((1 << deepest) - 1))
                })
                .collect();
            counted(map, &events);
        }
    }
}
