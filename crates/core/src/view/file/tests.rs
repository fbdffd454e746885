use std::io;

use proptest::prelude::*;

use super::*;
use crate::geometry::BucketId;
use crate::pieces::{Part, Piece, TreeId};
use crate::store::Capabilities;
use crate::view::{
    Direction, Event, EventSink, Observed, Operation, PeerMessage, PeerMessageSink, ViewServers,
    server_of_view_tree, view_tree,
};

/// The contents of a view file.
#[derive(Clone, Debug, PartialEq)]
struct View {
    capabilities: Option<Capabilities>,
    servers: Option<ViewServers>,
    events: Vec<Observed>,
    /// The time of each item in microseconds, if the file has times.
    times: Option<Vec<u64>>,
}

/// The first bytes of view files: one example for each of versions 1 to 3, then three of the
/// current version, for a store of whole buckets, a store of parts of buckets, and three servers.
const STARTS: [&[u8]; 6] = [
    b"OBLVIEW\x01",
    b"OBLVIEW\x02\x00",
    b"OBLVIEW\x03\x01",
    b"OBLVIEW\x04\x00\x00",
    b"OBLVIEW\x04\x01\x00",
    b"OBLVIEW\x04\x01\x03\x01\x05",
];

/// The index in [`STARTS`] of the first example of the current version.
const WRITTEN: usize = 3;

/// Encodes a view as a file of the current version. The view must have capabilities and times.
fn to_bytes(view: &View) -> Vec<u8> {
    let mut sink = FileSink::new(Vec::new(), view.capabilities.unwrap(), view.servers);
    for (observed, time) in view.events.iter().zip(view.times.as_ref().unwrap()) {
        sink.set_micros(*time);
        put(&mut sink, observed);
    }
    sink.finish().unwrap()
}

fn put(sink: &mut impl PeerMessageSink, observed: &Observed) {
    match observed {
        Observed::Event(event) => sink.record(event, &[]),
        Observed::PeerMessage(exchange) => sink.record_message(exchange, &[]),
    }
}

/// Decodes a file: the items before the first error, and the error, if any.
fn from_bytes(bytes: &[u8]) -> (View, Option<ViewFileError>) {
    let mut view = View { capabilities: None, servers: None, events: Vec::new(), times: None };
    match read_view(bytes) {
        Err(error) => (view, Some(error)),
        Ok(mut reader) => {
            view.capabilities = reader.capabilities();
            view.servers = reader.servers();
            view.times = reader.micros().map(|_| Vec::new());
            let error = loop {
                match reader.next() {
                    None => break None,
                    Some(Err(error)) => break Some(error),
                    Some(Ok(observed)) => view.events.push(observed),
                }
                if let Some(times) = &mut view.times {
                    times.push(reader.micros().unwrap());
                }
            };
            assert!(reader.next().is_none(), "an error or the end is the last item");
            (view, error)
        }
    }
}

/// A random number of uniformly distributed length; nearly all uniformly distributed numbers would
/// have nine or ten bytes.
fn any_number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift)
}

/// Draws the number of a tree that can occur in a view of these servers.
fn any_tree(servers: Option<ViewServers>) -> BoxedStrategy<u16> {
    match servers {
        None => any::<u16>().boxed(),
        Some(servers) => {
            let of_one = (1..=servers.count(), 0u8..8);
            prop_oneof![0u16..100, of_one.prop_map(|(party, tree)| view_tree(party, tree).0)]
                .boxed()
        }
    }
}

fn any_event(servers: Option<ViewServers>) -> impl Strategy<Value = Event> {
    let part =
        prop_oneof![Just(Part::Whole), Just(Part::Header), any::<u16>().prop_map(Part::Slot),];
    let piece =
        (any_tree(servers), 0u8..=40, any::<u64>(), part).prop_map(|(tree, level, index, part)| {
            let bucket = BucketId::new(level, index & ((1 << level) - 1));
            Piece { tree: TreeId(tree), bucket, part }
        });
    let operation =
        prop_oneof![Just(Operation::Prefetch), Just(Operation::Read), Just(Operation::Write)];
    let called = prop_oneof![
        8 => (operation, piece).prop_map(|(operation, piece)| (operation, Some(piece))),
        1 => Just((Operation::Flush, None)),
    ];
    (any_number(), called, any_number()).prop_map(|(trip, (operation, piece), bytes)| Event {
        trip,
        operation,
        piece,
        bytes,
    })
}

fn any_servers() -> impl Strategy<Value = ViewServers> {
    (2u8..=7).prop_flat_map(|count| {
        (1..count, 1..1u8 << count).prop_map(move |(colluding, watched)| {
            ViewServers::new(count, colluding).unwrap().watching(watched).unwrap()
        })
    })
}

/// Draws a message that one of the watched servers sent or received.
fn any_exchange(servers: ViewServers) -> impl Strategy<Value = PeerMessage> {
    let watched: Vec<u8> = (1..=7).filter(|party| servers.watches(*party)).collect();
    let count = servers.count();
    let parties = (prop::sample::select(watched), 1..count)
        .prop_map(move |(party, apart)| (party, (party - 1 + apart) % count + 1));
    let direction = prop_oneof![Just(Direction::Sent), Just(Direction::Received)];
    let tree = prop::option::of(0u8..8);
    let numbers = (any_number(), any_number(), any_number(), any_number());
    let shape = (any::<u8>(), any::<u32>(), any::<u8>(), any::<u8>());
    (parties, direction, tree, numbers, shape).prop_map(
        |((party, partner), direction, tree, (trip, eviction, attempt, bytes), shape)| {
            let (round, part, shares, seeds) = shape;
            let (shares, seeds) = (shares.max(seeds), shares.min(seeds));
            PeerMessage {
                trip,
                party,
                direction,
                partner,
                tree,
                eviction,
                attempt,
                round,
                part,
                shares,
                seeds,
                bytes,
            }
        },
    )
}

fn any_view() -> impl Strategy<Value = View> {
    let capabilities = prop_oneof![Just(Capabilities::NONE), Just(Capabilities::PARTS)];
    let passed = || prop_oneof![Just(0), 0u64..300, any_number().prop_map(|number| number >> 8)];
    let events = move |observed| prop::collection::vec((observed, passed()), 0..40);
    let called = |servers| any_event(servers).prop_map(Observed::Event);
    let of_one = events(called(None).boxed()).prop_map(|events| (None, events));
    let of_servers = any_servers().prop_flat_map(move |servers| {
        let messages = any_exchange(servers).prop_map(Observed::PeerMessage);
        let observed = prop_oneof![called(Some(servers)), messages].boxed();
        events(observed).prop_map(move |events| (Some(servers), events))
    });
    let events = prop_oneof![of_one, of_servers];
    (capabilities, events).prop_map(|(capabilities, (servers, events))| {
        let (mut timed, mut times, mut micros): (Vec<Observed>, _, _) = (Vec::new(), Vec::new(), 0);
        for (observed, passed) in events {
            // No time passes within a trip.
            let is_new = timed.last().is_none_or(|last| last.trip() != observed.trip());
            micros += if is_new { passed } else { 0 };
            timed.push(observed);
            times.push(micros);
        }
        let capabilities = Some(capabilities);
        View { capabilities, servers, events: timed, times: Some(times) }
    })
}

proptest! {
    #[test]
    fn a_written_view_reads_back(view in any_view()) {
        let (read, error) = from_bytes(&to_bytes(&view));
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(read, view);
    }

    #[test]
    fn a_cut_file_is_truncated_after_a_valid_prefix(view in any_view()) {
        let bytes = to_bytes(&view);
        for length in 0..bytes.len() {
            let (prefix, error) = from_bytes(&bytes[..length]);
            let error = error.expect("a truncated file must be detected");
            prop_assert_eq!(error.kind(), ViewFileErrorKind::Truncated);
            prop_assert_eq!(error.offset(), length as u64);
            prop_assert!(view.events.starts_with(&prefix.events));
        }
    }

    #[test]
    fn bytes_after_the_end_are_refused(view in any_view(), garbage in 1usize..9) {
        let mut bytes = to_bytes(&view);
        let end = bytes.len();
        bytes.resize(end + garbage, 0);
        let (read, error) = from_bytes(&bytes);
        let error = error.unwrap();
        prop_assert_eq!(error.kind(), ViewFileErrorKind::TrailingBytes);
        prop_assert_eq!(error.offset(), end as u64);
        prop_assert_eq!(read, view);
    }

    #[test]
    fn arbitrary_bytes_are_a_view_or_refused(
        start in 0..STARTS.len(),
        body in prop::collection::vec(prop_oneof![3 => 0u8..18, 1 => any::<u8>()], 0..200),
        end in any::<bool>(),
    ) {
        let mut bytes = [STARTS[start], &body].concat();
        if end {
            bytes.extend([END_TAG, 1]);
        }
        let (view, error) = from_bytes(&bytes);
        match error {
            None if start >= WRITTEN => {
                prop_assert!(view.times.is_some());
                prop_assert_eq!(to_bytes(&view), bytes, "a view has exactly one file");
            }
            None => {
                prop_assert_eq!(view.times.is_none(), start < 2);
                prop_assert_eq!(view.capabilities.is_none(), start == 0);
                prop_assert!(view.servers.is_none());
            }
            Some(error) => prop_assert!(error.offset() <= bytes.len() as u64),
        }
    }

    /// Tests that the reader returns no event of a server that does not exist.
    #[test]
    fn trees_of_no_server_are_refused(
        servers in any_servers(),
        tree in prop_oneof![80u16..200, any::<u16>()],
        mut rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let start = [servers.count(), servers.colluding(), servers.watched()];
        let [low, high] = [tree as u8 & 0x7F | 0x80, (tree >> 7) as u8 & 0x7F | 0x80];
        // A read of the root of that tree, then arbitrary bytes.
        let mut event = vec![0x01, 0, low, high, (tree >> 14) as u8];
        while event.last() == Some(&0) && event.len() > 3 {
            event.pop();
            *event.last_mut().unwrap() &= 0x7F;
        }
        event.extend([0, 0, 0]);
        let bytes = [b"OBLVIEW\x04\x00", &start[..], &event, &rest].concat();
        let (view, error) = from_bytes(&bytes);
        let stands_for = server_of_view_tree(TreeId(tree)).filter(|(party, _)| servers.has(*party));
        if tree < 100 || stands_for.is_some() {
            prop_assert!(!view.events.is_empty());
        } else {
            prop_assert!(view.events.is_empty());
            let error = error.unwrap();
            prop_assert_eq!((error.kind(), error.offset()), (ViewFileErrorKind::OutOfRange, 14));
        }
        // The same after a valid event.
        rest.splice(0..0, [0x0F, 1, 0]);
        for observed in from_bytes(&[b"OBLVIEW\x04\x00", &start[..], &rest].concat()).0.events {
            if let Observed::Event(Event { piece: Some(piece), .. }) = observed {
                let of = server_of_view_tree(piece.tree);
                let of = of.is_some_and(|(server, _)| servers.has(server));
                prop_assert!(piece.tree.0 < 100 || of);
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_refused_or_gives_another_view(
        view in any_view(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let mut bytes = to_bytes(&view);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let (read, error) = from_bytes(&bytes);
        prop_assert!(error.is_some() || read != view);
    }
}

/// A list of events, and their encoding up to the end of the file if no time passes.
fn documented() -> (Vec<Observed>, Vec<u8>) {
    let piece = |level, index, part| {
        Some(Piece { tree: TreeId(300), bucket: BucketId::new(level, index), part })
    };
    let events = [
        Event { trip: 5, operation: Operation::Read, piece: piece(3, 6, Part::Whole), bytes: 200 },
        Event { trip: 5, operation: Operation::Write, piece: piece(1, 1, Part::Slot(2)), bytes: 1 },
        Event { trip: 6, operation: Operation::Flush, piece: None, bytes: 0 },
    ];
    let bytes = [
        &[0x01, 5, 0xAC, 0x02, 3, 6, 0xC8, 0x01][..],
        &[0x0A, 0, 0xAC, 0x02, 1, 1, 2, 1],
        &[0x0F, 1, 0],
        &[0x80, 3],
    ];
    (events.map(Observed::Event).to_vec(), bytes.concat())
}

#[test]
fn the_documented_bytes() {
    let (events, bytes) = documented();
    let starts = [
        (Capabilities::NONE, b"OBLVIEW\x04\x00\x00"),
        (Capabilities::PARTS, b"OBLVIEW\x04\x01\x00"),
    ];
    for (capabilities, start) in starts {
        let at = |micros: [u64; 3]| Some(micros.to_vec());
        let (capabilities, servers) = (Some(capabilities), None);
        let view = View { capabilities, servers, events: events.clone(), times: at([0; 3]) };
        assert_eq!(to_bytes(&view), [&start[..], &bytes].concat());

        // The first trip has 16 bytes. Time passes before it and before the next trip.
        let timed = View { times: at([300, 300, 301]), ..view };
        let (first, rest) = bytes.split_at(16);
        let expected = [&start[..], &[0x81, 0xAC, 0x02], first, &[0x81, 1], rest].concat();
        assert_eq!(to_bytes(&timed), expected);
        assert_eq!(from_bytes(&expected).0, timed);
    }
}

#[test]
fn the_documented_bytes_of_messages_between_servers() {
    let servers = ViewServers::new(3, 1).unwrap().watching(0b010).unwrap();
    let sent = PeerMessage {
        trip: 2,
        party: 2,
        direction: Direction::Sent,
        partner: 3,
        tree: Some(0),
        eviction: 300,
        attempt: 301,
        round: 4,
        part: 130,
        shares: 2,
        seeds: 1,
        bytes: 1000,
    };
    let received = PeerMessage { trip: 3, direction: Direction::Received, partner: 1, ..sent };
    let received = PeerMessage { tree: None, round: 0, part: 3, shares: 0, seeds: 0, ..received };
    let view = View {
        capabilities: Some(Capabilities::PARTS),
        servers: Some(servers),
        events: [sent, received].map(Observed::PeerMessage).to_vec(),
        times: Some(vec![0, 5]),
    };
    let expected = [
        &b"OBLVIEW\x04\x01\x03\x01\x02"[..],
        &[0x10, 2, 2, 3, 1, 0xAC, 0x02, 0xAD, 0x02, 4, 0x82, 0x01, 2, 1, 0xE8, 0x07],
        &[0x81, 5],
        &[0x11, 1, 2, 1, 0, 0xAC, 0x02, 0xAD, 0x02, 0, 3, 0, 0, 0xE8, 0x07],
        &[0x80, 2],
    ];
    assert_eq!(to_bytes(&view), expected.concat());
    assert_eq!(from_bytes(&expected.concat()).0, view);
}

#[test]
fn files_of_earlier_versions_are_read_without_later_fields() {
    let (events, bytes) = documented();
    let parts = Some(Capabilities::PARTS);
    for (start, capabilities, times) in [
        (&b"OBLVIEW\x01"[..], None, None),
        (&b"OBLVIEW\x02\x01"[..], parts, None),
        (&b"OBLVIEW\x03\x01"[..], parts, Some(vec![0; 3])),
    ] {
        let (view, error) = from_bytes(&[start, &bytes].concat());
        assert!(error.is_none(), "{error:?}");
        assert_eq!(view, View { capabilities, servers: None, events: events.clone(), times });
    }
}

#[test]
fn time_does_not_go_back() {
    let mut sink = FileSink::new(Vec::new(), Capabilities::NONE, None);
    for (trip, micros) in [(0, 7), (1, 3), (2, 8)] {
        sink.set_micros(micros);
        sink.record(&Event { trip, operation: Operation::Flush, piece: None, bytes: 0 }, &[]);
    }
    let times = from_bytes(&sink.finish().unwrap()).0.times.unwrap();
    assert_eq!(times, [7, 7, 8]);
}

#[test]
fn each_defect_has_its_kind_and_place() {
    use ViewFileErrorKind::{NotAView, OutOfRange, Truncated, UnknownVersion};
    let kind_and_offset = |bytes: &[u8]| {
        let error = from_bytes(bytes).1.unwrap();
        (error.kind(), error.offset() as usize)
    };
    assert_eq!(kind_and_offset(b""), (Truncated, 0));
    for version in [1, 2, 3, 4] {
        let foreign = [&b"OBLVIEX"[..], &[version, 0, 0x80, 0]].concat();
        assert_eq!(kind_and_offset(&foreign), (NotAView, 0));
    }
    for version in [0, 5, u8::MAX] {
        let unknown = [&b"OBLVIEW"[..], &[version, 0, 0x80, 0]].concat();
        assert_eq!(kind_and_offset(&unknown), (UnknownVersion, 7));
    }
    for (defect, capabilities) in [
        ("the bit reserved for conditional writes", &[2][..]),
        ("the bit reserved for sums of slots", &[4 | 1]),
        ("a capability past 32 bits", &[0x81, 0x80, 0x80, 0x80, 0x10]),
        ("a number not in its shortest encoding", &[0x81, 0x00]),
    ] {
        for version in [2, 3, 4] {
            let file = [&b"OBLVIEW"[..], &[version], capabilities, &[0x80, 0]].concat();
            assert_eq!(kind_and_offset(&file), (OutOfRange, 8), "{defect}");
        }
    }

    for (defect, body, offset) in [
        ("a time that does not pass", &[0x81, 0, 0x0F, 1, 0, 0x80, 1][..], 1),
        ("a time after a time", &[0x81, 1, 0x81, 1, 0x0F, 1, 0, 0x80, 1], 2),
        ("a time before the end", &[0x81, 1, 0x80, 0], 2),
        ("a time within a trip", &[0x0F, 1, 0, 0x81, 1, 0x0F, 0, 0, 0x80, 2], 6),
        (
            "a time past 64 bits",
            &[0x81, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x0F, 1, 0, 0x81, 1, 0x0F],
            15,
        ),
    ] {
        let file = [b"OBLVIEW\x03\x00", body].concat();
        assert_eq!(kind_and_offset(&file), (OutOfRange, 9 + offset), "{defect}");
        let file = [b"OBLVIEW\x04\x00\x00", body].concat();
        assert_eq!(kind_and_offset(&file), (OutOfRange, 10 + offset), "{defect}");
        // Earlier versions have no times.
        let at = body.iter().position(|byte| *byte == 0x81).unwrap();
        let file = [b"OBLVIEW\x02\x00", body].concat();
        assert_eq!(kind_and_offset(&file), (OutOfRange, 9 + at), "{defect}");
    }

    for (defect, body, offset) in [
        ("no tag", &[0x12][..], 0),
        ("flush with a piece", &[0x03], 0),
        ("read without a piece", &[0x0D], 0),
        ("tree past 65,535", &[0x01, 0, 0x80, 0x80, 0x04], 2),
        ("level 41", &[0x01, 0, 0, 41, 0, 0], 3),
        ("index past the level", &[0x01, 0, 0, 2, 4, 0], 4),
        ("slot past 65,535", &[0x09, 0, 0, 2, 3, 0x80, 0x80, 0x04], 5),
        ("a number not in its shortest encoding", &[0x0F, 0x80, 0x00], 1),
        ("a number of 65 bits", &[0x0F, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], 1),
        ("a number of 11 bytes", &[0x0F, 255, 255, 255, 255, 255, 255, 255, 255, 255, 129, 0], 1),
        ("a wrong count", &[0x80, 1], 1),
    ] {
        for start in STARTS {
            let file = [start, body].concat();
            let expected = (OutOfRange, start.len() + offset);
            assert_eq!(kind_and_offset(&file), expected, "{defect}");
        }
    }
}

/// Tests defects in a view of three servers, of which servers 1 and 3 are watched.
#[test]
fn each_defect_of_servers_and_messages_has_its_offset() {
    let refused = |bytes: &[u8]| {
        let error = from_bytes(bytes).1.unwrap();
        (error.kind() == ViewFileErrorKind::OutOfRange).then_some(error.offset() as usize)
    };
    for (defect, servers) in [
        ("one server", &[1, 1, 0][..]),
        ("eight", &[8, 1, 0]),
        ("none may collude", &[3, 0, 0]),
        ("all may", &[3, 3, 0]),
        ("a fourth is watched", &[3, 1, 8]),
    ] {
        let file = [b"OBLVIEW\x04\x00", servers, &[0x80, 0]].concat();
        assert_eq!(refused(&file), Some(9), "{defect}");
    }
    let start = STARTS.last().unwrap();
    let sound = [0x10, 0, 1, 2, 1, 0, 0, 1, 0, 2, 1, 0];
    assert!(from_bytes(&[start, &sound[..], &[0x80, 1]].concat()).1.is_none());
    for (defect, at, byte, offset) in [
        ("no tag", 0, 0x12, 0),
        ("a server that is not watched", 2, 2, 2),
        ("no server", 2, 0, 2),
        ("a fourth", 3, 4, 2),
        ("to itself", 3, 1, 2),
        ("the ninth tree", 4, 9, 4),
        ("more seeds than shares", 10, 3, 9),
    ] {
        let mut body = sound;
        body[at] = byte;
        let file = [start, &body[..], &[0x80, 1]].concat();
        assert_eq!(refused(&file), Some(start.len() + offset), "{defect}");
    }
    let long_part =
        [&sound[..8], &[0x80, 0x80, 0x80, 0x80, 0x10], &sound[9..], &[0x80, 1]].concat();
    assert_eq!(refused(&[start, &long_part[..]].concat()), Some(start.len() + 8));
    // A single store has no such messages, and neither do files of earlier versions.
    for start in &STARTS[..STARTS.len() - 1] {
        let file = [start, &sound[..], &[0x80, 1]].concat();
        assert_eq!(refused(&file), Some(start.len()));
    }
}

#[test]
fn the_sink_refuses_events_that_readers_refuse() {
    let piece = Piece { tree: TreeId(0), bucket: BucketId::ROOT, part: Part::Whole };
    let sound = Event { trip: 0, operation: Operation::Read, piece: Some(piece), bytes: 0 };
    for event in [
        Event { operation: Operation::Flush, ..sound },
        Event { piece: None, ..sound },
        Event { piece: Some(Piece { bucket: BucketId((1 << 41) - 1), ..piece }), ..sound },
        Event { piece: Some(Piece { bucket: BucketId(u64::MAX), ..piece }), ..sound },
    ] {
        let mut sink = FileSink::new(Vec::new(), Capabilities::NONE, None);
        sink.record(&event, &[]);
        sink.record(&sound, &[]);
        assert_eq!(sink.finish().unwrap_err().kind(), io::ErrorKind::InvalidInput, "{event:?}");
    }
    let servers = ViewServers::new(3, 1).unwrap().watching(1).unwrap();
    let (direction, tree) = (Direction::Sent, Some(0));
    let (trip, eviction, attempt, round, part, bytes) = (0, 0, 1, 1, 0, 5);
    let sound = PeerMessage {
        trip,
        party: 1,
        direction,
        partner: 2,
        tree,
        eviction,
        attempt,
        round,
        part,
        shares: 1,
        seeds: 0,
        bytes,
    };
    for tree in [view_tree(4, 0), TreeId(107), TreeId(180)] {
        let piece = Some(Piece { tree, bucket: BucketId::ROOT, part: Part::Header });
        let event = Event { trip: 0, operation: Operation::Read, piece, bytes: 0 };
        let mut sink = FileSink::new(Vec::new(), Capabilities::NONE, Some(servers));
        sink.record(&event, &[]);
        assert_eq!(sink.finish().unwrap_err().kind(), io::ErrorKind::InvalidInput, "{tree:?}");
    }
    for (exchange, servers) in [
        (sound, None),
        (PeerMessage { party: 2, partner: 1, ..sound }, Some(servers)),
        (PeerMessage { partner: 4, ..sound }, Some(servers)),
        (PeerMessage { partner: 1, ..sound }, Some(servers)),
        (PeerMessage { tree: Some(8), ..sound }, Some(servers)),
        (PeerMessage { seeds: 2, ..sound }, Some(servers)),
    ] {
        let mut sink = FileSink::new(Vec::new(), Capabilities::NONE, servers);
        sink.record_message(&exchange, &[]);
        assert_eq!(sink.finish().unwrap_err().kind(), io::ErrorKind::InvalidInput, "{exchange:?}");
    }
}

#[test]
fn an_error_of_the_writer_is_returned_at_the_end() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for room in 0..18 {
        let mut sink = FileSink::new(Full(room), Capabilities::NONE, None);
        for trip in 0..2 {
            sink.record(&Event { trip, operation: Operation::Flush, piece: None, bytes: 0 }, &[]);
        }
        assert_eq!(sink.finish().err().unwrap().kind(), io::ErrorKind::StorageFull, "{room}");
    }
}

#[test]
fn exceeding_the_size_limit_is_an_error_at_the_end() {
    // Bytes after the start of the file: three per event, and two for the end.
    let written = |events: u64, room: u64| {
        let sink = FileSink::new(Vec::new(), Capabilities::NONE, None);
        let mut sink = sink.with_room(room);
        for trip in 0..events {
            sink.record(&Event { trip, operation: Operation::Flush, piece: None, bytes: 0 }, &[]);
        }
        sink.finish().map(|bytes| bytes.len())
    };
    assert_eq!(written(1000, u64::MAX).unwrap(), 10 + 3000 + 3);
    for (events, room) in [(0, 1), (1, 4), (2, 5), (1000, 300), (1000, 3002)] {
        let error = written(events, room).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{events} in {room}");
    }
    assert_eq!([(0, 2), (1, 5), (2, 8)].map(|it| written(it.0, it.1).unwrap()), [12, 15, 18]);
}
