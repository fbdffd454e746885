//! A store whose upper levels are also in a local file.
//!
//! An access reads one bucket of each level, so levels near the root take as many requests as the
//! others, but little space. The *near file* holds copies of them: it saves their requests, and
//! losing it costs time but no data. All buckets are written to the far store as well.
//!
//! Which levels are near depends only on the shapes and on the bytes allowed, which are public. The
//! near file is as untrusted as any storage, and the buckets in it are sealed.
//!
//! **When the file is used.** A mark beside it names the far store and the session that wrote both.
//! If the last session of the far store is another one, or did not end with a flush, the levels are
//! copied from the far store again.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use oblivio_core::store::{
    BucketRange, BucketStore, Capabilities, Fill, Frames, LevelShape, Piece, SealedCopy,
    SealedTrip, Span, TreeId, TreeShape, shapes_of,
};
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::private;

use crate::error::{OpenError, OpenErrorKind};
use crate::failure::StoreFailure;
use crate::packed::PackedStore;
use crate::store::{FileOptions, FileStore};

/// Maximum number of bytes that one trip copies from the far store.
const TRIP_BYTES_MAX: u64 = 2 << 20;

/// By default, near levels take at most the store's bytes divided by this: about the size of the
/// disk.
const DEFAULT_DIVISOR: u128 = 5;

/// A store over objects with a near file.
pub struct NearStore {
    near: FileStore,
    far: PackedStore,
    /// For each tree and level, whether it is near.
    levels: NearLevels,
    sealed: SealedTrip,
    buffer: Vec<u8>,
    spans: Vec<Span>,
    failure: StoreFailure,
}

/// The levels that are in the near file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NearLevels(Vec<Vec<bool>>);

impl NearLevels {
    /// Chooses levels from the root down, as long as all their trees fit into `bytes_max`. Trees
    /// for which `is_small` holds are in memory anyway.
    fn choose(shapes: &[TreeShape], bytes_max: u64, is_small: impl Fn(u16) -> bool) -> Self {
        let deepest = shapes.iter().map(TreeShape::level_count).max().unwrap_or(0);
        let mut levels: Vec<_> = shapes.iter().map(|it| vec![false; it.level_count()]).collect();
        let level_of = |tree: usize, level: usize| {
            let shape: Option<&LevelShape> = shapes[tree].levels().get(level);
            shape.filter(|_| !is_small(tree as u16))
        };
        let mut left = bytes_max;
        for level in 0..deepest {
            let here = (0..shapes.len()).filter_map(|tree| level_of(tree, level));
            let bytes = here.map(|shape| shape.buckets.saturating_mul(shape.bucket_bytes));
            let Some(rest) = left.checked_sub(bytes.fold(0, u64::saturating_add)) else { break };
            left = rest;
            for (tree, near) in levels.iter_mut().enumerate() {
                if let Some(is_near) = near.get_mut(level) {
                    *is_near = level_of(tree, level).is_some_and(|shape| shape.buckets > 0);
                }
            }
        }
        Self(levels)
    }

    fn contains(&self, piece: &Piece) -> bool {
        let tree = self.0.get(usize::from(piece.tree.0));
        tree.and_then(|levels| levels.get(usize::from(piece.bucket.level())))
            .is_some_and(|is_near| *is_near)
    }

    /// The shapes of the near file: those of the store, without the buckets of other levels.
    fn shapes(&self, shapes: &[TreeShape]) -> Vec<TreeShape> {
        let trees = shapes.iter().zip(&self.0);
        let near = trees.map(|(shape, near)| {
            let levels = shape.levels().iter().zip(near);
            let levels = levels.map(|(level, is_near)| match is_near {
                true => *level,
                false => LevelShape { buckets: 0, ..*level },
            });
            TreeShape::new(levels.collect())
        });
        near.collect()
    }
}

impl NearStore {
    /// Opens `far`, which is open to write, with the near file at `path`. Creates the file, or
    /// fills it again, if necessary. `bytes_max` bounds the bytes of the near levels; `None` for a
    /// fifth of the store, about the size of the disk.
    ///
    /// # Errors
    /// If the file is in use or cannot be written, or the far store fails.
    pub fn open(far: PackedStore, path: &Path, bytes_max: Option<u64>) -> Result<Self, OpenError> {
        let lineage = far.lineage();
        let bytes: u128 = far.shapes().iter().map(TreeShape::tree_bytes).sum();
        let fraction = u64::try_from(bytes / DEFAULT_DIVISOR).unwrap_or(u64::MAX);
        let bytes_max = bytes_max.unwrap_or(fraction);
        let levels = NearLevels::choose(far.shapes(), bytes_max, |tree| far.is_small(tree));
        let shapes = levels.shapes(far.shapes());
        let mark = Mark::of(path);
        check(path)?;
        let text = mark.read()?;
        // A store that was just created has no earlier session, so no file can be current.
        let before = lineage.before();
        let is_current = !lineage.has_adopted && before.is_some() && text == before;
        // Opened in any case: a file that another process uses is locked.
        let existing = open_file(path, &shapes)?.filter(|_| is_current);
        let is_current = existing.is_some();
        let near = match existing {
            Some(near) => near,
            None => {
                // The file holds nothing else: the mark says that it is a near file. It is created
                // again, because filling leaves out buckets that were never written.
                mark.write(FILLING)?;
                remove_file(path)?;
                FileStore::create(path, &shapes, &FileOptions::default())?
            }
        };
        let mut store = Self {
            near,
            far,
            levels,
            sealed: SealedTrip::default(),
            buffer: Vec::new(),
            spans: Vec::new(),
            failure: StoreFailure::default(),
        };
        if !is_current {
            store.fill()?;
        }
        if let Some(now) = lineage.now() {
            mark.write(&now)?;
        }
        Ok(store)
    }

    /// The store of all levels.
    pub fn far(&self) -> &PackedStore {
        &self.far
    }

    /// Copies all near levels from the far store.
    fn fill(&mut self) -> Result<(), OpenError> {
        let filling = |error: StoreError| {
            let message = format!("cannot fill the near file: {error}");
            OpenError::caused_by(error.kind().into(), message, error)
        };
        let mut copy = SealedCopy::default();
        for (tree, near) in (0..).zip(&self.levels.0) {
            for (level, _) in (0u8..).zip(near).filter(|(_, is_near)| **is_near) {
                let shape = self.far.shapes()[usize::from(tree)].levels()[usize::from(level)];
                let at_once = (TRIP_BYTES_MAX / shape.bucket_bytes.max(1)).max(1);
                let mut start = 0;
                while start < shape.buckets {
                    let buckets = start..shape.buckets.min(start + at_once);
                    start = buckets.end;
                    let range = BucketRange { tree: TreeId(tree), level, buckets };
                    copy.read(&mut self.far, &range).map_err(filling)?;
                    copy.write(&mut self.near).map_err(filling)?;
                }
            }
        }
        self.near.flush().map_err(filling)
    }

    /// The indices of the pieces that are near, and of those that are not.
    fn split(&self, pieces: &[Piece]) -> (Vec<usize>, Vec<usize>) {
        (0..pieces.len()).partition(|i| self.levels.contains(&pieces[*i]))
    }

    fn lengths(&self, pieces: &[Piece]) -> Result<Vec<usize>, StoreError> {
        let length = |piece: &Piece| {
            let span = self.far.shape(piece.tree).and_then(|shape| shape.span(piece));
            span.map(|span| span.bytes).ok_or_else(|| crate::absent(piece))
        };
        pieces.iter().map(length).collect()
    }
}

#[deny(clippy::missing_trait_methods)]
impl BucketStore for NearStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.far.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.far.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        let (near, far) = self.split(pieces);
        let of = |which: &[usize]| which.iter().map(|i| pieces[*i]).collect::<Vec<_>>();
        self.near.prefetch(&of(&near));
        self.far.prefetch(&of(&far));
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.failure.check()?;
        let lengths = self.lengths(pieces)?;
        if pieces.iter().any(|piece| !self.capabilities().allow(piece)) {
            let message = "this store reads and writes only whole buckets";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let (near, far) = self.split(pieces);
        let Self { near: file, far: objects, buffer, spans, .. } = self;
        spans.clear();
        let mut end = 0;
        for bytes in lengths {
            spans.push(Span { start: end, bytes });
            end += bytes;
        }
        buffer.clear();
        buffer.resize(end, 0);
        let mut copy = |frames: Frames<'_>, which: &[usize]| {
            for (at, i) in which.iter().enumerate() {
                let frame = frames.get(at);
                let Some(to) = buffer.get_mut(spans[*i].range()) else { continue };
                if frame.len() != to.len() {
                    let message = "the near file returned too few bytes; remove it";
                    return Err(StoreError::new(StoreErrorKind::Damaged, message));
                }
                to.copy_from_slice(frame);
            }
            Ok(())
        };
        let of = |which: &[usize]| which.iter().map(|i| pieces[*i]).collect::<Vec<_>>();
        copy(objects.read(&of(&far))?, &far)?;
        copy(file.read(&of(&near))?, &near)?;
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let frames = self.read(pieces)?;
        (0..frames.len()).for_each(|i| each(i, frames.get(i)));
        Ok(())
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.failure.check()?;
        if pieces.iter().any(|piece| !self.capabilities().allow(piece)) {
            let message = "this store reads and writes only whole buckets";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let lengths = self.lengths(pieces)?;
        self.sealed.seal(lengths, fill);
        let (near, _) = self.split(pieces);
        let of_near: Vec<_> = near.iter().map(|i| pieces[*i]).collect();
        let all: Vec<_> = (0..pieces.len()).collect();
        let Self { near: file, far, sealed, .. } = self;
        let written = far
            .write(pieces, &mut |blanks| sealed.put(&all, blanks))
            .and_then(|()| file.write(&of_near, &mut |blanks| sealed.put(&near, blanks)));
        written.map_err(|error| self.failure.record(error))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.failure.check()?;
        // The near file first: it must not be older than a head.
        let flushed = self.near.flush().and_then(|()| self.far.flush());
        flushed.map_err(|error| self.failure.record(error))
    }
}

/// Opens the near file. `None` if there is none, or one with other levels.
fn open_file(path: &Path, shapes: &[TreeShape]) -> Result<Option<FileStore>, OpenError> {
    match FileStore::open(path, &FileOptions::default()) {
        Ok(store) => Ok((shapes_of(&store) == shapes).then_some(store)),
        Err(error) => match error.kind() {
            OpenErrorKind::Missing | OpenErrorKind::Damaged | OpenErrorKind::Truncated => Ok(None),
            _ => Err(error.named(&path.display().to_string())),
        },
    }
}

/// Checks that a file is a near file, or does not exist.
pub(crate) fn check(path: &Path) -> Result<(), OpenError> {
    match Mark::of(path).read()?.is_none() && path.symlink_metadata().is_ok() {
        true => Err(not_near(path)),
        false => Ok(()),
    }
}

/// Removes a near file and its mark. Leaves a file without a mark alone, which is something else.
pub(crate) fn remove(path: &Path) -> Result<(), OpenError> {
    let mark = Mark::of(path);
    if mark.read()?.is_none() {
        return Ok(());
    }
    remove_file(path)?;
    mark.remove()
}

fn remove_file(path: &Path) -> Result<(), OpenError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::io(&format!("remove {}", path.display()), error))
        }
        _ => Ok(()),
    }
}

fn not_near(path: &Path) -> OpenError {
    let message = format!(
        "{} exists and is not a near file; choose another name for the near file",
        path.display()
    );
    OpenError::new(OpenErrorKind::Exists, message)
}

/// The text of a mark while the near file is being filled.
const FILLING: &str = "filling\n";

/// The file beside a near file. It says that the file is a near file, and names the session that
/// wrote it.
struct Mark(PathBuf);

impl Mark {
    fn of(near: &Path) -> Self {
        let mut path = near.as_os_str().to_owned();
        path.push(".mark");
        Self(path.into())
    }

    /// The text of the mark; `None` if there is no mark.
    fn read(&self) -> Result<Option<String>, OpenError> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(self.failed("read", error)),
        }
    }

    /// Removes the mark, durably.
    fn remove(&self) -> Result<(), OpenError> {
        match fs::remove_file(&self.0) {
            Ok(()) => self.sync_dir().map_err(|error| self.failed("remove", error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed("remove", error)),
        }
    }

    /// Writes the mark, durably.
    fn write(&self, text: &str) -> Result<(), OpenError> {
        let new = self.0.with_extension("mark.new");
        let write = || {
            let mut file =
                private::file_options().write(true).create(true).truncate(true).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.0)?;
            self.sync_dir()
        };
        write().map_err(|error| self.failed("write", error))
    }

    fn sync_dir(&self) -> io::Result<()> {
        let dir = self.0.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn failed(&self, act: &str, cause: io::Error) -> OpenError {
        OpenError::io(&format!("{act} {}", self.0.display()), cause)
    }
}
