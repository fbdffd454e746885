//! The bytes of the pieces of a trip, borrowed from the store.

/// A byte range in the memory of a store.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The length in bytes.
    pub bytes: usize,
}

impl Span {
    /// The span as a range.
    #[inline]
    pub fn range(self) -> core::ops::Range<usize> {
        self.start..self.start.saturating_add(self.bytes)
    }
}

/// The answer to a read: the bytes of each piece, in the order requested.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    buffer: &'a [u8],
    /// A second region of memory. A span points into it if the span starts at or past the end of
    /// `buffer`.
    behind: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Frames<'a> {
    /// The frames at `spans` in `buffer`.
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Self {
        Self::in_two(buffer, &[], spans)
    }

    /// Frames in two regions of memory, addressed as if `behind` started at the end of `buffer`. No
    /// span may cross from one region into the other.
    pub fn in_two(buffer: &'a [u8], behind: &'a [u8], spans: &'a [Span]) -> Self {
        Self { buffer, behind, spans }
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of piece `i`. Empty if there is no such piece or its span is outside of the
    /// buffers: in either case storage returned too little.
    #[inline]
    pub fn get(&self, i: usize) -> &'a [u8] {
        self.spans.get(i).map_or(&[], |span| self.at(span))
    }

    /// The bytes of each piece, as from [`Self::get`], in the order requested.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.spans.iter().map(move |span| self.at(span))
    }

    #[inline]
    fn at(self, span: &Span) -> &'a [u8] {
        self.buffer.get(span.range()).unwrap_or_else(|| self.behind(span.range()))
    }

    fn behind(&self, range: core::ops::Range<usize>) -> &'a [u8] {
        let from_there = |at: usize| at.checked_sub(self.buffer.len());
        let range = from_there(range.start).zip(from_there(range.end));
        range.and_then(|(start, end)| self.behind.get(start..end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_in_one_stretch_or_the_other_or_are_empty() {
        let (buffer, behind) = ([1, 2, 3], [4, 5]);
        let spans = [(0, 3), (2, 1), (3, 2), (4, 1), (5, 0), (2, 2), (4, 2), (usize::MAX, 1)];
        let spans = spans.map(|(start, bytes)| Span { start, bytes });
        let frames = Frames::in_two(&buffer, &behind, &spans);
        let expected: [&[u8]; 8] = [&[1, 2, 3], &[3], &[4, 5], &[5], &[], &[], &[], &[]];
        assert_eq!(frames.len(), expected.len());
        (0..8).for_each(|i| assert_eq!(frames.get(i), expected[i], "{i}"));
        assert_eq!(frames.get(8), &[0u8; 0], "past the last piece");
        let one = Frames::new(&buffer, &spans);
        assert_eq!((one.get(1), one.get(2)), (&[3][..], &[][..]));
    }
}
