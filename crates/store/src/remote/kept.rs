//! Buckets that were written and are not durable, as they were sealed: they are read from here.
//!
//! The frames hold them anyway until they are durable on the server. What was written before a flush that was asked for stays until
//! somebody waits for that flush, and not only until it is answered: so which buckets are here follows from the calls alone, which
//! are public.

use std::sync::Arc;

use foldhash::HashMap;
use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};

use super::frames::WriteFrames;

#[derive(Default)]
pub(super) struct Kept {
    /// Buckets of which the latest write was one of the whole bucket. Nobody but this client says which they are.
    buckets: HashMap<(TreeId, BucketId), Bucket>,
    /// Flushes that were asked for.
    flushes: u64,
    /// The request of the latest of them, until somebody has waited for it.
    under_way: Option<u64>,
    /// Of all frames since then.
    bytes: usize,
    has_writes: bool,
}

struct Bucket {
    buffer: Arc<Vec<u8>>,
    start: usize,
    /// After so many flushes it was written.
    flushes: u64,
}

impl Kept {
    /// Nothing was written since the last flush that was asked for.
    pub(super) fn has_nothing_new(&self) -> bool {
        !self.has_writes
    }

    /// Bytes of memory that the next flush is for.
    pub(super) fn new_bytes(&self) -> usize {
        self.bytes
    }

    /// A flush of all of it was asked for, by the request of this number.
    pub(super) fn flush_begins(&mut self, number: u64) {
        self.under_way = Some(number);
        self.flushes += 1;
        (self.bytes, self.has_writes) = (0, false);
    }

    /// The request of the flush that nobody has waited for.
    pub(super) fn flush_under_way(&self) -> Option<u64> {
        self.under_way
    }

    /// It is done: what was written before it is durable.
    pub(super) fn flush_ends(&mut self) {
        self.under_way = None;
        let flushes = self.flushes;
        self.buckets.retain(|_, bucket| bucket.flushes == flushes);
    }

    /// These pieces were written.
    pub(super) fn add(&mut self, pieces: &[Piece], write: &WriteFrames) {
        self.has_writes |= !write.frames.is_empty();
        self.bytes += write.buffer.len();
        for (Piece { tree, bucket, part }, span) in pieces.iter().zip(&write.spans) {
            match part {
                Part::Whole => {
                    let (buffer, flushes) = (write.buffer.clone(), self.flushes);
                    let newer = Bucket { buffer, start: span.start, flushes };
                    self.buckets.insert((*tree, *bucket), newer);
                }
                // The server puts it together.
                Part::Header | Part::Slot(_) => {
                    self.buckets.remove(&(*tree, *bucket));
                }
            }
        }
    }

    pub(super) fn has(&self, piece: &Piece) -> bool {
        self.buckets.contains_key(&(piece.tree, piece.bucket))
    }

    /// So many bytes of the bucket of `piece`, from `offset` on, if it is here.
    pub(super) fn find(&self, piece: &Piece, offset: usize, bytes: usize) -> Option<&[u8]> {
        let Bucket { buffer, start, .. } = self.buckets.get(&(piece.tree, piece.bucket))?;
        Some(&buffer[start + offset..][..bytes])
    }
}
