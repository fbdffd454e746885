//! Columns and streams: which buckets lie side by side.
//!
//! A *column* is a level of a tree. A *stream* is a set of columns of one level number whose
//! buckets are written in one trip: for RAW ORAM, the slots and the heads of a level. An *entry*
//! is one bucket of each of these columns, with the same index; it lies in one piece, so a single
//! ranged get reads all of it. Which streams exist follows from the write trips.

use foldhash::{HashMap, HashMapExt as _};
use oblivio_core::BucketId;
use oblivio_core::store::{Part, Piece, TreeId, TreeShape};

/// Maximum number of streams with several columns. Further sets of columns are split into single
/// columns.
const WIDE_STREAMS_MAX: usize = 4096;

/// A level of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) tree: u16,
    pub(super) level: u8,
    pub(super) buckets: u64,
    pub(super) bucket_bytes: usize,
}

/// A set of columns whose buckets lie side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// The numbers of the columns, in ascending order.
    pub(super) columns: Box<[usize]>,
    /// The offset of each column's bucket in an entry.
    offsets: Box<[usize]>,
    pub(super) entry_bytes: usize,
    pub(super) slots_per_chunk: u64,
}

/// A bucket that a piece names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) column: usize,
    pub(super) level: u8,
    pub(super) place: u64,
    pub(super) bytes: usize,
}

/// All columns and streams of a store.
pub(super) struct Streams {
    shapes: Vec<TreeShape>,
    columns: Vec<Column>,
    /// The number of the first column of each tree.
    first_columns: Vec<usize>,
    streams: Vec<Stream>,
    by_columns: HashMap<Box<[usize]>, u16>,
    chunk_bytes: usize,
}

impl Stream {
    /// The offset of a column's bucket in an entry, and the bucket's position among the columns.
    pub(super) fn find(&self, column: usize) -> Option<(usize, usize)> {
        let position = self.columns.binary_search(&column).ok()?;
        Some((position, self.offsets[position]))
    }
}

impl Streams {
    /// No streams yet, over trees of these shapes, which a
    /// [container](crate::container::Container) can hold.
    pub(super) fn new(shapes: Vec<TreeShape>, chunk_bytes: usize) -> Self {
        let (mut columns, mut first_columns) = (Vec::new(), Vec::new());
        for (tree, shape) in (0..).zip(&shapes) {
            first_columns.push(columns.len());
            for (level, shape) in (0..).zip(shape.levels()) {
                let bucket_bytes = shape.bucket_bytes as usize;
                columns.push(Column { tree, level, buckets: shape.buckets, bucket_bytes });
            }
        }
        let (streams, by_columns) = (Vec::new(), HashMap::new());
        Self { shapes, columns, first_columns, streams, by_columns, chunk_bytes }
    }

    pub(super) fn shapes(&self) -> &[TreeShape] {
        &self.shapes
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub(super) fn list(&self) -> &[Stream] {
        &self.streams
    }

    pub(super) fn get(&self, stream: u16) -> Option<&Stream> {
        self.streams.get(usize::from(stream))
    }

    /// The bucket of a piece; `None` if there is no such bucket, or the piece is not a whole one.
    pub(super) fn bucket(&self, piece: &Piece) -> Option<Bucket> {
        if piece.part != Part::Whole {
            return None;
        }
        let level = self.shapes.get(usize::from(piece.tree.0))?.level_of(piece.bucket)?;
        Some(Bucket {
            column: self.first_columns[usize::from(piece.tree.0)]
                + usize::from(piece.bucket.level()),
            level: piece.bucket.level(),
            place: piece.bucket.index(),
            bytes: level.bucket_bytes as usize,
        })
    }

    /// The number of a column; `None` if there is no such level.
    pub(super) fn column(&self, tree: u16, level: u8) -> Option<usize> {
        let shape = self.shapes.get(usize::from(tree))?;
        let is_there = usize::from(level) < shape.level_count();
        is_there.then(|| self.first_columns[usize::from(tree)] + usize::from(level))
    }

    /// The piece that is a whole bucket of a column.
    pub(super) fn piece(&self, column: usize, place: u64) -> Piece {
        let Column { tree, level, .. } = self.columns[column];
        Piece { tree: TreeId(tree), bucket: BucketId::new(level, place), part: Part::Whole }
    }

    /// The stream of `columns`, which are in ascending order and have one level number. Adds the
    /// stream if it is new; `None` if there are too many streams, so that the caller must use the
    /// columns one by one.
    pub(super) fn stream_of(&mut self, columns: &[usize]) -> Option<u16> {
        if let Some(stream) = self.by_columns.get(columns) {
            return Some(*stream);
        }
        let is_full = columns.len() > 1 && self.streams.len() >= WIDE_STREAMS_MAX;
        (!is_full).then(|| self.add(columns.into())).flatten()
    }

    /// Adds a stream; `None` if its columns are not ascending columns of one level number with
    /// buckets, or the stream exists.
    pub(super) fn add(&mut self, columns: Box<[usize]>) -> Option<u16> {
        let number = u16::try_from(self.streams.len()).ok()?;
        let first = self.columns.get(*columns.first()?)?;
        let is_sound = columns.is_sorted_by(|one, other| one < other)
            && columns.iter().all(|column| {
                let column = self.columns.get(*column);
                column.is_some_and(|it| it.level == first.level && it.buckets > 0)
            })
            && !self.by_columns.contains_key(&columns);
        if !is_sound {
            return None;
        }
        let mut offsets = Vec::with_capacity(columns.len());
        let mut entry_bytes = 0;
        for column in &columns {
            offsets.push(entry_bytes);
            entry_bytes += self.columns[*column].bucket_bytes;
        }
        let slots_per_chunk = (self.chunk_bytes / entry_bytes.max(1)).max(1) as u64;
        self.by_columns.insert(columns.clone(), number);
        self.streams.push(Stream {
            columns,
            offsets: offsets.into(),
            entry_bytes,
            slots_per_chunk,
        });
        Some(number)
    }
}
