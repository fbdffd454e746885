//! A store striped over several stores.

use std::mem;
use std::ops::BitAnd;
use std::sync::Arc;

use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Piece, SealedTrip, Span, TreeId, TreeShape, shapes_of,
};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::error::OpenError;
use crate::failure::StoreFailure;
use crate::file_layout;
use crate::opener::BoxedStore;
use crate::striping::{self, member_of};
use crate::worker::{Act, TripShare, Worker};

/// A store whose levels are distributed over its members (rORAM, section VIII-A: parallel storage).
///
/// Each member works on a separate thread, so that all members seek at the same time. A trip goes
/// to the members that hold its pieces. Which members these are depends only on the pieces, which
/// are public.
///
/// All calls fail after a write or flush has failed on a member, because the state of the members
/// is then unknown. The caller must then reopen the members. After a failed read, other reads can
/// succeed.
pub struct StripedStore {
    members: Vec<Member>,
    shapes: Vec<TreeShape>,
    /// The capabilities that all members have.
    capabilities: Capabilities,
    is_read_only: bool,
    failure: StoreFailure,
    /// The bytes of the latest read, member by member, and the spans of the pieces in these bytes.
    buffer: Vec<u8>,
    spans: Vec<Span>,
    /// The lengths of the pieces of the current trip, in bytes.
    lengths: Vec<usize>,
    /// The sealed bytes of a write, shared with the threads while they write.
    sealed: Arc<SealedTrip>,
}

struct Member {
    /// The member's name in messages.
    name: String,
    worker: Worker,
}

impl StripedStore {
    /// Creates a store over members whose shapes come from [`striping::distribute_levels`]. The
    /// members are in order, each with its name for messages.
    ///
    /// # Errors
    /// If the stores are not the members of one stripe in order, or a thread cannot be started.
    pub fn new(members: Vec<(String, BoxedStore)>, is_read_only: bool) -> Result<Self, OpenError> {
        let (names, stores): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let found: Vec<_> = stores.iter().map(|store| shapes_of(&**store)).collect();
        let shapes = striping::gather(&found, &names)?;
        let capabilities = stores.iter().map(|store| store.capabilities());
        let capabilities = capabilities.reduce(Capabilities::bitand).unwrap_or_default();
        let start = |(name, store)| {
            let worker = Worker::start(store)
                .map_err(|cause| OpenError::io("start the thread of a member", cause))?;
            Ok::<_, OpenError>(Member { name, worker })
        };
        Ok(Self {
            members: names.into_iter().zip(stores).map(start).collect::<Result<_, _>>()?,
            shapes,
            capabilities,
            is_read_only,
            failure: StoreFailure::default(),
            buffer: Vec::new(),
            spans: Vec::new(),
            lengths: Vec::new(),
            sealed: Arc::default(),
        })
    }

    /// The length of a piece in bytes; `None` if the store has no such piece.
    fn length(&self, piece: &Piece) -> Option<usize> {
        let level = self.shape(piece.tree)?.level_of(piece.bucket)?;
        level.part(piece.part).map(|(_, bytes)| bytes as usize)
    }

    /// The member that holds a piece.
    fn member(&self, piece: &Piece) -> usize {
        let level = usize::from(piece.bucket.level());
        member_of(usize::from(piece.tree.0), level, self.members.len())
    }

    /// Divides a trip into a share for each member.
    fn share_out(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        self.members.iter_mut().for_each(|member| member.worker.share.clear());
        self.lengths.clear();
        for (i, piece) in pieces.iter().enumerate() {
            self.lengths.push(self.length(piece).ok_or_else(|| file_layout::absent(piece))?);
            if !self.capabilities.allow(piece) {
                let message = "a member of the stripe can read and write only whole buckets";
                return Err(StoreError::new(StoreErrorKind::Refused, message));
            }
            let member = self.member(piece);
            let share = &mut self.members[member].worker.share;
            share.pieces.push(*piece);
            share.which.push(i);
        }
        Ok(())
    }

    /// Starts an operation on each member that has a share of the trip.
    fn begin(&mut self, act: impl Fn() -> Act) {
        let workers = self.members.iter_mut().map(|member| &mut member.worker);
        let sharers = workers.filter(|worker| !worker.share.pieces.is_empty());
        sharers.for_each(|worker| worker.begin(act()));
    }

    /// Waits for all members that were started. Returns the first error, in the order of the
    /// members.
    fn finish(&mut self) -> Result<(), StoreError> {
        let outcomes = self.members.iter_mut().map(|Member { name, worker }| {
            worker.finish().map_err(|cause| {
                StoreError::caused_by(cause.kind(), format!("{name}: {cause}"), cause)
            })
        });
        outcomes.fold(Ok(()), Result::and)
    }
}

impl BucketStore for StripedStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.shapes.get(usize::from(tree.0))
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Passes the announcement to the members that have the pieces, and does not wait for them.
    fn prefetch(&mut self, pieces: &[Piece]) {
        let mut shares = vec![Vec::new(); self.members.len()];
        let can_be_read =
            |piece: &&Piece| self.capabilities.allow(piece) && self.length(piece).is_some();
        for piece in pieces.iter().filter(can_be_read) {
            shares[self.member(piece)].push(*piece);
        }
        let shares = self.members.iter().zip(shares).filter(|(_, share)| !share.is_empty());
        shares.for_each(|(member, share)| member.worker.prefetch(share));
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.failure.check()?;
        self.share_out(pieces)?;
        self.begin(|| Act::Read);
        self.finish()?;
        self.buffer.clear();
        // Spans of pieces that a member did not return stay empty.
        self.spans.clear();
        self.spans.resize(pieces.len(), Span { start: 0, bytes: 0 });
        let Self { members, buffer, spans, .. } = self;
        let shares = members.iter_mut().map(|member| &mut member.worker.share);
        let shares = shares.filter(|share| !share.pieces.is_empty());
        for TripShare { which, bytes, lengths, .. } in shares {
            let mut start = buffer.len();
            for (i, length) in which.iter().zip(&*lengths) {
                spans[*i] = Span { start, bytes: *length };
                start += length;
            }
            if buffer.is_empty() {
                mem::swap(buffer, bytes);
            } else {
                buffer.extend_from_slice(bytes);
            }
        }
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.failure.check()?;
        if self.is_read_only {
            let message = "the store is open to read only; open it to write";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        self.share_out(pieces)?;
        // Reuses the memory if all threads have dropped the previous trip.
        let mut sealed = Arc::into_inner(mem::take(&mut self.sealed)).unwrap_or_default();
        sealed.seal(self.lengths.iter().copied(), fill);
        let sealed = Arc::new(sealed);
        self.begin(|| Act::Write(sealed.clone()));
        let outcome = self.finish();
        self.sealed = sealed;
        outcome.map_err(|error| self.failure.record(error))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.failure.check()?;
        self.members.iter_mut().for_each(|member| member.worker.begin(Act::Flush));
        self.finish().map_err(|error| self.failure.record(error))
    }
}
