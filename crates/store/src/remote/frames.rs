//! Encoded requests, each with a length prefix.
//!
//! Requests are kept in encoded form, so that a repeated request has the same bytes.

use std::ops::Range;
use std::sync::Arc;

use oblivio_core::store::{Blanks, Fill, Piece, Span};
use oblivio_wire::Request;
use oblivio_wire::frame::LENGTH_BYTES;
use oblivio_wire::message::{
    MESSAGE_BYTES_MAX, PIECE_BYTES, PIECES_MAX, WRITE_BYTES, put_write_head,
};

/// Maximum number of bytes of a piece that fits into a message.
pub(super) const LONGEST_PIECE_BYTES: usize = MESSAGE_BYTES_MAX - WRITE_BYTES - PIECE_BYTES;

/// An encoded request. All frames of one write share a buffer.
#[derive(Clone)]
pub(super) struct Frame {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Frame {
    pub(super) fn new(request: &Request) -> Self {
        let message = request.encode();
        let mut buffer = Vec::with_capacity(LENGTH_BYTES + message.len());
        buffer.extend((message.len() as u32).to_le_bytes());
        buffer.extend(message);
        let range = 0..buffer.len();
        Self { buffer: Arc::new(buffer), range }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

/// The frames of a write: a single frame, unless the write is too long for one message.
pub(super) struct WriteFrames {
    pub(super) frames: Vec<Frame>,
    pub(super) buffer: Arc<Vec<u8>>,
    /// The span of each piece's contents in the buffer.
    pub(super) spans: Vec<Span>,
}

impl WriteFrames {
    /// Seals pieces of these lengths directly into the frames. The first frame has the number
    /// `number`, and each further frame the next number.
    pub(super) fn seal(
        mut number: u64,
        pieces: &[Piece],
        lengths: &[usize],
        fill: &mut Fill<'_>,
    ) -> Self {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        let mut spans = Vec::with_capacity(pieces.len());
        for run in runs(lengths) {
            let start = buffer.len();
            let room: usize = lengths[run.clone()].iter().sum();
            let message_bytes = WRITE_BYTES + run.len() * PIECE_BYTES + room;
            buffer.reserve_exact(LENGTH_BYTES + message_bytes);
            buffer.extend((message_bytes as u32).to_le_bytes());
            put_write_head(&mut buffer, number, &pieces[run.clone()]);
            let mut at = buffer.len();
            for bytes in &lengths[run] {
                spans.push(Span { start: at, bytes: *bytes });
                at += bytes;
            }
            buffer.resize(at, 0);
            ranges.push(start..at);
            number += 1;
        }
        fill(Blanks::new(&mut buffer, &spans));
        let buffer = Arc::new(buffer);
        let frame = |range| Frame { buffer: buffer.clone(), range };
        Self { frames: ranges.into_iter().map(frame).collect(), buffer, spans }
    }
}

/// Splits pieces of these lengths into runs that fit into one message in either direction.
pub(super) fn runs(lengths: &[usize]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, WRITE_BYTES);
    for (i, length) in lengths.iter().enumerate() {
        let more = PIECE_BYTES + length;
        if i > start && (bytes + more > MESSAGE_BYTES_MAX || i - start == PIECES_MAX) {
            runs.push(start..i);
            (start, bytes) = (i, WRITE_BYTES);
        }
        bytes += more;
    }
    if start < lengths.len() {
        runs.push(start..lengths.len());
    }
    runs
}

#[cfg(test)]
mod tests {
    use oblivio_core::BucketId;
    use oblivio_core::store::{Frames, Part, TreeId};
    use oblivio_wire::frame;

    use super::*;

    #[test]
    fn long_writes_are_split_into_several_messages() {
        const HALF: usize = MESSAGE_BYTES_MAX / 2;
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[1, 2, LONGEST_PIECE_BYTES]), [0..2, 2..3]);
        assert_eq!(runs(&[LONGEST_PIECE_BYTES, 0]), [0..1, 1..2]);
        assert_eq!(runs(&[5, LONGEST_PIECE_BYTES, 5, 5]), [0..1, 1..2, 2..4]);
        assert_eq!(runs(&[HALF - 100, HALF, 40, HALF]), [0..2, 2..4]);
        assert_eq!(runs(&[0; PIECES_MAX]).len(), 1);
        assert_eq!(runs(&[0; PIECES_MAX + 2]), [0..PIECES_MAX, PIECES_MAX..PIECES_MAX + 2]);
    }

    #[test]
    fn a_write_is_sealed_into_its_frames() {
        let piece = |index| Piece {
            tree: TreeId(1),
            bucket: BucketId::new(3, index),
            part: Part::Slot(index as u16),
        };
        let (pieces, lengths) = ([piece(1), piece(2), piece(4)], [3, LONGEST_PIECE_BYTES, 2]);
        let sealed: Vec<u8> = (0..lengths.iter().sum()).map(|i| i as u8).collect();
        let mut start = 0;
        let spans = lengths.map(|bytes| {
            start += bytes;
            Span { start: start - bytes, bytes }
        });
        let frames = Frames::new(&sealed, &spans);
        let write = WriteFrames::seal(7, &pieces, &lengths, &mut |blanks| blanks.relay(frames));
        let sent: Vec<u8> = write.frames.iter().flat_map(|frame| frame.bytes().to_vec()).collect();
        let mut rest = &sent[..];
        for (number, (i, piece)) in (7..).zip(pieces.iter().enumerate()) {
            let message = frame::receive(&mut rest, MESSAGE_BYTES_MAX).unwrap().unwrap();
            let bytes = frames.get(i).to_vec();
            assert!(write.buffer[write.spans[i].start..].starts_with(&bytes));
            let expected = Request::Write { number, pieces: vec![*piece], bytes };
            assert!(Request::decode(&message).unwrap() == expected, "{number}");
        }
        assert!(rest.is_empty());
    }
}
