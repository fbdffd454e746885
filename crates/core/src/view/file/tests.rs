use std::io;

use proptest::prelude::*;

use super::*;
use crate::geometry::BucketId;
use crate::pieces::{Part, Piece, TreeId};
use crate::store::Capabilities;
use crate::view::{Event, EventSink, Operation};

/// What a file says.
#[derive(Clone, Debug, PartialEq)]
struct View {
    capabilities: Option<Capabilities>,
    events: Vec<Event>,
}

/// How files start: those of version 1, and those of stores of whole buckets and of parts.
const STARTS: [&[u8]; 3] = [b"OBLVIEW\x01", b"OBLVIEW\x02\x00", b"OBLVIEW\x02\x01"];

/// The file of a view that says what the store could do.
fn to_bytes(view: &View) -> Vec<u8> {
    let mut sink = FileSink::new(Vec::new(), view.capabilities.unwrap());
    view.events.iter().for_each(|event| sink.record(event, &[]));
    sink.finish().unwrap()
}

/// What is before the first error, and the error.
fn from_bytes(bytes: &[u8]) -> (View, Option<ViewFileError>) {
    let mut view = View { capabilities: None, events: Vec::new() };
    match read_view(bytes) {
        Err(error) => (view, Some(error)),
        Ok(mut reader) => {
            view.capabilities = reader.capabilities();
            let error = reader.find_map(|event| event.map(|event| view.events.push(event)).err());
            assert!(reader.next().is_none(), "an error or the end is the last item");
            (view, error)
        }
    }
}

/// A number of any length, not nearly always one of ten bytes.
fn any_number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift)
}

fn any_event() -> impl Strategy<Value = Event> {
    let part =
        prop_oneof![Just(Part::Whole), Just(Part::Header), any::<u16>().prop_map(Part::Slot),];
    let piece =
        (any::<u16>(), 0u8..=40, any::<u64>(), part).prop_map(|(tree, level, index, part)| {
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

fn any_view() -> impl Strategy<Value = View> {
    let capabilities = prop_oneof![Just(Capabilities::NONE), Just(Capabilities::PARTS)];
    let events = prop::collection::vec(any_event(), 0..40);
    (capabilities, events)
        .prop_map(|(capabilities, events)| View { capabilities: Some(capabilities), events })
}

proptest! {
    #[test]
    fn what_is_written_is_read(view in any_view()) {
        let (read, error) = from_bytes(&to_bytes(&view));
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(read, view);
    }

    #[test]
    fn cut_anywhere_is_truncated_after_a_sound_prefix(view in any_view()) {
        let bytes = to_bytes(&view);
        for length in 0..bytes.len() {
            let (prefix, error) = from_bytes(&bytes[..length]);
            let error = error.expect("a file cut short is never taken for a whole one");
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
    fn foreign_bytes_are_a_view_or_refused_never_a_panic(
        start in 0..STARTS.len(),
        body in prop::collection::vec(prop_oneof![3 => 0u8..16, 1 => any::<u8>()], 0..200),
        end in any::<bool>(),
    ) {
        let mut bytes = [STARTS[start], &body].concat();
        if end {
            bytes.extend([END_TAG, 1]);
        }
        let (view, error) = from_bytes(&bytes);
        match error {
            None if view.capabilities.is_some() => {
                prop_assert_eq!(to_bytes(&view), bytes, "a view has exactly one file");
            }
            None => prop_assert_eq!(start, 0, "version 1 alone does not say what a store could do"),
            Some(error) => prop_assert!(error.offset() <= bytes.len() as u64),
        }
    }

    #[test]
    fn a_flipped_bit_is_refused_or_another_view(
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

/// Events, and their bytes with those of the end.
fn documented() -> (Vec<Event>, Vec<u8>) {
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
    (events.to_vec(), bytes.concat())
}

#[test]
fn the_documented_bytes() {
    let (events, bytes) = documented();
    let starts =
        [(Capabilities::NONE, b"OBLVIEW\x02\x00"), (Capabilities::PARTS, b"OBLVIEW\x02\x01")];
    for (capabilities, start) in starts {
        let view = View { capabilities: Some(capabilities), events: events.clone() };
        assert_eq!(to_bytes(&view), [&start[..], &bytes].concat());
    }
}

#[test]
fn a_file_of_version_1_is_read_and_does_not_say_what_the_store_could_do() {
    let (events, bytes) = documented();
    let (view, error) = from_bytes(&[&b"OBLVIEW\x01"[..], &bytes].concat());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(view, View { capabilities: None, events });
}

#[test]
fn each_defect_has_its_kind_and_place() {
    use ViewFileErrorKind::{NotAView, OutOfRange, Truncated, UnknownVersion};
    let kind_and_offset = |bytes: &[u8]| {
        let error = from_bytes(bytes).1.unwrap();
        (error.kind(), error.offset() as usize)
    };
    assert_eq!(kind_and_offset(b""), (Truncated, 0));
    for version in [1, 2] {
        let foreign = [&b"OBLVIEX"[..], &[version, 0, 0x80, 0]].concat();
        assert_eq!(kind_and_offset(&foreign), (NotAView, 0));
    }
    for version in [0, 3, u8::MAX] {
        let unknown = [&b"OBLVIEW"[..], &[version, 0, 0x80, 0]].concat();
        assert_eq!(kind_and_offset(&unknown), (UnknownVersion, 7));
    }
    for (defect, capabilities) in [
        ("what is kept for conditional writes", &[2][..]),
        ("what is kept for sums of slots", &[4 | 1]),
        ("a store that can do something past 32 bits", &[0x81, 0x80, 0x80, 0x80, 0x10]),
        ("a number longer than need be", &[0x81, 0x00]),
    ] {
        let file = [&b"OBLVIEW\x02"[..], capabilities, &[0x80, 0]].concat();
        assert_eq!(kind_and_offset(&file), (OutOfRange, 8), "{defect}");
    }

    for (defect, body, offset) in [
        ("no tag", &[0x10][..], 0),
        ("flush with a piece", &[0x03], 0),
        ("read without a piece", &[0x0D], 0),
        ("tree past 65,535", &[0x01, 0, 0x80, 0x80, 0x04], 2),
        ("level 41", &[0x01, 0, 0, 41, 0, 0], 3),
        ("index past the level", &[0x01, 0, 0, 2, 4, 0], 4),
        ("slot past 65,535", &[0x09, 0, 0, 2, 3, 0x80, 0x80, 0x04], 5),
        ("a number longer than need be", &[0x0F, 0x80, 0x00], 1),
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

#[test]
fn events_that_no_reader_would_accept_are_errors_of_the_sink() {
    let piece = Piece { tree: TreeId(0), bucket: BucketId::ROOT, part: Part::Whole };
    let sound = Event { trip: 0, operation: Operation::Read, piece: Some(piece), bytes: 0 };
    for event in [
        Event { operation: Operation::Flush, ..sound },
        Event { piece: None, ..sound },
        Event { piece: Some(Piece { bucket: BucketId((1 << 41) - 1), ..piece }), ..sound },
        Event { piece: Some(Piece { bucket: BucketId(u64::MAX), ..piece }), ..sound },
    ] {
        let mut sink = FileSink::new(Vec::new(), Capabilities::NONE);
        sink.record(&event, &[]);
        sink.record(&sound, &[]);
        assert_eq!(sink.finish().unwrap_err().kind(), io::ErrorKind::InvalidInput, "{event:?}");
    }
}

#[test]
fn an_error_of_the_medium_comes_back_at_the_end() {
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
    for room in 0..17 {
        let mut sink = FileSink::new(Full(room), Capabilities::NONE);
        for trip in 0..2 {
            sink.record(&Event { trip, operation: Operation::Flush, piece: None, bytes: 0 }, &[]);
        }
        assert_eq!(sink.finish().err().unwrap().kind(), io::ErrorKind::StorageFull, "{room}");
    }
}
