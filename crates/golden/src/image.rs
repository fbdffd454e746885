//! The controller's memory, and the engine's store over it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use oblivio_core::store::{
    Blanks, BucketStore, Capabilities, Fill, Frames, LevelShape, Part, Piece, Span, TreeId,
    TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::layout::ImageLayout;

/// Contents of the controller's memory. Buckets that were never written read as zeros and take no
/// space.
#[derive(Clone, Debug)]
pub struct Image {
    layout: ImageLayout,
    beat_bytes: usize,
    buckets: HashMap<u64, Box<[u8]>>,
}

impl Image {
    /// Creates a memory of zeros.
    pub fn new(layout: ImageLayout, beat_bytes: usize) -> Self {
        Self { layout, beat_bytes, buckets: HashMap::new() }
    }

    /// The layout of buckets in the memory.
    pub fn layout(&self) -> &ImageLayout {
        &self.layout
    }

    /// Addresses of all beats of written buckets, in ascending order.
    pub fn addresses(&self) -> Vec<u64> {
        let mut places: Vec<_> = self.buckets.keys().copied().collect();
        places.sort_unstable();
        let beats = self.layout.bucket_beats();
        places.into_iter().flat_map(|place| place * beats..(place + 1) * beats).collect()
    }

    /// The beat at `address`. `None` if its bucket was never written.
    pub fn beat(&self, address: u64) -> Option<&[u8]> {
        let bucket = self.buckets.get(&(address / self.layout.bucket_beats()))?;
        Some(&bucket[self.beat_range(address)])
    }

    /// Replaces the beat at `address`, which must be in the tree.
    pub fn put_beat(&mut self, address: u64, data: &[u8]) {
        let range = self.beat_range(address);
        self.bucket_mut(address / self.layout.bucket_beats())[range].copy_from_slice(data);
    }

    fn beat_range(&self, address: u64) -> std::ops::Range<usize> {
        let start = (address % self.layout.bucket_beats()) as usize * self.beat_bytes;
        start..start + self.beat_bytes
    }

    fn bucket(&self, place: u64) -> Option<&[u8]> {
        self.buckets.get(&place).map(|bucket| &**bucket)
    }

    fn bucket_mut(&mut self, place: u64) -> &mut [u8] {
        let bytes = self.layout.bucket_beats() as usize * self.beat_bytes;
        self.buckets.entry(place).or_insert_with(|| vec![0; bytes].into())
    }
}

/// A beat that the engine read or wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedBeat {
    /// The round trip to memory, counted from 0 within a command.
    pub trip: u32,
    /// Whether the beat was written, not read.
    pub is_write: bool,
    /// The address of the beat.
    pub address: u64,
    /// All bytes of the beat.
    pub data: Box<[u8]>,
    /// Number of leading bytes that have a strobe and so are written.
    pub strobed_bytes: usize,
}

/// The controller's memory, and the beats that the engine read from it or wrote to it since the
/// start of the trace.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) image: Image,
    is_traced: bool,
    beats: Vec<TracedBeat>,
    trips: u32,
}

impl Memory {
    pub(crate) fn new(image: Image) -> Self {
        Self { image, is_traced: false, beats: Vec::new(), trips: 0 }
    }

    /// Starts a trace, at round trip 0.
    pub(crate) fn start_trace(&mut self) {
        self.is_traced = true;
        self.trips = 0;
    }

    /// Ends the trace and returns its beats.
    pub(crate) fn take_trace(&mut self) -> Vec<TracedBeat> {
        self.is_traced = false;
        std::mem::take(&mut self.beats)
    }

    /// Adds the beats of the bucket at `place` to the trace, up to byte `bytes_end` of the bucket.
    fn trace(&mut self, is_write: bool, place: u64, bytes_end: usize) {
        if !self.is_traced {
            return;
        }
        let Self { image, beats, trips, .. } = self;
        let (bucket_beats, beat_bytes) = (image.layout.bucket_beats(), image.beat_bytes);
        let zeros = vec![0; if image.bucket(place).is_none() { bytes_end } else { 0 }];
        let bucket = image.bucket(place).unwrap_or(&zeros);
        for (beat, start) in (0..).zip((0..bytes_end).step_by(beat_bytes)) {
            beats.push(TracedBeat {
                trip: *trips,
                is_write,
                address: place * bucket_beats + beat,
                data: bucket[start..start + beat_bytes].into(),
                strobed_bytes: beat_bytes.min(bytes_end - start),
            });
        }
    }

    fn end_trip(&mut self) {
        self.trips += 1;
    }
}

/// The engine's [`BucketStore`] over a [`Memory`].
///
/// The engine's bucket has no gaps. In memory, its counter and tables are padded to one beat.
pub(crate) struct MemoryImageStore {
    shape: TreeShape,
    memory: Rc<RefCell<Memory>>,
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl MemoryImageStore {
    pub(crate) fn new(shape: TreeShape, memory: Rc<RefCell<Memory>>) -> Self {
        Self { shape, memory, buffer: Vec::new(), spans: Vec::new() }
    }

    /// Assigns a buffer range to each of `pieces`. Refuses parts outside of `parts`.
    fn lay_out(&mut self, pieces: &[Piece], parts: &[Part]) -> Result<(), StoreError> {
        self.spans.clear();
        let mut end = 0;
        for piece in pieces {
            let is_known = piece.tree == TreeId(0) && parts.contains(&piece.part);
            let span = self.shape.span(piece).filter(|_| is_known).ok_or_else(|| {
                let text = format!(
                    "the controller never moves {:?} of bucket {} alone",
                    piece.part, piece.bucket
                );
                StoreError::new(StoreErrorKind::Refused, text)
            })?;
            self.spans.push(Span { start: end, bytes: span.bytes });
            end += span.bytes;
        }
        self.buffer.resize(end, 0);
        Ok(())
    }
}

/// Number of bytes of a bucket's counter and tables, which share beat 0.
fn tables_bytes(shape: &TreeShape) -> usize {
    shape.levels()[0].slots_offset as usize
}

impl BucketStore for MemoryImageStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        (tree == TreeId(0)).then_some(&self.shape)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    fn prefetch(&mut self, _: &[Piece]) {}

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.lay_out(pieces, &[Part::Whole])?;
        let memory = &mut *self.memory.borrow_mut();
        let tables_bytes = tables_bytes(&self.shape);
        for (piece, span) in pieces.iter().zip(&self.spans) {
            let layout = memory.image.layout;
            let place = layout.place(piece.bucket.level(), piece.bucket.index());
            let (tables, blocks) = self.buffer[span.range()].split_at_mut(tables_bytes);
            match memory.image.bucket(place) {
                Some(bucket) => {
                    tables.copy_from_slice(&bucket[..tables_bytes]);
                    blocks.copy_from_slice(&bucket[memory.image.beat_bytes..]);
                }
                None => {
                    tables.fill(0);
                    blocks.fill(0);
                }
            }
            let bytes = layout.bucket_beats() as usize * memory.image.beat_bytes;
            memory.trace(false, place, bytes);
        }
        memory.end_trip();
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.lay_out(pieces, &[Part::Whole, Part::Header])?;
        fill(Blanks::new(&mut self.buffer, &self.spans));
        let memory = &mut *self.memory.borrow_mut();
        let LevelShape { slots_offset, bucket_bytes, .. } = self.shape.levels()[0];
        let (tables_bytes, beat_bytes) = (slots_offset as usize, memory.image.beat_bytes);
        for (piece, span) in pieces.iter().zip(&self.spans) {
            let place = memory.image.layout.place(piece.bucket.level(), piece.bucket.index());
            let bytes = &self.buffer[span.range()];
            let bucket = memory.image.bucket_mut(place);
            if bytes.len() == bucket_bytes as usize {
                bucket[..tables_bytes].copy_from_slice(&bytes[..tables_bytes]);
                bucket[beat_bytes..].copy_from_slice(&bytes[tables_bytes..]);
                let bytes_end = bucket.len();
                memory.trace(true, place, bytes_end);
            } else {
                bucket[..bytes.len()].copy_from_slice(bytes);
                memory.trace(true, place, bytes.len());
            }
        }
        memory.end_trip();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
