//! Counts the servers' votes on the contents of records, and finds the values with enough votes.

use std::cmp::Reverse;

use oblivio_core::store::{Frames, Span};

/// The votes of the servers on the pieces of one read. A server votes for the contents that it
/// returns.
#[derive(Default)]
pub(super) struct Votes {
    /// For each piece, its range of bytes within a vote.
    spans: Vec<Span>,
    /// For each server that answered, its vote: the contents of all pieces, one after the other.
    received: Vec<Vec<u8>>,
    /// For each piece, its candidate with the most votes; zeros if it has none.
    agreed: Vec<u8>,
}

impl Votes {
    /// Begins a vote on pieces of these lengths.
    pub(super) fn begin(&mut self, lengths: &[usize]) {
        self.received.clear();
        self.spans.clear();
        let mut start = 0;
        for bytes in lengths {
            self.spans.push(Span { start, bytes: *bytes });
            start += bytes;
        }
        self.agreed.clear();
        self.agreed.resize(start, 0);
    }

    /// Adds the vote of a server: all pieces, one after the other.
    pub(super) fn add(&mut self, received: Vec<u8>) {
        self.received.push(received);
    }

    /// The number of servers that voted.
    pub(super) fn voters(&self) -> usize {
        self.received.len()
    }

    /// Counts the votes for each piece. A candidate is a value with at least `votes_min` votes.
    pub(super) fn count(&mut self, votes_min: usize) {
        for i in 0..self.spans.len() {
            let Span { start, bytes } = self.spans[i];
            match self.with_votes(i, votes_min).first() {
                Some(value) => {
                    let value = value.to_vec();
                    self.agreed[start..start + bytes].copy_from_slice(&value);
                }
                None => self.agreed[start..start + bytes].fill(0),
            }
        }
    }

    /// The candidate of each piece with the most votes; zeros for a piece without a candidate.
    pub(super) fn frames(&self) -> Frames<'_> {
        Frames::new(&self.agreed, &self.spans)
    }

    /// Passes each candidate of every piece to `each`, with the index of the piece. For a piece
    /// without a candidate, passes zeros.
    pub(super) fn each_candidate(&self, votes_min: usize, each: &mut dyn FnMut(usize, &[u8])) {
        for (i, span) in self.spans.iter().enumerate() {
            match &self.with_votes(i, votes_min)[..] {
                [] => each(i, &self.agreed[span.start..span.start + span.bytes]),
                values => values.iter().for_each(|value| each(i, value)),
            }
        }
    }

    /// The values of a piece with at least `votes_min` votes. The value with the most votes is
    /// first; values with equally many votes are in the order of the servers.
    fn with_votes(&self, piece: usize, votes_min: usize) -> Vec<&[u8]> {
        let Span { start, bytes } = self.spans[piece];
        let mut counted: Vec<(&[u8], usize)> = Vec::new();
        for value in self.received.iter().map(|received| &received[start..start + bytes]) {
            match counted.iter_mut().find(|(counted, _)| *counted == value) {
                Some((_, votes)) => *votes += 1,
                None => counted.push((value, 1)),
            }
        }
        counted.retain(|(_, votes)| *votes >= votes_min);
        counted.sort_by_key(|(_, votes)| Reverse(*votes));
        counted.into_iter().map(|(value, _)| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_the_majority_value_or_zeros_without_enough_votes() {
        let mut votes = Votes::default();
        let lengths = [2, 1];
        for (received, expected) in [
            (&[b"aax", b"aay", b"bby"][..], b"aay"),
            (&[b"aax", b"bbx", b"ccx"], b"\0\0x"),
            (&[b"aax", b"bbx", b"bbx", b"bbz", b"aaz"], b"bbx"),
            (&[b"aax"], b"\0\0\0"),
            (&[], b"\0\0\0"),
        ] {
            votes.begin(&lengths);
            received.iter().for_each(|it| votes.add(it.to_vec()));
            votes.count(2);
            assert_eq!(votes.voters(), received.len());
            let frames = votes.frames();
            assert_eq!([frames.get(0), frames.get(1)].concat(), expected);
        }
    }

    #[test]
    fn every_value_with_enough_votes_is_a_candidate_and_no_other_is() {
        let mut votes = Votes::default();
        votes.begin(&[1, 1]);
        [b"ox", b"ny", b"ox", b"lz", b"n-"].iter().for_each(|it| votes.add(it.to_vec()));
        let mut candidates = |votes_min| {
            votes.count(votes_min);
            let mut found = Vec::new();
            votes.each_candidate(votes_min, &mut |i, value| found.push((i, value[0])));
            found
        };
        assert_eq!(candidates(2), [(0, b'o'), (0, b'n'), (1, b'x')]);
        assert_eq!(candidates(3), [(0, 0), (1, 0)]);
    }
}
