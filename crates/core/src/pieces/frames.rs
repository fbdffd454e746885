//! The bytes of pieces, where a store has them.

/// A byte range in the buffer of a store.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// How many.
    pub bytes: usize,
}

impl Span {
    #[inline]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start..self.start.saturating_add(self.bytes)
    }
}

/// What a read brought: the bytes of each piece, in the order asked.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Frames<'a> {
    /// The frames that lie at `spans` in `buffer`.
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Self {
        Self { buffer, spans }
    }

    /// How many pieces.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of piece `i`; none when its span is not in the buffer, which is one more way for
    /// storage to return too few.
    #[inline]
    pub fn get(&self, i: usize) -> &'a [u8] {
        self.buffer.get(self.spans[i].range()).unwrap_or_default()
    }
}
