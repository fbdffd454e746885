//! A store on one file.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use oblivio_core::store::{
    Blanks, BucketStore, Capabilities, Fill, Frames, Part, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::buffer::{Buffer, whole_sectors};
use crate::container::{self, Container, PAGE_BYTES};
use crate::error::OpenError;
use crate::fetching::{Fetch, Fetching};
use crate::file_layout::{self, Extent, FileLayout, FileSlot};
use crate::header;
use crate::look_ahead::{LookAhead, Trip};
use crate::medium::{self, Medium};
use crate::pending::Pending;
use crate::syncer::Syncer;

/// Options of a file store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOptions {
    /// Whether to bypass the page cache (`O_DIRECT`). This saves memory, but every read goes to the
    /// disk.
    pub direct: bool,
    /// Whether to refuse writes, and share the file with other readers.
    pub read_only: bool,
    /// Whether to read without a lock while another process may write. Reads may then return data
    /// that is only half written. For read-only stores.
    pub beside_writer: bool,
    /// Whether to open a file for reading even if its end was cut off. Reads of the missing part
    /// fail, and all other reads succeed.
    pub allow_incomplete: bool,
    /// Maximum number of written bytes that the store collects, so that adjacent buckets are
    /// written to the file together. At most one trip more may be collected. 0 writes each trip at
    /// once.
    pub write_behind_bytes_max: usize,
    /// Whether a separate thread reads announced trips ahead.
    pub looks_ahead: bool,
}

impl FileOptions {
    /// Sets [`direct`](Self::direct).
    #[must_use]
    pub const fn with_direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// Sets [`read_only`](Self::read_only).
    #[must_use]
    pub const fn with_read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Sets [`beside_writer`](Self::beside_writer).
    #[must_use]
    pub const fn with_beside_writer(self, beside_writer: bool) -> Self {
        Self { beside_writer, ..self }
    }

    /// Sets [`allow_incomplete`](Self::allow_incomplete).
    #[must_use]
    pub const fn with_allow_incomplete(self, allow_incomplete: bool) -> Self {
        Self { allow_incomplete, ..self }
    }

    /// Sets [`write_behind_bytes_max`](Self::write_behind_bytes_max).
    #[must_use]
    pub const fn with_write_behind_bytes_max(self, write_behind_bytes_max: usize) -> Self {
        Self { write_behind_bytes_max, ..self }
    }

    /// Sets [`looks_ahead`](Self::looks_ahead).
    #[must_use]
    pub const fn with_looks_ahead(self, looks_ahead: bool) -> Self {
        Self { looks_ahead, ..self }
    }
}

impl Default for FileOptions {
    /// The default options: reads and writes through the page cache, with 4 MiB of write-behind
    /// (the fastest in measurements). Reads ahead if there is more than one processor.
    fn default() -> Self {
        Self {
            direct: false,
            read_only: false,
            beside_writer: false,
            allow_incomplete: false,
            write_behind_bytes_max: 4 << 20,
            looks_ahead: thread::available_parallelism()
                .is_ok_and(|processors| processors.get() > 1),
        }
    }
}

/// Untrusted storage on a sparse file.
///
/// Only flushed writes are durable; dropping the store loses written bytes that are still in
/// memory. All calls fail after a write or flush has failed, because the state of the file is then
/// unknown. The caller must then reopen the file.
pub struct FileStore {
    medium: Arc<Medium>,
    layout: FileLayout,
    bytes: u64,
    missing_bytes: u64,
    damaged_header_copies: usize,
    options: FileOptions,
    /// The pending bytes, and after them the frames of the latest read.
    buffer: Buffer,
    pending: Pending,
    /// The thread that syncs the file. Started the first time that a write, not a flush, writes out
    /// pending bytes; never started with direct I/O.
    syncer: Option<Syncer>,
    failure: Option<Failure>,
    fetching: Fetching,
    /// The thread that reads ahead. It is started with the first announcement.
    look_ahead: Option<LookAhead>,
    /// The trip, read ahead by the thread, that contains the latest read.
    read_ahead: Option<Trip>,
    /// The positions of the pieces of the current trip. The list is a field so that its memory is
    /// reused.
    trip: Vec<FileSlot>,
    fetches: Vec<Fetch>,
    spans: Vec<Span>,
}

/// The error after which all calls fail.
struct Failure {
    kind: io::ErrorKind,
    message: String,
}

impl FileStore {
    /// Creates a file for trees of these shapes, `TreeId(0)` first. Space is allocated by writes.
    ///
    /// # Errors
    /// If the file exists, no file can hold the shapes, or the system refuses. After an error, no
    /// file is left behind.
    pub fn create(
        path: &Path,
        shapes: &[TreeShape],
        options: &FileOptions,
    ) -> Result<Self, OpenError> {
        let container = Container::new(shapes)?;
        let bytes = container::encode(shapes)?;
        let medium = Medium::create(path)?;
        let made = medium
            .extend(container.bytes())
            .and_then(|()| header::write(&medium, &container, &bytes))
            .and_then(|()| medium.sync_all(path))
            .map_err(|cause| {
                OpenError::io(&format!("create a file of {} bytes", container.bytes()), cause)
            })
            .and_then(|()| Self::new(medium, shapes, options));
        made.inspect_err(|_| medium::remove(path))
    }

    /// Opens a file, and reads the shapes of its trees from its header. If the file is opened for
    /// writing, damaged copies of the header are repaired from an intact copy.
    ///
    /// # Errors
    /// If the file is not a container file, is incomplete or in use elsewhere, or the system
    /// refuses.
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self, OpenError> {
        let medium = Medium::open(path, options.read_only, options.beside_writer)?;
        let found = header::find(&medium, options.read_only && options.allow_incomplete)?;
        if !options.read_only {
            header::repair(&medium, &found)?;
        }
        Self::with_header(medium, found, options)
    }

    /// Opens a file for reading as a file with trees of these shapes, without relying on its
    /// header. For a rescue after damage to the header.
    ///
    /// # Errors
    /// If the file is incomplete or in use elsewhere, or the system refuses.
    pub fn open_without_header(
        path: &Path,
        shapes: &[TreeShape],
        options: &FileOptions,
    ) -> Result<Self, OpenError> {
        let medium = Medium::open(path, true, options.beside_writer)?;
        let found = header::examine(&medium, shapes.to_vec(), options.allow_incomplete)?;
        let options = FileOptions { read_only: true, ..options.clone() };
        Self::with_header(medium, found, &options)
    }

    fn with_header(
        medium: Medium,
        found: header::HeaderState,
        options: &FileOptions,
    ) -> Result<Self, OpenError> {
        let store = Self::new(medium, &found.shapes, options)?;
        let damaged_header_copies = found.damaged_copies();
        Ok(Self { missing_bytes: found.missing_bytes, damaged_header_copies, ..store })
    }

    /// The size in bytes of a file for trees of these shapes.
    ///
    /// # Errors
    /// If no file can hold trees of these shapes.
    pub fn bytes_needed(shapes: &[TreeShape]) -> Result<u64, OpenError> {
        Ok(Container::new(shapes)?.bytes())
    }

    fn new(
        mut medium: Medium,
        shapes: &[TreeShape],
        options: &FileOptions,
    ) -> Result<Self, OpenError> {
        let no_memory = |cause| OpenError::io("reserve memory for the write buffer", cause);
        let room = options.write_behind_bytes_max.saturating_mul(2).max(PAGE_BYTES as usize);
        let mut buffer = Buffer::new(room).map_err(no_memory)?;
        if options.direct {
            medium.go_direct(&mut buffer)?;
        }
        Ok(Self {
            medium: Arc::new(medium),
            layout: FileLayout::new(shapes)?,
            bytes: Self::bytes_needed(shapes)?,
            missing_bytes: 0,
            damaged_header_copies: 0,
            options: options.clone(),
            buffer,
            pending: Pending::default(),
            syncer: None,
            failure: None,
            fetching: Fetching::default(),
            look_ahead: None,
            read_ahead: None,
            trip: Vec::new(),
            fetches: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// The shapes of all trees, `TreeId(0)` first.
    pub fn shapes(&self) -> &[TreeShape] {
        self.layout.shapes()
    }

    /// The number of bytes of the complete file, including missing bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of bytes cut off the end of the file. More than 0 only if the options allow
    /// incomplete files.
    pub fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }

    /// Bytes that the file takes on its file system.
    ///
    /// # Errors
    /// If the system does not report this number.
    pub fn allocated_bytes(&self) -> io::Result<u64> {
        self.medium.allocated_bytes()
    }

    /// The number of header copies that were damaged when the file was opened. If the file was
    /// opened for writing, the copies were repaired, but the cause of the damage may have damaged
    /// other data, too.
    pub fn damaged_header_copies(&self) -> usize {
        self.damaged_header_copies
    }

    /// Finds the positions of the pieces of a trip.
    fn locate(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        self.trip.clear();
        for piece in pieces {
            self.trip.push(self.layout.find(piece).ok_or_else(|| file_layout::absent(piece))?);
        }
        Ok(())
    }

    /// If the current trip was read ahead, takes it, and updates it with pending bytes.
    fn take_read_ahead(&mut self) {
        let Some(look_ahead) = &mut self.look_ahead else { return };
        let in_file = self.trip.iter().rev().filter(|place| place.piece.bytes > 0);
        let mut in_file = in_file.filter(|place| self.pending.position(place.piece).is_none());
        // The piece nearest the leaves: it is rarely on other paths.
        let last = in_file.next().map(|place| place.piece.rounded_out(self.medium.granule_bytes()));
        self.read_ahead = look_ahead.take(last, self.read_ahead.take());
        if let Some(trip) = &mut self.read_ahead {
            trip.bring_up_to_date(&self.pending, &self.buffer);
        }
    }

    /// Ensures that a pending entry covers every piece of the trip, with current bytes wherever the
    /// trip does not write. Handles the whole trip before any span is computed, because a later
    /// piece of the same bucket may move the entry of an earlier piece.
    fn admit(&mut self) -> io::Result<()> {
        let granule_bytes = self.medium.granule_bytes();
        let units = self.trip.iter().map(|place| write_unit(place, granule_bytes));
        let room: usize = units.map(|unit| whole_sectors(unit.bytes)).sum();
        let used_bytes = self.pending.used_bytes();
        self.buffer.grow(used_bytes.saturating_add(room), used_bytes)?;
        for place in &self.trip {
            if place.piece.bytes == 0 || self.pending.position(place.piece).is_some() {
                continue;
            }
            let unit = write_unit(place, granule_bytes);
            let at = self.pending.reserve(unit.bytes);
            if place.part == Part::Whole {
                self.buffer[at + place.piece.bytes..at + unit.bytes].fill(0);
            } else if unit != place.piece {
                self.medium.fetch(Fetch { extent: unit, at }, &mut self.buffer)?;
                self.pending.lay_over(unit, &mut self.buffer, at);
            }
            self.pending.insert(unit, at);
        }
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        let Self { medium, pending, buffer, look_ahead, .. } = self;
        look_ahead.iter_mut().for_each(LookAhead::pause);
        medium.write_runs(
            pending.in_order().map(|(extent, at)| (extent, &buffer[at..at + extent.bytes])),
        )?;
        pending.clear();
        look_ahead.iter_mut().for_each(LookAhead::resume);
        Ok(())
    }

    /// Starts write-back of the page cache. Does nothing with direct I/O.
    fn begin_sync(&mut self) -> io::Result<()> {
        if !self.options.direct {
            let syncer = match self.syncer.take() {
                Some(syncer) => syncer,
                None => self.medium.start_syncer()?,
            };
            syncer.begin();
            self.syncer = Some(syncer);
        }
        Ok(())
    }

    fn finish_sync(&self) -> io::Result<()> {
        match &self.syncer {
            Some(syncer) => syncer.finish(),
            None => self.medium.sync_data(),
        }
    }

    fn check_alive(&self) -> Result<(), StoreError> {
        self.failure.as_ref().map_or(Ok(()), |failure| {
            Err(StoreError::caused_by(
                failure.kind.into(),
                format!("the file store refuses all calls after an error: {}", failure.message),
                io::Error::from(failure.kind),
            ))
        })
    }

    /// Records a failure, after which the state of the file is unknown.
    fn fail(&mut self, act: &str, cause: io::Error) -> StoreError {
        let advice = match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room, and open the volume again; without room, `oblivio rescue` can still \
                 read it"
            }
            io::ErrorKind::FileTooLarge => "allow longer files, and open the volume again",
            _ => "check the disk, then open the file again",
        };
        let message = format!("cannot {act} ({cause}); {advice}");
        self.failure = Some(Failure { kind: cause.kind(), message: message.clone() });
        StoreError::caused_by(cause.kind().into(), message, cause)
    }
}

impl BucketStore for FileStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.layout.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        if self.options.looks_ahead && self.look_ahead.is_none() {
            self.look_ahead = LookAhead::start(self.medium.clone()).ok();
            // Without a thread, announcements go to the system only.
            self.options.looks_ahead = self.look_ahead.is_some();
        }
        let Self { medium, layout, pending, look_ahead, fetching, .. } = self;
        let granule_bytes = medium.granule_bytes();
        let extents = pieces.iter().filter_map(|piece| layout.find(piece)).map(|it| it.piece);
        let in_file = extents.filter(|extent| pending.position(*extent).is_none());
        let in_file = in_file.map(|extent| extent.rounded_out(granule_bytes));
        // The reader waits for one trip at a time, but the disk can fetch many at once.
        if fetching.is_cold() || look_ahead.as_ref().is_some_and(LookAhead::is_cold) {
            medium.announce(in_file.clone());
        }
        if let Some(look_ahead) = look_ahead {
            look_ahead.announce(in_file);
        }
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.check_alive()?;
        self.locate(pieces)?;
        self.take_read_ahead();
        let pending_bytes = self.pending.used_bytes();
        let granule_bytes = self.medium.granule_bytes();
        let in_file = self.trip.iter().map(|place| place.piece.rounded_out(granule_bytes));
        let room: usize = in_file.map(|extent| whole_sectors(extent.bytes)).sum();
        self.buffer.grow(pending_bytes.saturating_add(room), pending_bytes).map_err(unread)?;
        let Self { medium, pending, buffer, trip, fetches, spans, read_ahead, .. } = self;
        fetches.clear();
        spans.clear();
        let mut end = pending_bytes;
        for FileSlot { piece, .. } in trip {
            let start = pending.position(*piece).unwrap_or_else(|| {
                let extent = piece.rounded_out(granule_bytes);
                let within = (piece.start - extent.start) as usize;
                if let Some(at) = read_ahead.as_ref().and_then(|trip| trip.position(extent)) {
                    return buffer.len() + at + within;
                }
                let at = end;
                fetches.push(Fetch { extent, at });
                end += whole_sectors(extent.bytes);
                at + within
            });
            spans.push(Span { start, bytes: piece.bytes });
        }
        self.fetching.fetch_all(medium, fetches, buffer).map_err(unread)?;
        for fetch in &*fetches {
            pending.lay_over(fetch.extent, buffer, fetch.at);
        }
        let behind = self.read_ahead.as_ref().map_or(&[][..], |trip| &trip.buffer);
        Ok(Frames::in_two(&self.buffer, behind, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.check_alive()?;
        if self.options.read_only {
            let message = "the file is open to read only; open it to write";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        self.locate(pieces)?;
        self.admit().map_err(|cause| self.fail("prepare a write", cause))?;
        let Self { pending, trip, spans, .. } = self;
        spans.clear();
        spans.extend(trip.iter().map(|FileSlot { piece, .. }| Span {
            // Pieces without bytes have no entry.
            start: pending.position(*piece).unwrap_or_default(),
            bytes: piece.bytes,
        }));
        fill(Blanks::new(&mut self.buffer, &self.spans));
        if self.pending.used_bytes() > self.options.write_behind_bytes_max {
            self.write_out()
                .and_then(|()| self.begin_sync())
                .map_err(|cause| self.fail("write the file", cause))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.check_alive()?;
        if self.options.read_only {
            return Ok(());
        }
        self.write_out().map_err(|cause| self.fail("write the file", cause))?;
        // After a failed sync the system may have dropped the unwritten data; a retry would succeed
        // without them.
        self.finish_sync().map_err(|cause| self.fail("make the file durable", cause))
    }
}

/// The extent of the file that is written for a piece. The extents of two pieces are either nested
/// or disjoint.
fn write_unit(place: &FileSlot, granule_bytes: u64) -> Extent {
    match place.part {
        Part::Whole => place.bucket,
        Part::Header => place.piece.rounded_out(granule_bytes),
        Part::Slot(_) if granule_bytes == 1 => place.piece,
        // Adjacent slots share sectors.
        Part::Slot(_) => place.bucket,
    }
}

#[cold]
fn unread(cause: io::Error) -> StoreError {
    let message = match cause.kind() {
        io::ErrorKind::UnexpectedEof => {
            "this part of the file was cut off; restore it from a backup".into()
        }
        _ => format!("cannot read the file ({cause}); check the disk"),
    };
    StoreError::caused_by(cause.kind().into(), message, cause)
}
