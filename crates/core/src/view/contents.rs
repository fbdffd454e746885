//! A sink that keeps the contents of writes.

use alloc::vec::Vec;

use super::{Event, EventSink, Operation};
use crate::pieces::Piece;

/// Keeps every event and the sealed bytes of every write, to test whether ciphertext repeats.
///
/// Memory use grows with every byte written.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    events: Vec<Event>,
    written: Vec<u8>,
}

/// The contents of one piece after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenPiece<'a> {
    /// The number of the call that wrote the piece.
    pub trip: u64,
    /// The piece that was written.
    pub piece: Piece,
    /// The sealed bytes that were written.
    pub bytes: &'a [u8],
}

impl Contents {
    /// A sink that has recorded nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// All events that storage saw, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Every piece that was written, in order.
    pub fn written(&self) -> impl Iterator<Item = WrittenPiece<'_>> {
        let writes = self.events.iter().filter(|event| event.operation == Operation::Write);
        writes
            .scan(self.written.as_slice(), |rest, event| {
                let (bytes, after) = rest.split_at(event.bytes as usize);
                *rest = after;
                Some(event.piece.map(|piece| WrittenPiece { trip: event.trip, piece, bytes }))
            })
            .flatten()
    }
}

impl EventSink for Contents {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        let bytes = contents.len() as u64;
        self.events.push(Event { bytes, ..*event });
        if event.operation == Operation::Write {
            self.written.extend_from_slice(contents);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::BucketId;
    use crate::pieces::{Part, TreeId};

    #[test]
    fn writes_are_kept_and_reads_are_not() {
        let piece = |bucket| Piece { tree: TreeId(0), bucket: BucketId(bucket), part: Part::Whole };
        let event = |trip, operation, bucket| Event {
            trip,
            operation,
            piece: Some(piece(bucket)),
            bytes: 2,
        };
        let mut contents = Contents::new();
        contents.record(&event(0, Operation::Read, 1), b"rr");
        contents.record(&event(1, Operation::Write, 1), b"ab");
        contents
            .record(&Event { trip: 2, operation: Operation::Flush, piece: None, bytes: 0 }, b"");
        contents.record(&event(3, Operation::Write, 2), b"cd");
        let written: Vec<_> = contents.written().collect();
        assert_eq!(
            written,
            [
                WrittenPiece { trip: 1, piece: piece(1), bytes: b"ab" },
                WrittenPiece { trip: 3, piece: piece(2), bytes: b"cd" },
            ]
        );
        assert_eq!(contents.events().len(), 4);
    }
}
