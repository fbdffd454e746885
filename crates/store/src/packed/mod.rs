//! A store that packs buckets into objects, which are created once and never overwritten.
//!
//! It suits object stores such as S3, and anything else that implements
//! [`Objects`]: whatever is durable there lies in objects of about a mebibyte, and a bucket is read
//! with one ranged get. ADR 21 of the repository explains the design, `docs/formats/objects.md`
//! specifies the bytes.
//!
//! - **Streams.** The buckets that one write trip names at the same level number and index, in
//!   different trees, form an *entry*; entries with the same trees form a *stream*. Evictions write
//!   each stream in order.
//! - **Chunks.** An object holds consecutive entries of a stream. The latest two chunks of each
//!   stream are in memory: the one being filled, and the one before it.
//! - **Heads.** A flush waits for all chunks, writes the entries of incomplete chunks into one
//!   object (the *tail*), and creates a numbered head with the index of all buckets.
//! - **Fencing.** Opening to write creates a *fence* under the next number of a head, so the next
//!   flush of an older writer finds its number taken.
//!
//! What storage sees is a function of the calls of the store, of its constants, and of failures of
//! the engine: which chunks, tails and heads exist follows from the number of writes and flushes,
//! and a get has the position of a requested piece. Objects are deleted only after flushes.
//!
//! | module | contents |
//! |---|---|
//! | `streams` | columns, streams, and the position of a bucket in an entry |
//! | `index` | the slot of each bucket |
//! | `chunk` | the bytes of chunks and tails |
//! | `head` | the bytes of heads |
//! | `small` | small trees, which are kept in heads |
//! | `creation` | creates an object and finds out what exists after a lost answer |
//! | `writing` | entries on their way into chunks, and flushes |
//! | `reading` | gets of buckets |
//! | `ahead` | recognizes trips that read streams in order |
//! | `opening` | creation, opening, adoption of chunks that no head names, removal |
//! | `probe` | tests whether a service keeps the contract of [`Objects`] |

mod ahead;
mod chunk;
mod creation;
mod head;
mod index;
mod opening;
mod probe;
mod reading;
mod small;
mod streams;
mod writing;

use std::collections::BTreeMap;

use bytes::Bytes;
use foldhash::HashMap;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::StoreFailure;
use crate::container::Container;
use crate::error::OpenError;
use crate::file_layout;
use crate::objects::{ObjectName, Objects, Ticket};
use crate::prefetched::{PREFETCHED_BYTES_MAX, Prefetched};
use ahead::Runs;
use chunk::{Entries, StoreName};
use head::{Geometry, PastSession, SessionName, TailRef};
use index::{Index, Slot};
use opening::OpeningState;
use small::SmallTrees;
use streams::{Bucket, Streams};
use writing::StreamWriter;

pub use opening::{PackedMode, Remains};
pub use probe::probe;

/// Options of a store over objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedOptions {
    /// Maximum bytes of the entries of a chunk; a longer entry has a chunk of its own. Only
    /// creation uses it: a store keeps its size of chunks. Longer chunks cost fewer requests and
    /// more memory.
    pub chunk_bytes: usize,
    /// Maximum bytes of all trees that are kept in heads. Only creation uses it.
    pub small_bytes_max: usize,
    /// Maximum bytes of chunks that are kept in memory until the engine has made them durable, for
    /// an engine that may lose what it reported as created; `None` for an engine that never does.
    /// The store flushes by itself before it exceeds them.
    pub unsynced_bytes_max: Option<usize>,
    /// Whether the engine reports objects as created before they are durable. An opening then
    /// creates adopted chunks again, so that its first sync covers them.
    pub has_late_syncs: bool,
}

impl Default for PackedOptions {
    fn default() -> Self {
        Self {
            chunk_bytes: 1 << 20,
            small_bytes_max: 256 << 10,
            unsynced_bytes_max: None,
            has_late_syncs: false,
        }
    }
}

impl PackedOptions {
    /// Sets [`chunk_bytes`](Self::chunk_bytes).
    #[must_use]
    pub const fn with_chunk_bytes(self, chunk_bytes: usize) -> Self {
        Self { chunk_bytes, ..self }
    }

    /// Sets [`small_bytes_max`](Self::small_bytes_max).
    #[must_use]
    pub const fn with_small_bytes_max(self, small_bytes_max: usize) -> Self {
        Self { small_bytes_max, ..self }
    }

    /// Sets [`has_late_syncs`](Self::has_late_syncs).
    #[must_use]
    pub const fn with_late_syncs(self, has_late_syncs: bool) -> Self {
        Self { has_late_syncs, ..self }
    }

    /// Sets [`unsynced_bytes_max`](Self::unsynced_bytes_max).
    #[must_use]
    pub const fn with_unsynced_bytes_max(self, unsynced_bytes_max: Option<usize>) -> Self {
        Self { unsynced_bytes_max, ..self }
    }
}

/// Which sessions wrote a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The random name of the store.
    store: StoreName,
    /// The session whose state was read at opening; `None` after creation.
    previous: Option<u64>,
    /// The session of this opening; `None` if the store is open only for reading.
    pub session: Option<u64>,
    /// Whether the last session created chunks after its last head, which were adopted.
    pub has_adopted: bool,
}

impl Lineage {
    /// A text that names the store and the session before this opening.
    pub(crate) fn before(&self) -> Option<String> {
        self.previous.map(|session| self.text(session))
    }

    /// A text that names the store and the session of this opening.
    pub(crate) fn now(&self) -> Option<String> {
        self.session.map(|session| self.text(session))
    }

    fn text(&self, session: u64) -> String {
        let store: String = self.store.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{store} {session:016x}\n")
    }
}

/// Untrusted storage in objects that are written once.
///
/// Only flushed writes are durable. After a failed write or flush, all calls fail: the state of the
/// service is then unknown, and the caller must reopen the store.
pub struct PackedStore {
    objects: Box<dyn Objects>,
    store: StoreName,
    geometry: Geometry,
    streams: Streams,
    index: Index,
    small: SmallTrees,
    /// The number of the newest head that this store has written or read.
    head: u64,
    /// Heads after `head` that are void.
    void_heads: Vec<u64>,
    /// `None` if the store is open only for reading.
    writer: Option<Writer>,
    /// The parts of the state that was read which only an opening needs.
    state: Option<OpeningState>,
    /// Entries of incomplete chunks of the state that was read, if it is open only for reading:
    /// by session, stream and number of the chunk.
    tail_entries: HashMap<(u64, u16, u64), Entries>,
    /// The session whose state was read; `None` after creation.
    previous_session: Option<u64>,
    /// Whether chunks were adopted at opening.
    has_adopted: bool,
    prefetched: Prefetched,
    runs: Runs,
    /// The tickets of the gets for prefetched pieces, by their number in `prefetched`.
    tickets: BTreeMap<u64, Ticket>,
    next_get: u64,
    buffer: Vec<u8>,
    spans: Vec<Span>,
    failure: StoreFailure,
}

/// The state of a store that is open to write.
struct Writer {
    session: u64,
    session_name: SessionName,
    streams: Vec<StreamWriter>,
    next_tail: u64,
    tail: Option<TailRef>,
    /// Whether anything was written since the last head.
    is_dirty: bool,
    /// Bytes of complete chunks since the last head.
    new_chunk_bytes: usize,
    unsynced_bytes_max: Option<usize>,
    /// Objects created since the last sync, with their contents, if the engine may lose them.
    unsynced: Vec<(ObjectName, Vec<Bytes>)>,
    past_sessions: Vec<PastSession>,
    /// The number of the newest full head.
    full_head: Option<u64>,
    /// The numbers of older full heads that may exist, in ascending order. Fences are not listed,
    /// because they are never deleted.
    older_heads: Vec<u64>,
    /// Objects that became unneeded since the last head.
    unneeded: Vec<ObjectName>,
    /// Objects that the last head does not need, and whose deletion waits for the next one.
    unneeded_before: Vec<ObjectName>,
    /// The number of full heads that this session has created.
    heads: u64,
}

impl PackedStore {
    /// The shapes of all trees, `TreeId(0)` first.
    pub fn shapes(&self) -> &[TreeShape] {
        self.streams.shapes()
    }

    /// Which sessions wrote the store.
    pub fn lineage(&self) -> Lineage {
        Lineage {
            store: self.store,
            previous: self.previous_session,
            session: self.writer.as_ref().map(|writer| writer.session),
            has_adopted: self.has_adopted,
        }
    }

    /// Whether the buckets of a tree are kept in heads and in memory.
    pub(crate) fn is_small(&self, tree: u16) -> bool {
        self.small.contains(tree)
    }

    /// The number of runs of the index. Each takes 40 bytes of a head.
    pub fn run_count(&self) -> usize {
        self.index.run_count()
    }

    /// Bytes of all buckets that were written, each counted once.
    pub fn live_bytes(&self) -> u64 {
        let columns = self.streams.columns().iter().enumerate();
        let bytes = columns.map(|(column, shape)| {
            let places: u64 = self.index.runs(column).map(|(_, run)| run.places).sum();
            places.saturating_mul(shape.bucket_bytes as u64)
        });
        bytes.sum::<u64>() + self.small.bytes().len() as u64
    }

    /// Bytes of storage for trees of these shapes once they are full. Trailers of chunks and heads
    /// take less than a hundredth of the buckets. Objects that wait for their deletion come on top.
    ///
    /// # Errors
    /// If no store can hold trees of these shapes.
    pub(crate) fn bytes_needed(
        shapes: &[TreeShape],
        options: &PackedOptions,
    ) -> Result<u64, OpenError> {
        Container::new(shapes)?;
        let trees: u128 = shapes.iter().map(TreeShape::tree_bytes).sum();
        let bytes = u64::try_from(trees + trees / 100).unwrap_or(u64::MAX);
        Ok(bytes.saturating_add(4 * options.chunk_bytes as u64))
    }

    /// Maximum client memory, in bytes, that an open store needs: two chunks for each level that is
    /// written on its own, announced pieces, and unsynced chunks.
    pub fn client_bytes_max(shapes: &[TreeShape], options: &PackedOptions) -> u64 {
        let levels = shapes.iter().map(TreeShape::level_count).max().unwrap_or(0) as u64;
        let largest = shapes.iter().flat_map(TreeShape::levels).map(|level| level.bucket_bytes);
        let chunk = largest.max().unwrap_or(0).max(options.chunk_bytes as u64);
        let unsynced = options.unsynced_bytes_max.unwrap_or(0) as u64;
        levels.saturating_mul(2 * chunk) + PREFETCHED_BYTES_MAX as u64 + unsynced
    }

    /// The buckets of a trip.
    fn buckets(&self, pieces: &[Piece]) -> Result<Vec<Bucket>, StoreError> {
        let bucket = |piece: &Piece| {
            self.streams.bucket(piece).ok_or_else(|| {
                match self.shape(piece.tree).and_then(|shape| shape.span(piece)) {
                    Some(_) => StoreError::new(
                        StoreErrorKind::Refused,
                        "this store reads and writes only whole buckets",
                    ),
                    None => file_layout::absent(piece),
                }
            })
        };
        pieces.iter().map(bucket).collect()
    }

    /// The bytes of a bucket in slot `slot` if they are in memory.
    fn in_memory(&self, column: usize, slot: Slot) -> Option<&Bytes> {
        let stream = self.streams.get(slot.stream)?;
        let (position, _) = stream.find(column)?;
        let number = slot.number / stream.slots_per_chunk;
        let entry = (slot.number % stream.slots_per_chunk) as usize;
        let entries = match &self.writer {
            Some(writer) if writer.session == slot.session => {
                writer.streams.get(usize::from(slot.stream))?.entries(number)
            }
            _ => self.tail_entries.get(&(slot.session, slot.stream, number)),
        };
        entries?.bucket(entry, position, stream.columns.len())
    }
}

impl BucketStore for PackedStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.shapes().get(usize::from(tree.0))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        if self.failure.check().is_ok() {
            self.announce(pieces);
        }
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.failure.check()?;
        let buckets = self.buckets(pieces)?;
        if pieces.iter().any(|piece| self.small.contains(piece.tree.0)) {
            self.look_for_newer_head()?;
        }
        self.read_buckets(pieces, &buckets)?;
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.failure.check()?;
        if self.writer.is_none() {
            let message = "the volume is open to read only; open it to write";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let buckets = self.buckets(pieces)?;
        self.write_buckets(pieces, &buckets, fill).map_err(|error| self.failure.record(error))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.failure.check()?;
        self.write_head().map_err(|error| self.failure.record(error))
    }
}
