//! A store that lies as the fuzzer says.

use oblivio_core::store::{BucketStore, Span};
use oblivio_core::view::Operation;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_testkit::{Answer, Call, Faulty, Rule};

/// A store that keeps what is written, and answers each read with the next of its lies.
pub(crate) type Hostile<S> = Faulty<S, Lies>;

/// A store that lies once it is given [lies](Lies::lie).
pub(crate) fn hostile<S: BucketStore>(honest: S) -> Hostile<S> {
    Faulty::new(honest, Lies(Vec::new().into_iter()))
}

/// A lie is a byte that says which, and the bytes that say where. Bytes that say nothing are a read
/// without a lie, and so are all reads when there are none left.
pub(crate) struct Lies(std::vec::IntoIter<u8>);

impl Lies {
    /// Lies like this from now on.
    pub(crate) fn lie(&mut self, lies: &[u8]) {
        self.0 = lies.to_vec().into_iter();
    }

    /// The next byte of a lie that was begun.
    fn byte(&mut self) -> usize {
        usize::from(self.0.next().unwrap_or(0))
    }

    /// One of the frames of the answer.
    fn any_frame(&mut self, spans: &[Span]) -> Option<usize> {
        let byte = self.byte();
        (!spans.is_empty()).then(|| byte % spans.len())
    }

    fn distort(&mut self, lie: u8, Answer { bytes: buffer, spans, .. }: &mut Answer) {
        match lie {
            // A bit of any bucket.
            0 => {
                let at = self.byte() << 8 | self.byte();
                let bit = self.byte() % 8;
                if !buffer.is_empty() {
                    let at = at % buffer.len();
                    buffer[at] ^= 1 << bit;
                }
            }
            // Too few bytes, or too many.
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
            // Too few frames, or too many.
            3 => {
                let frames = self.byte();
                spans.truncate(frames);
            }
            4 => spans.push(Span { start: 0, bytes: buffer.len() }),
            // A bucket that was never written.
            5 => {
                if let Some(frame) = self.any_frame(spans) {
                    let Span { start, bytes } = spans[frame];
                    buffer[start..start + bytes].fill(0);
                }
            }
            // Another bucket's bytes.
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
            // What the read before brought.
            Some(7) => Ok(()),
            Some(8) => Err(StoreError::new(StoreErrorKind::Failed, "it does not like to")),
            lie => {
                call.forward(honest)?;
                lie.into_iter().for_each(|lie| self.distort(lie, call.answer));
                Ok(())
            }
        }
    }
}
