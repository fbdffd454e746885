use std::io;

use proptest::prelude::*;

use super::*;
use crate::geometry::BucketId;
use crate::pieces::{Part, Piece, TreeId};
use crate::view::{Event, EventSink, Operation};

fn to_bytes(events: &[Event]) -> Vec<u8> {
    let mut sink = FileSink::new(Vec::new());
    events.iter().for_each(|event| sink.record(event, &[]));
    sink.finish().unwrap()
}

/// The events before the first error, and the error.
fn from_bytes(bytes: &[u8]) -> (Vec<Event>, Option<ViewFileError>) {
    let mut events = Vec::new();
    match read_view(bytes) {
        Err(error) => (events, Some(error)),
        Ok(mut reader) => {
            let error = reader.find_map(|event| event.map(|event| events.push(event)).err());
            assert!(reader.next().is_none(), "an error or the end is the last item");
            (events, error)
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

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_event(), 0..40)
}

proptest! {
    #[test]
    fn what_is_written_is_read(events in any_events()) {
        let (read, error) = from_bytes(&to_bytes(&events));
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(read, events);
    }

    #[test]
    fn cut_anywhere_is_truncated_after_a_sound_prefix(events in any_events()) {
        let bytes = to_bytes(&events);
        for length in 0..bytes.len() {
            let (prefix, error) = from_bytes(&bytes[..length]);
            let error = error.expect("a file cut short is never taken for a whole one");
            prop_assert_eq!(error.kind(), ViewFileErrorKind::Truncated);
            prop_assert_eq!(error.offset(), length as u64);
            prop_assert!(events.starts_with(&prefix));
        }
    }

    #[test]
    fn bytes_after_the_end_are_refused(events in any_events(), garbage in 1usize..9) {
        let mut bytes = to_bytes(&events);
        let end = bytes.len();
        bytes.resize(end + garbage, 0);
        let (read, error) = from_bytes(&bytes);
        let error = error.unwrap();
        prop_assert_eq!(error.kind(), ViewFileErrorKind::TrailingBytes);
        prop_assert_eq!(error.offset(), end as u64);
        prop_assert_eq!(read, events);
    }

    #[test]
    fn foreign_bytes_are_a_view_or_refused_never_a_panic(
        body in prop::collection::vec(prop_oneof![3 => 0u8..16, 1 => any::<u8>()], 0..200),
        end in any::<bool>(),
    ) {
        let mut bytes = [&MAGIC[..], &[VERSION], &body].concat();
        if end {
            bytes.extend([END_TAG, 1]);
        }
        let (events, error) = from_bytes(&bytes);
        match error {
            None => prop_assert_eq!(to_bytes(&events), bytes, "a view has exactly one file"),
            Some(error) => prop_assert!(error.offset() <= bytes.len() as u64),
        }
    }

    #[test]
    fn a_flipped_bit_is_refused_or_another_view(
        events in any_events(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let mut bytes = to_bytes(&events);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let (read, error) = from_bytes(&bytes);
        prop_assert!(error.is_some() || read != events);
    }
}

/// Bytes after magic and version.
fn error_of(body: &[u8]) -> (ViewFileErrorKind, u64) {
    let (_, error) = from_bytes(&[&MAGIC[..], &[VERSION], body].concat());
    let error = error.unwrap();
    (error.kind(), error.offset())
}

#[test]
fn the_documented_bytes() {
    let piece = |level, index, part| {
        Some(Piece { tree: TreeId(300), bucket: BucketId::new(level, index), part })
    };
    let events = [
        Event { trip: 5, operation: Operation::Read, piece: piece(3, 6, Part::Whole), bytes: 200 },
        Event { trip: 5, operation: Operation::Write, piece: piece(1, 1, Part::Slot(2)), bytes: 1 },
        Event { trip: 6, operation: Operation::Flush, piece: None, bytes: 0 },
    ];
    let expected = [
        &b"OBLVIEW\x01"[..],
        &[0x01, 5, 0xAC, 0x02, 3, 6, 0xC8, 0x01],
        &[0x0A, 0, 0xAC, 0x02, 1, 1, 2, 1],
        &[0x0F, 1, 0],
        &[0x80, 3],
    ];
    assert_eq!(to_bytes(&events), expected.concat());
}

#[test]
fn each_defect_has_its_kind_and_place() {
    use ViewFileErrorKind::{NotAView, OutOfRange, Truncated, UnknownVersion};
    let kind_and_offset = |bytes: &[u8]| {
        let error = from_bytes(bytes).1.unwrap();
        (error.kind(), error.offset())
    };
    assert_eq!(kind_and_offset(b""), (Truncated, 0));
    assert_eq!(kind_and_offset(b"OBLVIEX\x01\x80\x00"), (NotAView, 0));
    assert_eq!(kind_and_offset(b"OBLVIEW\x02\x80\x00"), (UnknownVersion, 7));

    for (defect, body, offset) in [
        ("no tag", &[0x10][..], 8),
        ("flush with a piece", &[0x03], 8),
        ("read without a piece", &[0x0D], 8),
        ("tree past 65,535", &[0x01, 0, 0x80, 0x80, 0x04], 10),
        ("level 41", &[0x01, 0, 0, 41, 0, 0], 11),
        ("index past the level", &[0x01, 0, 0, 2, 4, 0], 12),
        ("slot past 65,535", &[0x09, 0, 0, 2, 3, 0x80, 0x80, 0x04], 13),
        ("a number longer than need be", &[0x0F, 0x80, 0x00], 9),
        ("a number of 65 bits", &[0x0F, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2], 9),
        ("a number of 11 bytes", &[0x0F, 255, 255, 255, 255, 255, 255, 255, 255, 255, 129, 0], 9),
        ("a wrong count", &[0x80, 1], 9),
    ] {
        assert_eq!(error_of(body), (OutOfRange, offset), "{defect}");
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
        let mut sink = FileSink::new(Vec::new());
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
    for room in 0..16 {
        let mut sink = FileSink::new(Full(room));
        for trip in 0..2 {
            sink.record(&Event { trip, operation: Operation::Flush, piece: None, bytes: 0 }, &[]);
        }
        assert_eq!(sink.finish().err().unwrap().kind(), io::ErrorKind::StorageFull, "{room}");
    }
}
