//! Reads and writes of a store. The lengths of the pieces are measured in advance, and long
//! requests reach the store in portions.

use std::ops::Range;

use oblivio_core::StoreError;
use oblivio_core::store::{BucketStore, Piece, SealedByClient, TreeShape};
use oblivio_wire::FailureKind;

use super::refusal::Refusal;

/// The minimum memory that a store uses for a piece, in bytes.
const ROOM_BYTES_MIN: usize = 4096;

/// The maximum memory of one call of the store, in bytes. For a request of many small pieces, the
/// store could need thousands of times the bytes of the request. A single piece may be longer.
const PORTION_BYTES: usize = 4 << 20;

/// The length of each piece, and the sum of the lengths.
#[derive(Debug)]
pub(super) struct Lengths {
    of_pieces: Vec<u32>,
    pub(super) sum: usize,
}

impl Lengths {
    /// Determines the lengths of `pieces`.
    ///
    /// # Errors
    /// [`Absent`](FailureKind::Absent) if a piece does not exist; [`Invalid`](FailureKind::Invalid)
    /// if they are longer than `bytes_max` in total.
    pub(super) fn measure(
        shapes: &[TreeShape],
        pieces: &[Piece],
        bytes_max: usize,
    ) -> Result<Self, Refusal> {
        let mut lengths = Self { of_pieces: Vec::with_capacity(pieces.len()), sum: 0 };
        for piece in pieces {
            let bytes = piece_bytes(shapes, piece)
                .ok_or_else(|| Refusal::new(FailureKind::Absent, "the volume has no such piece"))?;
            let fits = usize::try_from(bytes).is_ok_and(|bytes| bytes <= bytes_max - lengths.sum);
            if !fits {
                let message = format!("the pieces of a request are longer than {bytes_max} bytes");
                return Err(Refusal::invalid(message));
            }
            lengths.sum += bytes as usize;
            lengths.of_pieces.push(bytes as u32);
        }
        Ok(lengths)
    }

    /// Splits the pieces into calls of the store. Yields the indices of each call's pieces, and the
    /// range of their bytes.
    fn portions(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let (mut piece, mut byte) = (0, 0);
        std::iter::from_fn(move || {
            let (first, start) = (piece, byte);
            let mut room = 0;
            while let Some(bytes) = self.of_pieces.get(piece).map(|bytes| *bytes as usize) {
                room += bytes.next_multiple_of(ROOM_BYTES_MIN).max(ROOM_BYTES_MIN);
                if room > PORTION_BYTES && piece > first {
                    break;
                }
                piece += 1;
                byte += bytes;
            }
            (piece > first).then_some((first..piece, start..byte))
        })
    }
}

/// Appends the contents of the pieces to `out`.
pub(super) fn read(
    store: &mut dyn BucketStore,
    pieces: &[Piece],
    lengths: &Lengths,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    for (portion, _) in lengths.portions() {
        let frames = store.read(&pieces[portion])?;
        (0..frames.len()).for_each(|i| out.extend(frames.get(i)));
    }
    Ok(())
}

/// Writes `bytes`, the concatenated contents of the pieces.
pub(super) fn write(
    store: &mut dyn BucketStore,
    pieces: &[Piece],
    lengths: &Lengths,
    bytes: &[u8],
) -> Result<(), StoreError> {
    for (portion, range) in lengths.portions() {
        let sealed = SealedByClient::new(&bytes[range]);
        store.write(&pieces[portion], &mut |blanks| sealed.put(blanks))?;
    }
    Ok(())
}

fn piece_bytes(shapes: &[TreeShape], piece: &Piece) -> Option<u64> {
    let level = shapes.get(usize::from(piece.tree.0))?.level_of(piece.bucket)?;
    level.part(piece.part).map(|(_, bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use oblivio_core::geometry::BucketId;
    use oblivio_core::store::{LevelShape, Part, TreeId};

    use super::*;

    fn shape(slot_bytes: u64) -> TreeShape {
        TreeShape::new(vec![LevelShape {
            buckets: 1,
            slots: 2,
            header_bytes: 8,
            slots_offset: 8,
            slot_bytes,
            bucket_bytes: 8 + 2 * slot_bytes,
        }])
    }

    fn piece(part: Part) -> Piece {
        Piece { tree: TreeId(0), bucket: BucketId::new(0, 0), part }
    }

    #[test]
    fn pieces_have_the_length_of_the_shape_or_are_absent() {
        let shapes = [shape(100)];
        let parts = [Part::Whole, Part::Header, Part::Slot(1)];
        let lengths = Lengths::measure(&shapes, &parts.map(piece), 316).unwrap();
        assert_eq!((lengths.of_pieces, lengths.sum), (vec![208, 8, 100], 316));
        let refused = |pieces: &[Piece]| Lengths::measure(&shapes, pieces, 315).unwrap_err().kind;
        assert_eq!(refused(&parts.map(piece)), FailureKind::Invalid);
        assert_eq!(refused(&[piece(Part::Slot(2))]), FailureKind::Absent);
        let elsewhere = Piece { tree: TreeId(1), ..piece(Part::Whole) };
        assert_eq!(refused(&[elsewhere]), FailureKind::Absent);
        let below = Piece { bucket: BucketId::new(1, 0), ..piece(Part::Whole) };
        assert_eq!(refused(&[below]), FailureKind::Absent);
    }

    #[test]
    fn portions_cover_the_request_and_are_bounded() {
        for (slot_bytes, count) in [(0, 5000), (1, 5000), (3 << 20, 4), (9 << 20, 3), (1, 0)] {
            let pieces = vec![piece(Part::Slot(0)); count];
            let lengths = Lengths::measure(&[shape(slot_bytes)], &pieces, 32 << 20).unwrap();
            let (mut piece, mut byte) = (0, 0);
            for (pieces, bytes) in lengths.portions() {
                assert_eq!((pieces.start, bytes.start), (piece, byte));
                assert!(!pieces.is_empty());
                let room = pieces.len() * ROOM_BYTES_MIN.max(slot_bytes as usize);
                assert!(room <= PORTION_BYTES || pieces.len() == 1);
                (piece, byte) = (pieces.end, bytes.end);
            }
            assert_eq!((piece, byte), (count, lengths.sum));
        }
    }
}
