//! The store: buckets on disks, and the handle to them.

use std::io;

use oblivio_core::geometry::BucketId;
use oblivio_core::layout::{Layout, LayoutKind};
use oblivio_core::seal::Blanks;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Part, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::view::Operation;
use oblivio_core::{StoreError, StoreErrorKind};

use super::fault::{OpKind, Verdict};
use super::world::{State, World};

/// Alignment of buckets in bytes. It is small, so that most buckets cross sector boundaries.
const BUCKET_ALIGN_BYTES: u64 = 8;

/// Maximum bytes of a store. Tests are small.
const STORE_BYTES_MAX: u64 = 1 << 30;

/// The location of each piece on the disks.
pub(super) struct Places {
    trees: Vec<(TreeShape, Layout, u64)>,
    /// Size of each disk in bytes. A disk has space for all levels; levels on other disks stay
    /// unwritten.
    pub(super) bytes: u64,
    disks: usize,
}

/// The location of a piece.
#[derive(Clone, Copy)]
pub(super) struct PieceLocation {
    pub(super) disk: usize,
    pub(super) span: Span,
}

impl Places {
    /// Distributes whole levels over the disks in turn, as a striped store does over its members.
    ///
    /// # Panics
    /// If the trees cannot be laid out, or are too large for a test.
    pub(super) fn new(shapes: &[TreeShape], disks: usize) -> Self {
        let mut bytes = 0;
        let mut place = |shape: &TreeShape| {
            let layout = Layout::new(shape, LayoutKind::Heap, BUCKET_ALIGN_BYTES)
                .expect("the shapes can be laid out");
            let base = bytes;
            bytes += layout.bytes();
            assert!(bytes <= STORE_BYTES_MAX, "a world has at most {STORE_BYTES_MAX} bytes");
            (shape.clone(), layout, base)
        };
        let trees = shapes.iter().map(&mut place).collect();
        Self { trees, bytes, disks }
    }

    pub(super) fn find(&self, piece: &Piece) -> Option<PieceLocation> {
        let tree = usize::from(piece.tree.0);
        let (shape, layout, base) = self.trees.get(tree)?;
        let (offset, bytes) = shape.level_of(piece.bucket)?.part(piece.part)?;
        let start = base + layout.offset(piece.bucket) + offset;
        let span = Span { start: start as usize, bytes: bytes as usize };
        Some(PieceLocation { disk: (tree + usize::from(piece.bucket.level())) % self.disks, span })
    }

    /// The location of a bucket.
    ///
    /// # Panics
    /// If the bucket does not exist.
    pub(super) fn bucket(&self, tree: TreeId, bucket: BucketId) -> PieceLocation {
        let piece = Piece { tree, bucket, part: Part::Whole };
        self.find(&piece).unwrap_or_else(|| panic!("{piece:?} does not exist in this world"))
    }
}

/// The store of a [`World`], valid for one run.
///
/// Calls for pieces that do not exist are refused, and do not count as operations.
pub struct CrashStore {
    pub(super) world: World,
    pub(super) run: u64,
    buffer: Vec<u8>,
    /// The location of each piece of the latest call in the buffer.
    spans: Vec<Span>,
    /// The location of each piece of the latest call on the disks.
    places: Vec<PieceLocation>,
}

impl CrashStore {
    pub(super) fn new(world: World, run: u64) -> Self {
        Self { world, run, buffer: Vec::new(), spans: Vec::new(), places: Vec::new() }
    }

    /// Locates `pieces`, and resizes the buffer for them.
    fn locate(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        self.spans.clear();
        self.places.clear();
        let mut start = 0;
        for piece in pieces {
            let place = self.world.places.find(piece).ok_or_else(|| absent(piece))?;
            self.spans.push(Span { start, bytes: place.span.bytes });
            self.places.push(place);
            start += place.span.bytes;
        }
        self.buffer.resize(start, 0);
        Ok(())
    }
}

impl CrashStore {
    /// The world of this store.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The number of the run of the store's machine.
    pub fn run(&self) -> u64 {
        self.run
    }
}

impl BucketStore for CrashStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.world.places.trees.get(usize::from(tree.0)).map(|(shape, ..)| shape)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    /// Records the prefetch in the view. It does not count as an operation, because it cannot fail.
    fn prefetch(&mut self, pieces: &[Piece]) {
        let mut state = self.world.state();
        if state.is_store_running(self.run) {
            state.view.call(Operation::Prefetch, pieces.iter().map(|piece| (*piece, 0)));
        }
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.locate(pieces)?;
        let mut state = self.world.state();
        let verdict = state.begin(self.run, OpKind::StoreRead).map_err(failed)?;
        let moved = |span: &Span| if verdict == Verdict::Go { span.bytes } else { 0 };
        let seen = pieces.iter().copied().zip(self.spans.iter().map(moved));
        state.view.call(Operation::Read, seen);
        state.end_store_operation();
        verdict.answer().map_err(failed)?;
        for (span, place) in self.spans.iter().zip(&self.places) {
            self.buffer[range(span)]
                .copy_from_slice(&state.disks[place.disk].bytes()[range(&place.span)]);
        }
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.locate(pieces)?;
        self.world.state().check_store_running(self.run).map_err(failed)?;
        fill(Blanks::new(&mut self.buffer, &self.spans));
        let mut state = self.world.state();
        let seen = pieces.iter().copied().zip(self.spans.iter().map(|span| span.bytes));
        state.view.call(Operation::Write, seen);
        let has_a_piece = |disk: &usize| self.places.iter().any(|place| place.disk == *disk);
        // A trip without pieces also counts, as a trip to the first disk.
        let of_nothing = self.places.is_empty().then_some(0);
        let disks: Vec<_> = (0..state.disks.len()).filter(has_a_piece).chain(of_nothing).collect();
        state.on_each_disk(self.run, OpKind::StoreWrite, disks, |state, disk, verdict| {
            let State { disks, plan, .. } = state;
            let pieces = self.spans.iter().zip(&self.places);
            for (span, place) in pieces.filter(|(_, place)| place.disk == disk) {
                let (start, bytes) = (place.span.start, &self.buffer[range(span)]);
                match verdict {
                    Verdict::Go => disks[disk].write(start, bytes),
                    Verdict::Fail(_) | Verdict::Crash => {
                        disks[disk].write_sectors(start, bytes, &mut plan.coins);
                    }
                }
            }
            verdict.answer()
        })
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let mut state = self.world.state();
        state.check_store_running(self.run).map_err(failed)?;
        state.view.flush();
        let all = (0..state.disks.len()).collect();
        state.on_each_disk(self.run, OpKind::StoreFlush, all, |state, disk, verdict| {
            let State { disks, plan, failed_sync, .. } = state;
            disks[disk].answer_sync(verdict, *failed_sync, &mut plan.coins)
        })
    }
}

impl State {
    /// Calls `act` for several disks that work at once. A failure on one disk does not stop the
    /// others. After a crash on one disk, the effect on later disks is random. Returns the first
    /// error.
    fn on_each_disk(
        &mut self,
        run: u64,
        kind: OpKind,
        disks: Vec<usize>,
        mut act: impl FnMut(&mut Self, usize, Verdict) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for disk in disks {
            let verdict = match self.begin(run, kind) {
                Ok(verdict) => verdict,
                Err(error) if outcome.is_ok() => return Err(failed(error)),
                Err(_) => Verdict::Crash,
            };
            outcome = outcome.and(act(self, disk, verdict));
        }
        self.end_store_operation();
        outcome.map_err(failed)
    }
}

pub(super) fn range(span: &Span) -> std::ops::Range<usize> {
    span.start..span.start + span.bytes
}

fn failed(cause: io::Error) -> StoreError {
    StoreError::caused_by(cause.kind().into(), cause.to_string(), cause)
}

fn absent(piece: &Piece) -> StoreError {
    StoreError::new(StoreErrorKind::Refused, format!("{piece:?} does not exist in this store"))
}
