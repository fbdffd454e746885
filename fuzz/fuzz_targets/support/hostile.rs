//! A store that lies as the fuzzer says.

use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};

/// A store that keeps what is written, and answers each read with the next of its lies.
///
/// A lie is a byte that says which, and the bytes that say where. Bytes that say nothing are a read
/// without a lie, and so are all reads when there are none left.
pub(crate) struct Hostile<S> {
    honest: S,
    lies: std::vec::IntoIter<u8>,
    /// The answer to the latest read.
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl<S: BucketStore> Hostile<S> {
    pub(crate) fn new(honest: S) -> Self {
        Self { honest, lies: Vec::new().into_iter(), buffer: Vec::new(), spans: Vec::new() }
    }

    /// Lies like this from now on.
    pub(crate) fn lie(&mut self, lies: &[u8]) {
        self.lies = lies.to_vec().into_iter();
    }

    /// The next byte of a lie that was begun.
    fn byte(&mut self) -> usize {
        usize::from(self.lies.next().unwrap_or(0))
    }

    /// One of the frames of the answer.
    fn any_frame(&mut self) -> Option<usize> {
        let byte = self.byte();
        (!self.spans.is_empty()).then(|| byte % self.spans.len())
    }

    fn answer_honestly(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        let frames = self.honest.read(pieces)?;
        self.buffer.clear();
        self.spans.clear();
        for i in 0..frames.len() {
            let frame = frames.get(i);
            self.spans.push(Span { start: self.buffer.len(), bytes: frame.len() });
            self.buffer.extend_from_slice(frame);
        }
        Ok(())
    }

    /// Changes the answer.
    fn distort(&mut self, lie: u8) {
        match lie {
            // A bit of any bucket.
            0 => {
                let at = self.byte() << 8 | self.byte();
                let bit = self.byte() % 8;
                if !self.buffer.is_empty() {
                    let at = at % self.buffer.len();
                    self.buffer[at] ^= 1 << bit;
                }
            }
            // Too few bytes, or too many.
            1 => {
                let (frame, bytes) = (self.any_frame(), self.byte());
                if let Some(frame) = frame {
                    self.spans[frame].bytes = self.spans[frame].bytes.saturating_sub(bytes);
                }
            }
            2 => {
                let (frame, bytes) = (self.any_frame(), self.byte());
                if let Some(frame) = frame {
                    self.spans[frame].bytes += bytes;
                    let Span { start, bytes } = self.spans[frame];
                    self.buffer.resize(self.buffer.len().max(start + bytes), 0);
                }
            }
            // Too few frames, or too many.
            3 => {
                let frames = self.byte();
                self.spans.truncate(frames);
            }
            4 => self.spans.push(Span { start: 0, bytes: self.buffer.len() }),
            // A bucket that was never written.
            5 => {
                if let Some(frame) = self.any_frame() {
                    let Span { start, bytes } = self.spans[frame];
                    self.buffer[start..start + bytes].fill(0);
                }
            }
            // Another bucket's bytes.
            6 => {
                if let (Some(one), Some(other)) = (self.any_frame(), self.any_frame()) {
                    self.spans.swap(one, other);
                }
            }
            _ => (),
        }
    }
}

impl<S: BucketStore> BucketStore for Hostile<S> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.honest.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.honest.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.honest.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        match self.lies.next() {
            // What the read before brought.
            Some(7) => (),
            Some(8) => return Err(StoreError::new(StoreErrorKind::Failed, "it does not like to")),
            lie => {
                self.answer_honestly(pieces)?;
                if let Some(lie) = lie {
                    self.distort(lie);
                }
            }
        }
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.honest.write(pieces, fill)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.honest.flush()
    }
}
