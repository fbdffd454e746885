//! What most of the servers say.

use oblivio_core::store::{Frames, Span};

/// What each of them says of the pieces of one read.
#[derive(Default)]
pub(super) struct Votes {
    /// Of the pieces, one after the other.
    spans: Vec<Span>,
    /// From each that has said something.
    said: Vec<Vec<u8>>,
    /// What is believed.
    agreed: Vec<u8>,
}

impl Votes {
    /// Nobody has said anything of pieces of these lengths.
    pub(super) fn begin(&mut self, lengths: &[usize]) {
        self.said.clear();
        self.spans.clear();
        let mut start = 0;
        for bytes in lengths {
            self.spans.push(Span { start, bytes: *bytes });
            start += bytes;
        }
        self.agreed.clear();
        self.agreed.resize(start, 0);
    }

    /// One says this, all pieces one after the other.
    pub(super) fn add(&mut self, said: Vec<u8>) {
        self.said.push(said);
    }

    /// How many have said something.
    pub(super) fn voters(&self) -> usize {
        self.said.len()
    }

    /// Believes of each piece what most say, if so many do; it is zeros if there is no such thing. Answers whether there is one for every piece.
    pub(super) fn count(&mut self, votes_min: usize) -> bool {
        let mut is_agreed = true;
        for Span { start, bytes } in &self.spans {
            let range = *start..start + bytes;
            let votes =
                |what: &[u8]| self.said.iter().filter(|it| it[range.clone()] == *what).count();
            // The first of those with the most votes: so it follows from what was said.
            let values = self.said.iter().map(|said| &said[range.clone()]);
            let most = values
                .map(|what| (votes(what), what))
                .reduce(|best, next| if next.0 > best.0 { next } else { best });
            match most {
                Some((votes, what)) if votes >= votes_min => {
                    self.agreed[range].copy_from_slice(what);
                }
                _ => is_agreed = false,
            }
        }
        is_agreed
    }

    /// What is believed.
    pub(super) fn frames(&self) -> Frames<'_> {
        Frames::new(&self.agreed, &self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_what_most_say_of_it_and_nothing_if_too_few_do() {
        let mut votes = Votes::default();
        let lengths = [2, 1];
        for (said, expected, is_agreed) in [
            (&[b"aax", b"aay", b"bby"][..], b"aay", true),
            (&[b"aax", b"bbx", b"ccx"], b"\0\0x", false),
            (&[b"aax", b"bbx", b"bbx", b"bbz", b"aaz"], b"bbx", true),
            (&[b"aax"], b"\0\0\0", false),
            (&[], b"\0\0\0", false),
        ] {
            votes.begin(&lengths);
            said.iter().for_each(|it| votes.add(it.to_vec()));
            assert_eq!((votes.count(2), votes.voters()), (is_agreed, said.len()));
            let frames = votes.frames();
            assert_eq!([frames.get(0), frames.get(1)].concat(), expected);
        }
    }
}
