//! A store on a bucket server: the client side.
//!
//! Like any storage, the server sees addresses of pieces and sealed bytes. The caller's thread
//! sends requests, and another thread reads the answers. Several requests can be in flight at once:
//! - The store sends a write, and waits for its answer only at a flush. The client keeps each write
//!   until it is durable, because a restarted server may have lost it. To bound the memory for
//!   these writes, the store itself starts flushes. Before it starts another flush, it waits for
//!   the previous one.
//! - Announced pieces are requested without delay, and later reads use the answers.
//! - Computations are requested without delay, too. The store waits for a result only when the
//!   caller needs it.
//!
//! After a lost link the store reconnects and sends all unanswered requests again, byte for byte:
//! see `session`.
//!
//! | module | contents |
//! |---|---|
//! | `opening` | the beginning of a connection |
//! | `backoff` | pauses between attempts to reach a server |
//! | `session` | an open volume over successive links |
//! | `connection` | a link, and the thread that reads from it |
//! | `request_table` | the table of requests, which checks every answer |
//! | `frames` | encoded requests |
//! | `unflushed` | written buckets that are not durable yet |

pub(crate) mod backoff;
mod connection;
mod frames;
mod opening;
mod request_table;
mod session;
mod unflushed;

use std::io;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::error::sanitize_message;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::link::{Link, MonotonicTime};
use oblivio_wire::message::{COMPUTE_BYTES, MESSAGE_BYTES_MAX};
use oblivio_wire::{FailureKind, OpenMode, Opened, Request};

use crate::error::{OpenError, OpenErrorKind};
use crate::file_layout::{self, FileLayout};
use crate::opener::{Condition, RETRY_FOR, RETRY_OPENING_FOR};
use crate::prefetched::{PREFETCHED_BYTES_MAX, Prefetched};
use frames::{Frame, LONGEST_PIECE_BYTES, WriteFrames, runs};
use opening::{AuthenticatedLink, OpenFailure, check_name};
use request_table::Awaited;
use session::Session;
use unflushed::UnflushedBuckets;

/// Time limit for a server to notice that the previous user of a volume, most likely this client
/// itself, has disconnected.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

/// The pause before another attempt to open a volume that is in use.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// How long a server may answer `Working` to a quick computation. An honest server answers so only
/// while an older request delays the computation.
const WORKS_WITHIN: Duration = Duration::from_secs(60);

/// How long a server may answer `Working` to an eviction. At 25 Mbit/s between servers, an eviction
/// of a volume of 40 GB takes 11 minutes.
const WORKS_LONG_WITHIN: Duration = Duration::from_secs(20 * 60);

/// Opens links to a server: the first link, and a new link after each lost one.
pub trait Connector: Send {
    /// Opens a new link to the same server.
    ///
    /// # Errors
    /// If the server cannot be reached within `within`.
    fn connect(&mut self, within: Duration) -> io::Result<Link>;
}

/// Options of a volume on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The name of the volume on the server.
    pub name: String,
    /// Time limit for reconnecting after the link was lost.
    pub retry_for: Duration,
    /// Time limit for opening the volume while the server drops the link, or has no connection left
    /// for this client.
    pub retry_opening_for: Duration,
    /// Time limit for an answer. After it, the link counts as lost.
    pub answer_within: Duration,
    /// How long a server may answer `Working` to a request that involves no eviction.
    pub works_within: Duration,
    /// How long a server may answer `Working` to an eviction, or to a request that waits for an
    /// eviction.
    pub works_long_within: Duration,
    /// Maximum number of unflushed bytes that are kept. If a write would bring the bytes since the
    /// latest flush above half of this maximum, the store first waits for that flush and starts
    /// another one. A single write that is longer needs more.
    pub unflushed_bytes_max: usize,
}

impl RemoteOptions {
    /// Creates the default options for the volume `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            retry_for: RETRY_FOR,
            retry_opening_for: RETRY_OPENING_FOR,
            answer_within: Duration::from_secs(30),
            works_within: WORKS_WITHIN,
            works_long_within: WORKS_LONG_WITHIN,
            unflushed_bytes_max: 64 << 20,
        }
    }
}

impl RemoteOptions {
    /// Sets [`name`](Self::name).
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets [`retry_for`](Self::retry_for) and [`retry_opening_for`](Self::retry_opening_for).
    #[must_use]
    pub fn with_retry_for(self, retry_for: Duration) -> Self {
        Self { retry_for, retry_opening_for: retry_for, ..self }
    }

    /// Sets [`answer_within`](Self::answer_within).
    #[must_use]
    pub fn with_answer_within(self, answer_within: Duration) -> Self {
        Self { answer_within, ..self }
    }

    /// Sets [`works_within`](Self::works_within).
    #[must_use]
    pub fn with_works_within(self, works_within: Duration) -> Self {
        Self { works_within, ..self }
    }

    /// Sets [`works_long_within`](Self::works_long_within).
    #[must_use]
    pub fn with_works_long_within(self, works_long_within: Duration) -> Self {
        Self { works_long_within, ..self }
    }

    /// Sets [`unflushed_bytes_max`](Self::unflushed_bytes_max).
    #[must_use]
    pub fn with_unflushed_bytes_max(self, unflushed_bytes_max: usize) -> Self {
        Self { unflushed_bytes_max, ..self }
    }
}

/// The mode in which a client opens an existing volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteMode {
    /// Opens the volume to read and write. A client that had it open is fenced.
    Write,
    /// Opens the volume for reading, if no client has it open for writing.
    Read {
        /// Whether to open the volume even if its file was cut off.
        allow_incomplete: bool,
    },
    /// Opens the volume for reading, even while another client writes. Data may then change between
    /// reads.
    Look,
    /// Continues a session for writing, if no other client has opened the volume since.
    Resume {
        /// The number of the session: see [`RemoteStore::session`].
        session: u64,
    },
}

/// Untrusted storage on a bucket server.
///
/// Only flushed writes are durable; dropping the store drops the rest. All calls fail after a write
/// or flush has failed, or after the server was unreachable for too long: the state of the server
/// is then unknown. The caller must then reopen the store.
pub struct RemoteStore {
    session: Session,
    layout: FileLayout,
    is_read_only: bool,
    unflushed_bytes_max: usize,
    unflushed: UnflushedBuckets,
    prefetched: Prefetched,
    /// The frames of the latest read. `answer` has the frames that are used where they were
    /// received, `buffer` has copies of the others, and `spans` has the positions of all frames.
    buffer: Vec<u8>,
    answer: Bytes,
    spans: Vec<Span>,
}

impl RemoteStore {
    /// Creates a volume with trees of these shapes, `TreeId(0)` first, and opens it to write.
    ///
    /// # Errors
    /// If the name is taken, a bucket does not fit into a message, or the server refuses or cannot
    /// be reached.
    pub fn create(
        mut connector: Box<dyn Connector>,
        shapes: &[TreeShape],
        options: RemoteOptions,
    ) -> Result<Self, OpenError> {
        check_name(&options.name)?;
        let layout = layout(shapes)?;
        let mut authenticated = AuthenticatedLink::connect_retrying(&mut *connector, &options)?;
        let opened = authenticated.open(&options.name, OpenMode::Create(shapes.to_vec()))?;
        if opened.shapes != shapes {
            return Err(
                OpenFailure::ProtocolViolation("it created other trees than requested").into()
            );
        }
        Self::start(connector, options, authenticated, &opened, layout, None)
    }

    /// Opens a volume, and receives the shapes of its trees.
    ///
    /// # Errors
    /// If the volume does not exist or is in use, or the server refuses or cannot be reached.
    pub fn open(
        mut connector: Box<dyn Connector>,
        mode: RemoteMode,
        options: RemoteOptions,
    ) -> Result<(Self, Condition), OpenError> {
        check_name(&options.name)?;
        let reads = match mode {
            RemoteMode::Write | RemoteMode::Resume { .. } => None,
            RemoteMode::Read { allow_incomplete } => Some(OpenMode::Read { allow_incomplete }),
            RemoteMode::Look => Some(OpenMode::Look),
        };
        let (authenticated, opened) =
            once_free(&mut *connector, &options, |authenticated| match mode {
                RemoteMode::Resume { session } => authenticated.resume(&options.name, session),
                _ => authenticated.open(&options.name, reads.clone().unwrap_or(OpenMode::Write)),
            })?;
        let layout = layout(&opened.shapes).map_err(|error| {
            OpenError::caused_by(
                OpenErrorKind::Damaged,
                format!("the server reports impossible trees for the volume: {error}"),
                error,
            )
        })?;
        let store = Self::start(connector, options, authenticated, &opened, layout, reads)?;
        Ok((store, condition(opened)))
    }

    /// Maximum client memory, in bytes, that an open store needs. A longer trip needs more.
    pub(crate) fn client_bytes_max() -> u64 {
        (RemoteOptions::new("").unflushed_bytes_max + PREFETCHED_BYTES_MAX) as u64
    }

    /// Whether a volume of this name exists.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn look(mut connector: Box<dyn Connector>, name: &str) -> Result<bool, OpenError> {
        check_name(name)?;
        let mut authenticated =
            AuthenticatedLink::connect_retrying(&mut *connector, &RemoteOptions::new(name))?;
        let is_there = authenticated.look(name)?;
        authenticated.close();
        Ok(is_there)
    }

    /// Removes a volume. No client may have it open.
    ///
    /// # Errors
    /// If the volume does not exist or cannot be removed.
    pub fn remove(mut connector: Box<dyn Connector>, name: &str) -> Result<(), OpenError> {
        check_name(name)?;
        let options = RemoteOptions::new(name);
        let (authenticated, removed) =
            once_free(&mut *connector, &options, |authenticated| authenticated.remove(name))?;
        authenticated.close();
        Ok(removed)
    }

    /// The shapes of all trees, `TreeId(0)` first.
    pub fn shapes(&self) -> &[TreeShape] {
        self.layout.shapes()
    }

    /// The number of the session, with which it can be resumed; 0 if the volume is open only for
    /// reading.
    pub fn session(&self) -> u64 {
        self.session.number()
    }

    /// Whether all calls fail, so that the store must be reopened.
    pub fn has_failed(&self) -> bool {
        self.session.has_failed()
    }

    /// Sends a computation to the share server of the volume. The request is sent now, and again
    /// after a lost link until it is answered: see [`Self::wait_for_computed`].
    ///
    /// # Errors
    /// If the message is too long, or the store has failed. The server refuses computations that a
    /// reader must not request.
    pub fn begin_to_compute(
        &mut self,
        message: Vec<u8>,
        works_within: Duration,
    ) -> Result<PendingComputation, StoreError> {
        self.session.begin_call()?;
        if message.len() > MESSAGE_BYTES_MAX - COMPUTE_BYTES {
            let message = format!(
                "a message of {} bytes is too long to send; use smaller blocks",
                message.len()
            );
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let request = Request::Compute { number: self.session.next_number(), message };
        Ok(PendingComputation(
            self.session.ask(Awaited::Computed { works_within }, &Frame::new(&request)),
        ))
    }

    /// Waits for the result of a computation that was requested.
    ///
    /// # Errors
    /// If the server refuses the computation (further requests are possible), answers `Working` for
    /// too long, or the store has failed.
    pub fn wait_for_computed(&mut self, pending: PendingComputation) -> Result<Bytes, StoreError> {
        self.session.wait(pending.0)
    }

    /// Waits for the result of a computation as [`Self::wait_for_computed`] does, but does not
    /// reconnect. Returns the request if the link is lost.
    ///
    /// # Errors
    /// See [`Self::wait_for_computed`].
    pub fn wait_on_link(
        &mut self,
        pending: PendingComputation,
    ) -> Result<Result<Bytes, PendingComputation>, StoreError> {
        Ok(self.session.wait_on_link(pending.0)?.ok_or(pending))
    }

    /// Sends an empty read, which the server answers only if this client still has the volume open.
    ///
    /// # Errors
    /// If another client has opened the volume, or the store has failed.
    pub fn check_in(&mut self) -> Result<(), StoreError> {
        self.session.begin_call()?;
        let number = self.ask_for_all(Vec::new(), 0);
        self.session.wait(number).map(drop)
    }

    /// Starts a flush of all writes without waiting for it. The next flush waits for this one, too.
    ///
    /// # Errors
    /// If the store has failed.
    pub fn begin_to_flush(&mut self) -> Result<(), StoreError> {
        self.session.begin_call()?;
        if !self.unflushed.has_nothing_new() {
            self.begin_flush();
        }
        Ok(())
    }

    fn check_can_write(&self) -> Result<(), StoreError> {
        if self.is_read_only {
            let message = "the volume is open to read only; open it to write";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        Ok(())
    }

    fn start(
        connector: Box<dyn Connector>,
        options: RemoteOptions,
        authenticated: AuthenticatedLink,
        opened: &Opened,
        layout: FileLayout,
        reads: Option<OpenMode>,
    ) -> Result<Self, OpenError> {
        let RemoteOptions { unflushed_bytes_max, .. } = options;
        let is_read_only = reads.is_some();
        let session =
            Session::start(connector, options, authenticated, opened, reads).map_err(|cause| {
                OpenError::io("start the thread that reads the server's answers", cause)
            })?;
        Ok(Self {
            session,
            layout,
            is_read_only,
            unflushed_bytes_max,
            unflushed: UnflushedBuckets::default(),
            prefetched: Prefetched::new(PREFETCHED_BYTES_MAX),
            buffer: Vec::new(),
            answer: Bytes::new(),
            spans: Vec::new(),
        })
    }

    /// The length of a piece in bytes; `None` if the store has no such piece.
    fn length(&self, piece: &Piece) -> Option<usize> {
        self.layout.find(piece).map(|place| place.piece.bytes)
    }

    fn lengths(&self, pieces: &[Piece]) -> Result<Vec<usize>, StoreError> {
        let length = |piece| self.length(piece).ok_or_else(|| file_layout::absent(piece));
        pieces.iter().map(length).collect()
    }

    /// The indices of the pieces of a trip that must be requested.
    fn missing_pieces(&self, trip: &[Piece]) -> Vec<usize> {
        let is_available =
            |piece| self.unflushed.has(piece) || self.prefetched.request(piece).is_some();
        (0..trip.len()).filter(|i| !is_available(&trip[*i])).collect()
    }

    /// Requests the pieces of a trip with the indices `which`, in a single request if they fit.
    /// Returns the requests, each with the indices of its pieces.
    fn ask_for(&mut self, trip: &[Piece], lengths: &[usize], which: &[usize]) -> Vec<PieceRequest> {
        let wanted: Vec<_> = which.iter().map(|i| lengths[*i]).collect();
        let asked = runs(&wanted).into_iter().map(|run| {
            let pieces = which[run.clone()].iter().map(|i| trip[*i]).collect();
            let number = self.ask_for_all(pieces, wanted[run.clone()].iter().sum());
            PieceRequest { number, which: which[run].to_vec() }
        });
        asked.collect()
    }

    fn ask_for_all(&mut self, pieces: Vec<Piece>, bytes: usize) -> u64 {
        let request = Request::Read { number: self.session.next_number(), pieces };
        self.session.ask(Awaited::Data { bytes }, &Frame::new(&request))
    }

    /// Waits for the prefetched answers to a trip. Discards failed requests. Returns `true` if no
    /// request failed.
    fn take_prefetched(&mut self, trip: &[Piece]) -> Result<bool, StoreError> {
        let mut all_arrived = true;
        for piece in trip.iter().filter(|piece| !self.unflushed.has(piece)) {
            let number = self.prefetched.request(piece);
            let Some(number) = number.filter(|number| self.prefetched.lacks_answer(*number)) else {
                continue;
            };
            match self.session.wait(number) {
                Ok(answer) => self.prefetched.answered(number, answer),
                Err(error) if self.session.has_failed() => return Err(error),
                // Another piece may have caused the failure, so this trip requests its own pieces.
                Err(_) => {
                    self.prefetched.forget_read(number);
                    all_arrived = false;
                }
            }
        }
        Ok(all_arrived)
    }

    /// Determines the positions of the frames of a trip, and copies the frames that were already
    /// received. Frames in the answer that contains the first announced piece are not copied;
    /// usually that answer contains the whole trip.
    fn copy_received(&mut self, trip: &[Piece], lengths: &[usize]) {
        let Self { layout, unflushed, prefetched, answer, buffer, spans, .. } = self;
        let mut answered = trip.iter().filter(|piece| !unflushed.has(piece));
        let first = answered.find_map(|piece| prefetched.find(piece));
        let number = first.as_ref().map(|found| found.number);
        *answer = first.map_or_else(Bytes::new, |found| found.answer.clone());
        spans.clear();
        buffer.clear();
        for (piece, bytes) in trip.iter().zip(lengths) {
            let written = unflushed.find(piece, offset_in_bucket(layout, piece), *bytes);
            let found = if written.is_some() { None } else { prefetched.find(piece) };
            let in_answer = found.as_ref().filter(|found| Some(found.number) == number);
            if let Some(found) = in_answer {
                spans.push(Span { start: found.start, bytes: *bytes });
                continue;
            }
            spans.push(Span { start: answer.len() + buffer.len(), bytes: *bytes });
            match written.or_else(|| found.map(|found| found.bytes(*bytes))) {
                Some(here) => buffer.extend(here),
                None => buffer.resize(buffer.len() + bytes, 0),
            }
        }
    }

    /// Waits for the requested pieces, and copies them into the buffer.
    fn copy_answers(&mut self, asked: &[PieceRequest]) -> Result<(), StoreError> {
        for PieceRequest { number, which } in asked {
            let received = self.session.wait(*number)?;
            let mut rest = &received[..];
            for i in which {
                let Span { start, bytes } = self.spans[*i];
                let (frame, behind) = rest.split_at(bytes);
                self.buffer[start - self.answer.len()..][..bytes].copy_from_slice(frame);
                rest = behind;
            }
        }
        Ok(())
    }

    fn forget_useless(&mut self) {
        self.prefetched.take_useless().into_iter().for_each(|number| self.session.forget(number));
    }

    /// Starts a flush. It covers all writes so far, including those that an earlier flush covers.
    fn begin_flush(&mut self) {
        if let Some(before) = self.unflushed.flush_under_way() {
            self.session.forget(before);
        }
        let request = Request::Flush { number: self.session.next_number() };
        let number = self.session.ask(Awaited::Flushed, &Frame::new(&request));
        self.unflushed.flush_begins(number);
    }

    /// Waits for the flush that was started, if there is one.
    fn finish_flush(&mut self) -> Result<(), StoreError> {
        if let Some(number) = self.unflushed.flush_under_way() {
            self.session.wait(number)?;
            self.unflushed.flush_ends();
        }
        Ok(())
    }
}

/// A computation that was requested, and whose result has not been received.
#[derive(Debug)]
#[must_use]
pub struct PendingComputation(u64);

/// A request for some pieces of a trip.
struct PieceRequest {
    number: u64,
    which: Vec<usize>,
}

impl BucketStore for RemoteStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.layout.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        // Without a link, unsent requests would pile up. The next call reports the error.
        if self.session.begin_call().and_then(|()| self.session.keep_up()).is_err() {
            return;
        }
        let number = self.session.next_number();
        let (mut wanted, mut lengths) = (Vec::new(), Vec::new());
        for piece in pieces.iter().filter(|piece| !self.unflushed.has(piece)) {
            let Some(bytes) = self.length(piece) else { continue };
            if self.prefetched.announce(number, piece, bytes) {
                wanted.push(*piece);
                lengths.push(bytes);
            }
        }
        // Pieces that are too long to be held or to fit into one message are read on demand.
        if self.prefetched.make_room() && runs(&lengths).len() == 1 {
            self.ask_for_all(wanted, lengths.iter().sum());
        } else {
            self.prefetched.forget_read(number);
        }
        self.forget_useless();
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.session.begin_call()?;
        let lengths = self.lengths(pieces)?;
        let missing = self.missing_pieces(pieces);
        let mut asked = self.ask_for(pieces, &lengths, &missing);
        let outcome = self.take_prefetched(pieces).and_then(|all_arrived| {
            if !all_arrived {
                let mut not_brought = self.missing_pieces(pieces);
                not_brought.retain(|i| missing.binary_search(i).is_err());
                asked.extend(self.ask_for(pieces, &lengths, &not_brought));
            }
            self.copy_received(pieces, &lengths);
            self.copy_answers(&asked)
        });
        if let Err(error) = outcome {
            asked.iter().for_each(|asked| self.session.forget(asked.number));
            return Err(error);
        }
        pieces.iter().for_each(|piece| self.prefetched.was_read(piece));
        self.forget_useless();
        Ok(Frames::in_two(&self.answer, &self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.session.begin_call()?;
        self.check_can_write()?;
        let lengths = self.lengths(pieces)?;
        let bytes: usize = lengths.iter().sum();
        let is_too_much = self.unflushed.new_bytes() + bytes > self.unflushed_bytes_max / 2;
        if is_too_much && !self.unflushed.has_nothing_new() {
            self.finish_flush()?;
            self.begin_flush();
        }
        self.session.keep_up()?;
        let write = WriteFrames::seal(self.session.next_number(), pieces, &lengths, fill);
        pieces.iter().for_each(|piece| self.prefetched.is_written(piece));
        self.forget_useless();
        self.unflushed.add(pieces, &write);
        for frame in &write.frames {
            self.session.ask(Awaited::Written, frame);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.begin_to_flush()?;
        self.finish_flush()
    }
}

/// Computes the positions of the trees. Fails if a bucket does not fit into a message.
fn layout(shapes: &[TreeShape]) -> Result<FileLayout, OpenError> {
    let mut levels = shapes.iter().flat_map(TreeShape::levels).filter(|level| level.buckets > 0);
    if let Some(level) = levels.find(|level| level.bucket_bytes > LONGEST_PIECE_BYTES as u64) {
        let message = format!(
            "buckets of {} bytes are too long to send (at most {LONGEST_PIECE_BYTES}); use smaller \
             blocks",
            level.bucket_bytes
        );
        return Err(OpenError::new(OpenErrorKind::InvalidShapes, message));
    }
    FileLayout::new(shapes)
}

fn offset_in_bucket(layout: &FileLayout, piece: &Piece) -> usize {
    layout.find(piece).map_or(0, |place| (place.piece.start - place.bucket.start) as usize)
}

/// Repeats a request while the volume is in use. The server might not have noticed yet that the
/// previous client has disconnected.
fn once_free<T>(
    connector: &mut dyn Connector,
    options: &RemoteOptions,
    mut ask: impl FnMut(&mut AuthenticatedLink) -> Result<T, OpenFailure>,
) -> Result<(AuthenticatedLink, T), OpenFailure> {
    let until = MonotonicTime::now().after(NOTICED_WITHIN);
    loop {
        let mut authenticated = AuthenticatedLink::connect_retrying(connector, options)?;
        match ask(&mut authenticated) {
            Err(OpenFailure::Refused(failure))
                if failure.kind == FailureKind::InUse && until.left().is_some() =>
            {
                authenticated.close();
                thread::sleep(RETRY_PAUSE);
            }
            Err(error) => {
                authenticated.close();
                return Err(error);
            }
            Ok(answer) => return Ok((authenticated, answer)),
        }
    }
}

fn condition(opened: Opened) -> Condition {
    let of_people =
        |sentences: Vec<String>| sentences.iter().map(|it| sanitize_message(it)).collect();
    Condition {
        allocated_bytes: opened.allocated_bytes,
        is_cut_off: opened.is_cut_off,
        damage: of_people(opened.damage),
        mended: of_people(opened.mended),
    }
}
