//! A probe that tells whether storage is ahead of the client.

use super::super::verify::Verifier;
use super::{RotatingIo, RotatingTrips, read_checked};
use crate::error::Error;
use crate::geometry::Leaf;

/// The evidence in storage about one eviction that the client has not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollbackProbe {
    /// The eviction was made: a place holds the bucket that this eviction writes there.
    Seen,
    /// The eviction was not made: a place that it would overwrite holds its previous contents.
    NotYet,
    /// All places were read, but no bucket in them authenticates. The eviction may have been made
    /// in an era whose keys the client does not know, or storage is damaged.
    Unclear,
}

impl RotatingTrips<'_> {
    /// Looks for evidence of eviction `g`, which the client has not made. Reads the places that `g`
    /// writes, from the leaf up, until one holds what `g` wrote, or its contents from before `g`.
    /// If none does, and some could not be read, returns the error of the last unreadable place.
    pub(in super::super) fn probe_rollback(&mut self, g: u64) -> Result<RollbackProbe, Error> {
        let leaf = Leaf(g & (self.io.geometry.leaves() - 1));
        let mut unreadable = None;
        for level in self.io.places.levels().rev() {
            self.io.set_buckets([self.io.places.version(g + 1, leaf, level)]);
            let Self { io, store } = self;
            let RotatingIo { sealer, places, pieces, piece_bytes, versions, .. } = &**io;
            let frames = match read_checked(*store, pieces, piece_bytes) {
                Ok(frames) => frames,
                Err(error) => {
                    unreadable = Some(error);
                    continue;
                }
            };
            let (slots, head) = (frames.get(0), frames.get(1));
            let verifier = Verifier { sealer, places, g };
            let is_of = |eviction| verifier.verify(eviction, &versions[0], head, slots).is_some();
            if is_of(g) {
                return Ok(RollbackProbe::Seen);
            }
            let is_unchanged = match places.before(g, level) {
                Some(before) => is_of(before),
                None => head.iter().chain(slots).all(|byte| *byte == 0),
            };
            if is_unchanged {
                return Ok(RollbackProbe::NotYet);
            }
        }
        unreadable.map_or(Ok(RollbackProbe::Unclear), Err)
    }
}
