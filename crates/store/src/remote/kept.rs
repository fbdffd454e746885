//! Buckets that were written since the last flush, as they were sealed: they are read from here.
//!
//! The frames hold them anyway until they are durable on the server. Which buckets are here follows from what was written, which
//! is public.

use std::collections::HashMap;
use std::sync::Arc;

use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};

use super::frames::WriteFrames;

#[derive(Default)]
pub(super) struct Kept {
    /// Buckets of which the latest write was one of the whole bucket.
    buckets: HashMap<(TreeId, BucketId), Bucket>,
    /// Of all frames.
    bytes: usize,
    has_writes: bool,
}

struct Bucket {
    buffer: Arc<Vec<u8>>,
    start: usize,
}

impl Kept {
    /// Nothing was written since the last flush.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_writes
    }

    /// Bytes of memory that are held until the next flush.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// These pieces were written.
    pub(super) fn add(&mut self, pieces: &[Piece], write: &WriteFrames) {
        self.has_writes |= !write.frames.is_empty();
        self.bytes += write.buffer.len();
        for (Piece { tree, bucket, part }, span) in pieces.iter().zip(&write.spans) {
            match part {
                Part::Whole => {
                    let newer = Bucket { buffer: write.buffer.clone(), start: span.start };
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
        let Bucket { buffer, start } = self.buckets.get(&(piece.tree, piece.bucket))?;
        Some(&buffer[start + offset..][..bytes])
    }

    /// Everything is durable.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
