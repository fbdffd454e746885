//! The sealed buckets of unflushed writes. The store serves reads of these buckets from here,
//! without a request.
//!
//! The frames are kept anyway until they are durable on the server. Buckets written before a flush
//! stay until the caller waits for that flush, not only until it is answered. So the set of buckets
//! here follows from the calls alone, which are public.

use std::sync::Arc;

use foldhash::HashMap;
use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};

use super::frames::WriteFrames;

#[derive(Default)]
pub(super) struct UnflushedBuckets {
    /// Buckets whose latest write was a whole bucket. Only this client chooses the addresses, so an
    /// attacker cannot cause collisions.
    buckets: HashMap<(TreeId, BucketId), Bucket>,
    /// The number of flushes that have begun.
    flushes: u64,
    /// The number of the request for the latest flush; `None` once the caller has waited for that
    /// flush.
    under_way: Option<u64>,
    /// Bytes of all frames since the latest flush began.
    bytes: usize,
    has_writes: bool,
}

struct Bucket {
    buffer: Arc<Vec<u8>>,
    start: usize,
    /// The number of flushes that had begun before the bucket was written.
    flushes: u64,
}

impl UnflushedBuckets {
    /// Whether nothing was written since the latest flush began.
    pub(super) fn has_nothing_new(&self) -> bool {
        !self.has_writes
    }

    /// Bytes of all writes since the latest flush began. The next flush would free this memory.
    pub(super) fn new_bytes(&self) -> usize {
        self.bytes
    }

    /// Records that a flush of all writes began with request `number`.
    pub(super) fn flush_begins(&mut self, number: u64) {
        self.under_way = Some(number);
        self.flushes += 1;
        (self.bytes, self.has_writes) = (0, false);
    }

    /// The number of the request for the flush that the caller has not waited for yet; `None` if
    /// there is no such flush.
    pub(super) fn flush_under_way(&self) -> Option<u64> {
        self.under_way
    }

    /// Records that the flush is done: earlier writes are durable.
    pub(super) fn flush_ends(&mut self) {
        self.under_way = None;
        let flushes = self.flushes;
        self.buckets.retain(|_, bucket| bucket.flushes == flushes);
    }

    /// Adds the pieces of a write.
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
                // The server merges the parts.
                Part::Header | Part::Slot(_) => {
                    self.buckets.remove(&(*tree, *bucket));
                }
            }
        }
    }

    pub(super) fn has(&self, piece: &Piece) -> bool {
        self.buckets.contains_key(&(piece.tree, piece.bucket))
    }

    /// Returns `bytes` bytes of the bucket of `piece`, beginning at `offset`; `None` if the bucket
    /// is not here.
    pub(super) fn find(&self, piece: &Piece, offset: usize, bytes: usize) -> Option<&[u8]> {
        let Bucket { buffer, start, .. } = self.buckets.get(&(piece.tree, piece.bucket))?;
        Some(&buffer[start + offset..][..bytes])
    }
}
