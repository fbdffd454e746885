//! A store whose lies come from the fuzzer.

use oblivio_core::store::{BucketStore, Span};
use oblivio_core::view::Operation;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_testkit::{Answer, Call, Faulty, Rule};

/// A store that stores writes correctly, and applies the next lie to each read.
pub(crate) type Hostile<S> = Faulty<S, Lies>;

/// Creates a store that is honest until it gets [lies](Lies::lie).
pub(crate) fn hostile<S: BucketStore>(honest: S) -> Hostile<S> {
    Faulty::new(honest, Lies(Vec::new().into_iter()))
}

/// Lies to apply to reads. A lie consists of a byte for its kind, and bytes for the changed part of
/// the answer. If the kind is unknown, or the bytes have ended, the read stays honest.
pub(crate) struct Lies(std::vec::IntoIter<u8>);

impl Lies {
    /// Sets the lies for the next reads.
    pub(crate) fn lie(&mut self, lies: &[u8]) {
        self.0 = lies.to_vec().into_iter();
    }

    /// Returns the next byte of the current lie, or 0 if none is left.
    fn byte(&mut self) -> usize {
        usize::from(self.0.next().unwrap_or(0))
    }

    /// Selects a frame of the answer by the next byte. `None` if the answer has no frames.
    fn any_frame(&mut self, spans: &[Span]) -> Option<usize> {
        let byte = self.byte();
        (!spans.is_empty()).then(|| byte % spans.len())
    }

    fn distort(&mut self, lie: u8, Answer { bytes: buffer, spans, .. }: &mut Answer) {
        match lie {
            // Flip a bit.
            0 => {
                let at = self.byte() << 8 | self.byte();
                let bit = self.byte() % 8;
                if !buffer.is_empty() {
                    let at = at % buffer.len();
                    buffer[at] ^= 1 << bit;
                }
            }
            // Too few or too many bytes.
            1 => {
                let (frame, bytes) = (self.any_frame(spans), self.byte());
                if let Some(frame) = frame {
                    spans[frame].bytes = spans[frame].bytes.saturating_sub(bytes);
                }
            }
            2 => {
                let (frame, bytes) = (self.any_frame(spans), self.byte());
                if let Some(frame) = frame {
                    spans[frame].bytes += bytes;
                    let Span { start, bytes } = spans[frame];
                    buffer.resize(buffer.len().max(start + bytes), 0);
                }
            }
            // Too few or too many frames.
            3 => {
                let frames = self.byte();
                spans.truncate(frames);
            }
            4 => spans.push(Span { start: 0, bytes: buffer.len() }),
            // An unwritten bucket.
            5 => {
                if let Some(frame) = self.any_frame(spans) {
                    let Span { start, bytes } = spans[frame];
                    buffer[start..start + bytes].fill(0);
                }
            }
            // The bytes of another bucket.
            6 => {
                if let (Some(one), Some(other)) = (self.any_frame(spans), self.any_frame(spans)) {
                    spans.swap(one, other);
                }
            }
            _ => (),
        }
    }
}

impl<S: BucketStore> Rule<S> for Lies {
    fn handle(&mut self, honest: &mut S, call: &mut Call<'_>) -> Result<(), StoreError> {
        if call.operation != Operation::Read {
            return call.forward(honest);
        }
        match self.0.next() {
            // The answer of the previous read.
            Some(7) => Ok(()),
            Some(8) => Err(StoreError::new(StoreErrorKind::Failed, "a failure from the fuzzer")),
            lie => {
                call.forward(honest)?;
                lie.into_iter().for_each(|lie| self.distort(lie, call.answer));
                Ok(())
            }
        }
    }
}
