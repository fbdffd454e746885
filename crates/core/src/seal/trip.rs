//! A sealed write that can be put into several stores.

use alloc::vec::Vec;

use super::blanks::{Blanks, Sealed};
use crate::pieces::{Frames, Span};

/// The sealed pieces of one write, for a store in front of other stores.
///
/// The store seals a write once, here. The result can then be shared with other threads and put
/// into the blanks of the stores behind it. Nothing unsealed can reach storage this way: the bytes
/// here are private, they come from a `fill` that writes only into [`Blanks`], and they are copied
/// unchanged. Storage gets the same bytes as without the store in front.
#[derive(Default)]
pub struct SealedTrip {
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl SealedTrip {
    /// Seals pieces of the given lengths with `fill`, replacing the current contents.
    pub fn seal(
        &mut self,
        lengths: impl IntoIterator<Item = usize>,
        fill: &mut (dyn for<'a> FnMut(Blanks<'a>) -> Sealed<'a> + '_),
    ) {
        let mut end = 0;
        self.spans.clear();
        self.spans.extend(lengths.into_iter().map(|bytes| {
            let start = end;
            end += bytes;
            Span { start, bytes }
        }));
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        fill(Blanks::new(&mut self.buffer, &self.spans));
    }

    /// Fills blank `i` with piece `which[i]`.
    ///
    /// # Panics
    /// If there is no such piece or its length differs from the blank's.
    pub fn put<'a>(&self, which: &[usize], blanks: Blanks<'a>) -> Sealed<'a> {
        let spans: Vec<_> = which.iter().map(|i| self.spans[*i]).collect();
        blanks.put_sealed(Frames::new(&self.buffer, &spans))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(trip: &mut SealedTrip, pieces: &[&[u8]]) {
        trip.seal(pieces.iter().map(|piece| piece.len()), &mut |mut blanks| {
            (0..).zip(pieces).for_each(|(i, piece)| blanks.copy_sealed(i, 0, piece));
            blanks.sealed()
        });
    }

    #[test]
    fn each_blank_gets_its_piece() {
        let mut trip = SealedTrip::default();
        seal(&mut trip, &[b"a longer trip", b"before"]);
        let pieces: [&[u8]; 3] = [b"one", b"", b"three"];
        seal(&mut trip, &pieces);
        let mut room = [b'-'; 11];
        let spans = [(1, 5), (7, 3), (11, 0)].map(|(start, bytes)| Span { start, bytes });
        let sealed = trip.put(&[2, 0, 1], Blanks::new(&mut room, &spans));
        (0..).zip([2, 0, 1]).for_each(|(at, i)| assert_eq!(sealed.frames().get(at), pieces[i]));
        assert_eq!(&room, b"-three-one-");
    }

    #[test]
    #[should_panic = "one frame for each blank"]
    fn a_blank_without_a_piece_is_a_defect() {
        let mut trip = SealedTrip::default();
        seal(&mut trip, &[b"one"]);
        let spans = [Span { start: 0, bytes: 3 }; 2];
        trip.put(&[0], Blanks::new(&mut [0; 3], &spans));
    }
}
