//! Announced pieces, which are requested at once and kept until they are read.
//!
//! Which pieces are requested, and how long they are kept, depends only on the calls of the store,
//! and not on the times at which answers arrive.

use std::collections::BTreeMap;
use std::mem;

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId};

/// Maximum number of bytes of pieces that were announced and not read yet. This is enough for the
/// announcements of a volume of 40 GiB with blocks of 4 KiB, and for a few paths of large blocks.
pub(crate) const PREFETCHED_BYTES_MAX: usize = 32 << 20;

pub(crate) struct Prefetched {
    /// The requests, by number, the oldest first.
    reads: BTreeMap<u64, Read>,
    /// The announced parts of each bucket. A fast hash suffices: only this client chooses the keys,
    /// so an attacker cannot cause collisions.
    pieces: HashMap<(TreeId, BucketId), Vec<AnnouncedPart>>,
    /// Bytes of the answers to all requests.
    bytes: usize,
    bytes_max: usize,
    /// The number of the newest request from which a piece was read.
    last_read: u64,
    /// Requests whose answers are no longer needed.
    useless: Vec<u64>,
}

/// A request for announced pieces, and its answer once the store has taken it.
#[derive(Default)]
struct Read {
    /// The buckets of the requested pieces.
    buckets: Vec<(TreeId, BucketId)>,
    /// The number of requested pieces that were not dropped yet.
    held: usize,
    bytes: usize,
    answer: Option<Bytes>,
}

/// A part of a bucket that was announced and not dropped yet.
struct AnnouncedPart {
    part: Part,
    /// The number of announcements of the part that no read has used yet.
    readers: usize,
    number: u64,
    start: usize,
}

/// A piece within the answer to a request.
pub(crate) struct PrefetchedPiece<'a> {
    pub(crate) number: u64,
    pub(crate) answer: &'a Bytes,
    pub(crate) start: usize,
}

impl Prefetched {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            reads: BTreeMap::new(),
            pieces: HashMap::new(),
            bytes: 0,
            bytes_max,
            last_read: 0,
            useless: Vec::new(),
        }
    }

    /// Announces a piece. Returns whether the caller must request the piece as a part of request
    /// `number`, because no earlier announcement of it is held.
    pub(crate) fn announce(&mut self, number: u64, piece: &Piece, bytes: usize) -> bool {
        if let Some(held) = self.held_mut(piece) {
            held.readers += 1;
            return false;
        }
        let bucket = (piece.tree, piece.bucket);
        let read = self.reads.entry(number).or_default();
        let held = AnnouncedPart { part: piece.part, readers: 1, number, start: read.bytes };
        self.pieces.entry(bucket).or_default().push(held);
        read.buckets.push(bucket);
        read.held += 1;
        read.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// Adds a piece that was not announced, but that probably will be. Returns whether the caller
    /// must request the piece as a part of request `number`. The first read of the piece drops it.
    pub(crate) fn add_unannounced(&mut self, number: u64, piece: &Piece, bytes: usize) -> bool {
        let is_new = self.announce(number, piece, bytes);
        if let Some(held) = self.held_mut(piece) {
            held.readers -= 1;
        }
        is_new
    }

    /// Drops old requests until the latest request fits, and returns whether it fits. Drops only
    /// requests that are older than the newest request from which a piece was read, because the
    /// remaining pieces of older requests are unlikely to be read. Announced pieces are usually
    /// read in order, so newer requests stay.
    pub(crate) fn make_room(&mut self) -> bool {
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.reads.keys().next().copied()
            && oldest < self.last_read
        {
            self.forget_read(oldest);
        }
        self.bytes <= self.bytes_max
    }

    /// The number of the request that contains an announced piece; `None` if the piece is not held.
    pub(crate) fn request(&self, piece: &Piece) -> Option<u64> {
        self.held(piece).map(|held| held.number)
    }

    /// Whether the store has not taken the answer to a request yet.
    pub(crate) fn lacks_answer(&self, number: u64) -> bool {
        self.reads.get(&number).is_some_and(|read| read.answer.is_none())
    }

    /// Stores the answer to request `number`.
    pub(crate) fn answered(&mut self, number: u64, answer: Bytes) {
        self.reads.entry(number).and_modify(|read| read.answer = Some(answer));
    }

    /// Finds a piece in the answers taken so far; `None` if it is in none of them.
    pub(crate) fn find(&self, piece: &Piece) -> Option<PrefetchedPiece<'_>> {
        let AnnouncedPart { number, start, .. } = *self.held(piece)?;
        let answer = self.reads.get(&number)?.answer.as_ref()?;
        Some(PrefetchedPiece { number, answer, start })
    }

    /// Records that a piece was read.
    pub(crate) fn was_read(&mut self, piece: &Piece) {
        let Some(held) = self.held_mut(piece) else { return };
        held.readers = held.readers.saturating_sub(1);
        let (readers, number) = (held.readers, held.number);
        self.last_read = self.last_read.max(number);
        if readers == 0 {
            self.release((piece.tree, piece.bucket), |held| held.part == piece.part);
        }
    }

    /// Records that the bucket of a piece will be written. Drops the bucket's announced parts,
    /// because they become stale.
    pub(crate) fn is_written(&mut self, piece: &Piece) {
        self.release((piece.tree, piece.bucket), |_| true);
    }

    /// Drops all pieces of a request.
    pub(crate) fn forget_read(&mut self, number: u64) {
        let buckets = self.reads.get_mut(&number).map(|read| mem::take(&mut read.buckets));
        for bucket in buckets.unwrap_or_default() {
            self.release(bucket, |held| held.number == number);
        }
    }

    /// Returns the requests that have lost all their pieces since the last call, so that the store
    /// can discard their answers.
    pub(crate) fn take_useless(&mut self) -> Vec<u64> {
        mem::take(&mut self.useless)
    }

    fn held(&self, piece: &Piece) -> Option<&AnnouncedPart> {
        let held = self.pieces.get(&(piece.tree, piece.bucket))?;
        held.iter().find(|held| held.part == piece.part)
    }

    fn held_mut(&mut self, piece: &Piece) -> Option<&mut AnnouncedPart> {
        let held = self.pieces.get_mut(&(piece.tree, piece.bucket))?;
        held.iter_mut().find(|held| held.part == piece.part)
    }

    /// Drops the parts of a bucket that `is_released` selects, and each request that then has no
    /// pieces left.
    fn release(
        &mut self,
        bucket: (TreeId, BucketId),
        is_released: impl Fn(&AnnouncedPart) -> bool,
    ) {
        let Some(parts) = self.pieces.get_mut(&bucket) else { return };
        for held in parts.extract_if(.., |held| is_released(held)) {
            let Some(read) = self.reads.get_mut(&held.number) else { continue };
            read.held -= 1;
            if read.held == 0 {
                self.bytes -= read.bytes;
                self.reads.remove(&held.number);
                self.useless.push(held.number);
            }
        }
        if parts.is_empty() {
            self.pieces.remove(&bucket);
        }
    }
}

impl<'a> PrefetchedPiece<'a> {
    /// The first `bytes` bytes of the piece; `None` if the answer is too short.
    pub(crate) fn get(&self, bytes: usize) -> Option<&'a [u8]> {
        self.answer.get(self.start..)?.get(..bytes)
    }

    /// The first `bytes` bytes of the piece.
    pub(crate) fn bytes(&self, bytes: usize) -> &'a [u8] {
        &self.answer[self.start..][..bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(index: u64, part: Part) -> Piece {
        Piece { tree: TreeId(0), bucket: BucketId::new(5, index), part }
    }

    fn whole(index: u64) -> Piece {
        piece(index, Part::Whole)
    }

    fn announce(prefetched: &mut Prefetched, number: u64, pieces: &[(Piece, usize)]) {
        for (piece, bytes) in pieces {
            assert!(prefetched.announce(number, piece, *bytes), "the piece is already held");
        }
    }

    fn found<'a>(prefetched: &'a Prefetched, piece: &Piece, bytes: usize) -> Option<&'a [u8]> {
        prefetched.find(piece).map(|found| found.bytes(bytes))
    }

    #[test]
    fn a_piece_is_held_until_every_announcement_was_read() {
        let mut prefetched = Prefetched::new(100);
        announce(&mut prefetched, 1, &[(whole(0), 4), (piece(0, Part::Header), 2), (whole(1), 3)]);
        assert!(!prefetched.announce(2, &whole(0), 4));
        assert!(prefetched.make_room() && prefetched.lacks_answer(1));
        assert_eq!(found(&prefetched, &whole(0), 4), None);
        prefetched.answered(1, vec![0, 1, 2, 3, 4, 5, 6, 7, 8].into());
        assert!(!prefetched.lacks_answer(1));
        for _ in 0..2 {
            assert_eq!(found(&prefetched, &whole(0), 4), Some(&[0, 1, 2, 3][..]));
            prefetched.was_read(&whole(0));
        }
        assert_eq!(found(&prefetched, &whole(0), 4), None);
        assert_eq!(found(&prefetched, &piece(0, Part::Header), 2), Some(&[4, 5][..]));
        assert_eq!(found(&prefetched, &whole(1), 3), Some(&[6, 7, 8][..]));
        prefetched.is_written(&whole(1));
        assert!(prefetched.take_useless().is_empty());
        prefetched.is_written(&piece(0, Part::Slot(3)));
        assert_eq!(prefetched.take_useless(), [1]);
        assert_eq!((prefetched.bytes, prefetched.pieces.len(), prefetched.reads.len()), (0, 0, 0));
    }

    #[test]
    fn only_requests_that_are_unlikely_to_be_read_are_dropped() {
        let mut prefetched = Prefetched::new(100);
        let requests =
            |prefetched: &Prefetched| [1, 2, 3, 4, 5].map(|i| prefetched.request(&whole(i)));
        announce(&mut prefetched, 1, &[(whole(1), 30), (whole(2), 30)]);
        announce(&mut prefetched, 2, &[(whole(3), 20), (whole(4), 20)]);
        assert!(prefetched.make_room());
        announce(&mut prefetched, 3, &[(whole(5), 50)]);
        assert!(!prefetched.make_room());
        prefetched.forget_read(3);
        assert_eq!(prefetched.take_useless(), [3]);
        assert_eq!(requests(&prefetched), [Some(1), Some(1), Some(2), Some(2), None]);
        // One piece of the first request was not read and will not be.
        prefetched.was_read(&whole(1));
        prefetched.was_read(&whole(3));
        announce(&mut prefetched, 4, &[(whole(5), 50)]);
        assert!(prefetched.make_room());
        assert_eq!(prefetched.take_useless(), [1]);
        assert_eq!(requests(&prefetched), [None, None, None, Some(2), Some(4)]);
        announce(&mut prefetched, 5, &[(whole(6), 101)]);
        assert!(!prefetched.make_room());
        [2, 4, 5].into_iter().for_each(|number| prefetched.forget_read(number));
        assert_eq!((prefetched.bytes, prefetched.pieces.len(), prefetched.reads.len()), (0, 0, 0));
    }
}
