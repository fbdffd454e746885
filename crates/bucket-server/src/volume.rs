//! A volume, and the connections that have it open.
//!
//! # Rules
//! - At most one connection may write: the current one of the latest session. Every request checks
//!   this under the volume's lock. So a late request of an older connection is refused.
//! - Readers are admitted while no connection may write. Their requests are refused once a
//!   connection may write: a forgotten reader never locks out an owner.
//! - After its writer has disconnected, the store stays open for a while, with its unflushed
//!   writes. A writer that resumes in time finds them. Nothing is flushed without a request.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use oblivio_core::StoreError;
use oblivio_core::store::{Capabilities, Piece, TreeShape, shapes_of};
use oblivio_shares::host::Host;
use oblivio_store::{BoxedStore, Condition, OpenedStore, StoreOptions};
use oblivio_wire::keys::PublicKey;
use oblivio_wire::message::put_data_head;
use oblivio_wire::{FailureKind, Opened};

use super::admission::ClosableStream;
use super::clock;
use super::connection::Unanswered;
use super::metrics::Metrics;
use super::peer_links::SharedVolumeId;
use super::refusal::Refusal;
use super::session;
use super::share_host::{Check, ComputeRequest, Idle, ShareHost};
use super::trips::{self, Lengths};
use super::volume_storage::VolumeStorage;

/// The number that readers get in place of a session number. No session has it, so a reader cannot
/// resume as the writer.
const NO_SESSION: u64 = 0;

/// The number of a connection.
pub(super) type ConnectionId = u64;

/// The role of a connection that has a volume open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Writer,
    Reader,
    /// Reads, even while another connection writes.
    Viewer,
}

/// A volume of one client. It need not exist.
pub(super) struct Volume {
    storage: Box<dyn VolumeStorage>,
    /// The computations on the volume's shares. Lock order: before `state`, or with a non-blocking
    /// attempt.
    share_host: ShareHost,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<OpenStore>,
    writer: Option<ConnectionId>,
    readers: BTreeSet<ConnectionId>,
    viewers: BTreeSet<ConnectionId>,
    /// The time since which no connection has the volume open, by the monotonic clock.
    idle_since: Duration,
}

struct OpenStore {
    store: BoxedStore,
    shapes: Vec<TreeShape>,
    condition: Condition,
    incarnation: u64,
    can_write: bool,
    /// Whether there are unflushed writes.
    is_unflushed: bool,
}

impl Volume {
    pub(super) fn new(storage: Box<dyn VolumeStorage>) -> Self {
        Self { storage, share_host: ShareHost::default(), state: Mutex::default() }
    }

    /// Locks the state. After a panic, drops the store first, so that it is opened again.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            self.state.clear_poison();
            let mut state = poisoned.into_inner();
            state.open = None;
            state
        })
    }

    pub(super) fn is_there(&self) -> Result<bool, Refusal> {
        self.storage
            .is_there()
            .map_err(|cause| Refusal::io("check whether a volume exists", &cause))
    }

    /// Creates the volume, and opens it for writing. `check_room` checks the client's quota.
    pub(super) fn create(
        &self,
        who: ConnectionId,
        shapes: &[TreeShape],
        check_room: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<Opened, Refusal> {
        let mut share_host = self.idle_share_host()?;
        let mut state = self.state();
        if self.is_there()? {
            let message = "a volume of this name already exists";
            return Err(Refusal::new(FailureKind::Exists, message));
        }
        check_room()?;
        // Drop what an interrupted creation or removal, or a removal by hand, has left.
        *state = State::default();
        share_host.close();
        let made = self.make(shapes);
        let session = made.inspect_err(|_| self.storage.clear_away())?;
        state.open_store(&*self.storage, &StoreOptions::default())?;
        state.writer = Some(who);
        state.opened(session)
    }

    /// Creates the files of the volume, the store last: without the store the volume does not
    /// exist.
    fn make(&self, shapes: &[TreeShape]) -> Result<u64, Refusal> {
        let made = self.storage.make_ready().and_then(|()| self.next_session());
        let session = made.map_err(|cause| Refusal::io("create a volume", &cause))?;
        self.storage.create(shapes)?;
        Ok(session)
    }

    /// Returns the number of the next session. The number is durable before the client learns it.
    fn next_session(&self) -> io::Result<u64> {
        let session = session::after(self.storage.session()?)?;
        self.storage.keep_session(session)?;
        Ok(session)
    }

    /// Opens the volume for writing, and fences the previous writer and all readers.
    pub(super) fn open_to_write(
        &self,
        who: ConnectionId,
        metrics: &Metrics,
    ) -> Result<Opened, Refusal> {
        let mut state = self.state();
        self.check_is_there()?;
        state.ensure_open_to_write(&*self.storage)?;
        // The new session reads earlier writes, but does not send them again if the server loses
        // them.
        state.flush()?;
        let next = self.next_session();
        let session = next.map_err(|cause| Refusal::io("write the session number", &cause))?;
        state.take_over(who, metrics);
        state.opened(session)
    }

    /// Resumes `session`, if it is the latest one. Fences the previous connection of the session,
    /// and all readers.
    pub(super) fn resume(
        &self,
        who: ConnectionId,
        session: u64,
        metrics: &Metrics,
    ) -> Result<Opened, Refusal> {
        let mut state = self.state();
        self.check_is_there()?;
        if session == NO_SESSION || self.session()? != Some(session) {
            metrics.fenced.increment();
            return Err(Refusal::fenced());
        }
        state.ensure_open_to_write(&*self.storage)?;
        state.take_over(who, metrics);
        state.opened(session)
    }

    /// Opens the volume for reading, if no connection has it open for writing.
    pub(super) fn open_to_read(
        &self,
        who: ConnectionId,
        allow_incomplete: bool,
    ) -> Result<Opened, Refusal> {
        let mut state = self.state();
        self.check_is_there()?;
        if state.writer.is_some() {
            return Err(open_to_write_elsewhere());
        }
        if state.open.is_none() {
            let options = StoreOptions::default()
                .with_read_only(true)
                .with_allow_incomplete(allow_incomplete);
            state.open_store(&*self.storage, &options)?;
        }
        state.flush()?;
        // With a valid session number, a reader could resume as its writer.
        let opened = state.opened(NO_SESSION)?;
        if opened.is_cut_off && !allow_incomplete {
            let message =
                "a part of the store is missing; restore it from a backup, or rescue the rest";
            return Err(Refusal::new(FailureKind::Damaged, message));
        }
        state.readers.insert(who);
        Ok(opened)
    }

    /// Opens the volume for reading, even while another connection writes.
    pub(super) fn open_to_look(&self, who: ConnectionId) -> Result<Opened, Refusal> {
        let mut state = self.state();
        self.check_is_there()?;
        // Opening to write reads the session number. So if it cannot be read, looking must fail,
        // too.
        self.session()?;
        if state.open.is_none() {
            let options = StoreOptions::default().with_read_only(true);
            state.open_store(&*self.storage, &options)?;
        }
        let opened = state.opened(NO_SESSION)?;
        state.viewers.insert(who);
        Ok(opened)
    }

    /// Removes the volume, if no connection has it open.
    pub(super) fn remove(&self) -> Result<(), Refusal> {
        let mut share_host = self.idle_share_host()?;
        let mut state = self.state();
        self.check_is_there()?;
        if !state.is_idle() {
            return Err(Refusal::new(
                FailureKind::InUse,
                "another connection has this volume open",
            ));
        }
        state.open = None;
        share_host.close();
        self.storage.remove().map_err(|cause| Refusal::io("remove a volume", &cause))
    }

    /// Blocks computations until the returned guard is dropped.
    fn idle_share_host(&self) -> Result<Idle<'_>, Refusal> {
        self.share_host.if_idle().ok_or_else(|| {
            let message = "a computation on the shares of this volume is still running";
            Refusal::new(FailureKind::InUse, message)
        })
    }

    fn check_is_there(&self) -> Result<(), Refusal> {
        self.is_there()?.then_some(()).ok_or_else(Refusal::no_volume)
    }

    fn session(&self) -> Result<Option<u64>, Refusal> {
        self.storage.session().map_err(|cause| Refusal::io("read the session number", &cause))
    }

    /// Reads pieces, and appends the encoded answer to `out`. `grant` obtains memory for the
    /// answer.
    pub(super) fn read(
        &self,
        who: (ConnectionId, Role),
        number: u64,
        pieces: &[Piece],
        bytes_max: usize,
        grant: impl FnOnce(u64) -> io::Result<()>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unanswered> {
        let measured = self.state().open_store_of(who)?.measure(pieces, bytes_max)?;
        // Without the lock, so that waiting for memory does not block other connections.
        grant(measured.sum as u64)?;
        put_data_head(out, number, measured.sum);
        let mut state = self.state();
        let open = state.open_store_of(who)?;
        trips::read(&mut *open.store, pieces, &measured, out).map_err(Refusal::from)?;
        Ok(())
    }

    pub(super) fn write(
        &self,
        who: (ConnectionId, Role),
        pieces: &[Piece],
        bytes: &[u8],
    ) -> Result<(), Refusal> {
        let mut state = self.state();
        let open = state.store_to_write_of(who)?;
        let measured = open.measure(pieces, bytes.len())?;
        if measured.sum != bytes.len() {
            return Err(Refusal::invalid("the bytes of a write do not match its pieces"));
        }
        open.is_unflushed = true;
        let written = trips::write(&mut *open.store, pieces, &measured, bytes);
        written.map_err(|error| state.give_up(error))
    }

    pub(super) fn flush(
        &self,
        who: (ConnectionId, Role),
        metrics: &Metrics,
    ) -> Result<(), Refusal> {
        let mut state = self.state();
        state.open_store_of(who)?;
        if who.1 != Role::Writer {
            return Ok(());
        }
        let begun = clock::now();
        let flushed = state.flush();
        metrics.flushes.observe(clock::now().saturating_sub(begun));
        flushed?;
        // If the file was removed by hand, its contents are lost once it is closed.
        self.check_is_there().inspect_err(|_| state.open = None)
    }

    /// Passes a message of the client to the share computations. Writers may send any message;
    /// other connections may only ask for the epoch.
    pub(super) fn compute(
        &self,
        who: (ConnectionId, Role),
        volume_id: &SharedVolumeId,
        request: ComputeRequest<'_>,
        check: &Check<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let message = request.message;
        let may_ask = || {
            let mut state = self.state();
            if Host::is_progress_request(message) {
                state.open_store_of(who).map(drop)
            } else {
                state.store_to_write_of(who).map(drop)
            }
        };
        self.share_host.compute(&*self.storage, may_ask, volume_id, request, check)
    }

    /// Admits another server, over a connection that `link` can close. Returns the server's number.
    pub(super) fn join(
        &self,
        peer: PublicKey,
        who: ConnectionId,
        link: Box<dyn ClosableStream>,
    ) -> Result<u8, Refusal> {
        // If no client has the volume open, its idle time begins now.
        self.state().idle_since = clock::now();
        let joined = self.share_host.connect(&*self.storage, peer, who, link);
        self.close_computer_if_useless(&self.state());
        joined
    }

    /// Passes a message from another server to the share computations.
    pub(super) fn take_dealt(
        &self,
        server: u8,
        who: ConnectionId,
        message: &[u8],
    ) -> Result<(), Refusal> {
        self.share_host.take(server, who, message)
    }

    /// Notes the end of another server's connection. Returns whether it was the current one.
    pub(super) fn part(&self, server: u8, who: ConnectionId) -> bool {
        let was_connected = self.share_host.disconnect(server, who);
        self.close_computer_if_useless(&self.state());
        was_connected
    }

    /// Closes the computations if the store is closed, no computation is running, and neither
    /// clients nor other servers are connected to the volume.
    fn close_computer_if_useless(&self, state: &State) {
        if state.is_idle()
            && state.open.is_none()
            && let Some(mut share_host) = self.share_host.if_idle()
            && !share_host.has_peers()
        {
            share_host.close();
        }
    }

    /// Notes the end of a connection.
    pub(super) fn leave(&self, who: ConnectionId) {
        let mut state = self.state();
        state.writer.take_if(|writer| *writer == who);
        state.readers.remove(&who);
        state.viewers.remove(&who);
        if state.is_idle() {
            state.idle_since = clock::now();
            // A completely flushed store loses nothing when it is closed, and the next opening sees
            // changes that were made to its file meanwhile.
            state.open.take_if(|open| !open.is_unflushed);
            self.close_computer_if_useless(&state);
        }
    }

    /// The time since which no client has used the volume's store or computations. `None` if they
    /// are in use or closed.
    pub(super) fn idle_since(&self) -> Option<Duration> {
        let state = self.try_state()?;
        let is_open = state.open.is_some() || self.share_host.is_open();
        (state.is_idle() && is_open).then_some(state.idle_since)
    }

    /// Aborts all waiting for other servers, because this server must stop.
    pub(super) fn give_up_computing(&self) {
        self.share_host.give_up();
    }

    /// Whether the computations are open.
    pub(super) fn computes(&self) -> bool {
        self.share_host.is_open()
    }

    /// Whether the store is open.
    pub(super) fn is_open(&self) -> bool {
        // A locked state means that the store is in use.
        self.try_state().is_none_or(|state| state.open.is_some())
    }

    /// Closes the store and the computations, if no client uses them. Unflushed writes are lost.
    pub(super) fn close_if_idle(&self) {
        if let Some(mut state) = self.try_state()
            && state.is_idle()
        {
            state.open = None;
            self.share_host.if_idle().iter_mut().for_each(Idle::close);
        }
    }

    fn try_state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => {
                drop(poisoned);
                Some(self.state())
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl State {
    fn is_idle(&self) -> bool {
        self.writer.is_none() && self.readers.is_empty() && self.viewers.is_empty()
    }

    /// The store, if the connection still has it open.
    fn open_store_of(
        &mut self,
        (who, role): (ConnectionId, Role),
    ) -> Result<&mut OpenStore, Refusal> {
        match role {
            Role::Writer if self.writer != Some(who) => return Err(Refusal::fenced()),
            Role::Reader if !self.readers.contains(&who) => return Err(open_to_write_elsewhere()),
            Role::Viewer if !self.viewers.contains(&who) => return Err(closed()),
            Role::Writer | Role::Reader | Role::Viewer => (),
        }
        self.open.as_mut().ok_or_else(closed)
    }

    /// The store, if the connection may write.
    fn store_to_write_of(&mut self, who: (ConnectionId, Role)) -> Result<&mut OpenStore, Refusal> {
        let open = self.open_store_of(who)?;
        if who.1 != Role::Writer {
            let message = "the volume is open to read only; open it to write";
            return Err(Refusal::new(FailureKind::Refused, message));
        }
        Ok(open)
    }

    /// Makes all writes to the store durable.
    fn flush(&mut self) -> Result<(), Refusal> {
        let Some(open) = self.open.as_mut().filter(|open| open.can_write) else { return Ok(()) };
        match open.store.flush() {
            Ok(()) => open.is_unflushed = false,
            Err(error) => return Err(self.give_up(error)),
        }
        Ok(())
    }

    /// Ensures that the store is open for writing. If the store is already open, it stays open with
    /// its unflushed writes.
    fn ensure_open_to_write(&mut self, storage: &dyn VolumeStorage) -> Result<(), Refusal> {
        if self.open.as_ref().is_some_and(|open| open.can_write) {
            return Ok(());
        }
        self.readers.clear();
        // Close it first: it locks out writers.
        self.open = None;
        self.open_store(storage, &StoreOptions::default())
    }

    fn open_store(
        &mut self,
        storage: &dyn VolumeStorage,
        options: &StoreOptions,
    ) -> Result<(), Refusal> {
        let incarnation =
            session::draw().map_err(|cause| Refusal::io("draw a random number", &cause))?;
        let OpenedStore { store, mut condition } = storage.open(options)?;
        // Only for information; 0 if it cannot be determined.
        condition.allocated_bytes += storage.shares_allocated_bytes().unwrap_or_default();
        check_parts(store.capabilities())?;
        let shapes = shapes_of(&*store);
        let can_write = !options.read_only;
        self.open = Some(OpenStore {
            store,
            shapes,
            condition,
            incarnation,
            can_write,
            is_unflushed: false,
        });
        Ok(())
    }

    /// Makes `who` the writer, and fences the previous writer and all readers.
    fn take_over(&mut self, who: ConnectionId, metrics: &Metrics) {
        metrics.fenced.add(u64::from(self.writer.is_some()));
        self.readers.clear();
        self.writer = Some(who);
    }

    fn opened(&self, session: u64) -> Result<Opened, Refusal> {
        let open = self.open.as_ref().ok_or_else(closed)?;
        let Condition { allocated_bytes, is_cut_off, damage, mended } = open.condition.clone();
        Ok(Opened {
            session,
            incarnation: open.incarnation,
            shapes: open.shapes.clone(),
            allocated_bytes,
            is_cut_off,
            damage,
            mended,
        })
    }

    /// Closes the store after a failed write or flush. The next connection opens it again, and the
    /// new incarnation shows that writes may be lost.
    fn give_up(&mut self, error: StoreError) -> Refusal {
        self.open = None;
        error.into()
    }
}

impl OpenStore {
    fn measure(&self, pieces: &[Piece], bytes_max: usize) -> Result<Lengths, Refusal> {
        Lengths::measure(&self.shapes, pieces, bytes_max)
    }
}

fn open_to_write_elsewhere() -> Refusal {
    Refusal::new(FailureKind::InUse, "another client has this volume open to write")
}

/// Checks that the store can read and write parts of buckets, which clients expect.
fn check_parts(there_are: Capabilities) -> Result<(), Refusal> {
    let missing = Capabilities::PARTS.missing_from(there_are);
    if missing == Capabilities::NONE {
        return Ok(());
    }
    let message = format!(
        "the server's store of this volume lacks a capability that clients need: {missing}; keep \
         the volume in another store"
    );
    Err(Refusal::new(FailureKind::Refused, message))
}

fn closed() -> Refusal {
    Refusal::new(FailureKind::Failed, "the store was closed after an error; open it again")
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use oblivio_core::geometry::BucketId;
    use oblivio_core::store::{LevelShape, Part, TreeId};
    use oblivio_core::view::{Event, Operation, Recorder};
    use oblivio_store::OpenError;
    use oblivio_testkit::whole_buckets;
    use oblivio_wire::Answer;
    use oblivio_wire::message::DATA_BYTES;
    use tempfile::TempDir;

    use super::*;
    use crate::volume_storage::VolumeFolder;

    const OWNER: (ConnectionId, Role) = (1, Role::Writer);
    const BUCKET_BYTES: usize = 200;

    fn bucket() -> Piece {
        Piece { tree: TreeId(0), bucket: BucketId::new(0, 0), part: Part::Whole }
    }

    /// The shape of a tree with a single bucket.
    fn shape() -> TreeShape {
        TreeShape::new(vec![LevelShape {
            buckets: 1,
            slots: 0,
            header_bytes: 8,
            slots_offset: 8,
            slot_bytes: 0,
            bucket_bytes: BUCKET_BYTES as u64,
        }])
    }

    fn storage(folder: &TempDir) -> VolumeFolder {
        VolumeFolder(folder.path().join("client/volume"))
    }

    /// Returns a volume that its owner has created and written.
    fn written(folder: &TempDir) -> (Volume, Opened) {
        written_at(Box::new(storage(folder)))
    }

    fn written_at(storage: Box<dyn VolumeStorage>) -> (Volume, Opened) {
        let volume = Volume::new(storage);
        let made = volume.create(OWNER.0, &[shape()], || Ok(()));
        // A forked child of another test holds the lock of the store until it executes its program.
        let opened = made.or_else(|refusal| {
            assert_eq!(refusal.kind, FailureKind::InUse, "{refusal:?}");
            std::thread::sleep(Duration::from_millis(200));
            volume.open_to_write(OWNER.0, &Metrics::default())
        });
        let opened = opened.unwrap();
        volume.write(OWNER, &[bucket()], &[7; BUCKET_BYTES]).unwrap();
        (volume, opened)
    }

    fn read(
        volume: &Volume,
        who: (ConnectionId, Role),
        grant: impl FnOnce(u64),
    ) -> Result<Vec<u8>, Refusal> {
        let mut answer = Vec::new();
        let grant = |bytes| {
            grant(bytes);
            Ok(())
        };
        match volume.read(who, 3, &[bucket()], 1000, grant, &mut answer) {
            Ok(()) => Ok(answer),
            Err(Unanswered::Refused(refusal)) => Err(refusal),
            Err(Unanswered::NoMemory(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn after_a_panic_the_store_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, before) = written(&folder);
        let metrics = Metrics::default();
        let panic = || {
            let in_the_middle = catch_unwind(AssertUnwindSafe(|| {
                let _state = volume.state();
                resume_unwind(Box::new("half done"))
            }));
            assert!(in_the_middle.is_err());
        };
        panic();
        let refused = read(&volume, OWNER, |_| ()).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Failed);
        let after = volume.resume(2, before.session, &metrics).unwrap();
        assert_ne!(after.incarnation, before.incarnation);
        read(&volume, (2, Role::Writer), |_| ()).unwrap();
        // The check for idle stores also handles a panic, and does not consider the store in use.
        panic();
        assert!(!volume.is_open());
        let last = volume.resume(3, before.session, &metrics).unwrap();
        assert_ne!(last.incarnation, after.incarnation);
    }

    #[test]
    fn a_volume_removed_by_hand_fails_flushes_and_is_not_recreated() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, _) = written(&folder);
        volume.flush(OWNER, &Metrics::default()).unwrap();
        std::fs::remove_dir_all(folder.path()).unwrap();
        let refused = volume.flush(OWNER, &Metrics::default()).unwrap_err();
        assert_eq!(refused.kind, FailureKind::NoVolume);
        assert!(!volume.is_open());
        volume.create(OWNER.0, &[shape()], || Ok(())).unwrap_err();
        assert!(!folder.path().exists());
    }

    /// Late requests of a fenced client are refused, even when no other client writes any more.
    #[test]
    fn a_fenced_connection_stays_fenced_after_the_other_has_left() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, _) = written(&folder);
        volume.open_to_write(2, &Metrics::default()).unwrap();
        volume.write((2, Role::Writer), &[bucket()], &[9; BUCKET_BYTES]).unwrap();
        volume.leave(2);
        let late = volume.write(OWNER, &[bucket()], &[7; BUCKET_BYTES]).unwrap_err();
        assert_eq!(late.kind, FailureKind::Fenced);
        assert_eq!(read(&volume, OWNER, |_| ()).unwrap_err().kind, FailureKind::Fenced);
    }

    /// The server flushes the writes of the old session before a new session begins. The new
    /// session can read these writes, but could not send them again if the server lost them.
    #[test]
    fn writes_are_flushed_before_another_client_takes_over() {
        let folder = tempfile::tempdir().unwrap();
        let flushes = Arc::<AtomicUsize>::default();
        let count = flushes.clone();
        let counted = move |store| -> BoxedStore {
            let count = count.clone();
            Box::new(Recorder::new(store, move |event: &Event, _: &[u8]| {
                count.fetch_add((event.operation == Operation::Flush).into(), Ordering::Relaxed);
            }))
        };
        let (volume, _) = written_at(Box::new(Wrapped(storage(&folder), counted)));
        // Nonzero if it had to be opened a second time.
        let before = flushes.load(Ordering::Relaxed);
        volume.open_to_write(2, &Metrics::default()).unwrap();
        assert_eq!(flushes.load(Ordering::Relaxed), before + 1);
    }

    /// A read waits for memory before it reads the store. Other connections can write or take over
    /// during the wait.
    #[test]
    fn memory_for_an_answer_is_granted_before_the_read() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, _) = written(&folder);
        let mut granted = 0;
        let answer = read(&volume, OWNER, |bytes| {
            granted = bytes;
            volume.write(OWNER, &[bucket()], &[8; BUCKET_BYTES]).unwrap();
        });
        let answer = answer.unwrap();
        assert_eq!(granted as usize, answer.len() - DATA_BYTES);
        let data = Answer::Data { number: 3, bytes: vec![8; BUCKET_BYTES].into() };
        assert_eq!(Answer::decode(&answer.into()), Ok(data));
        let fenced = read(&volume, OWNER, |_| {
            volume.open_to_write(2, &Metrics::default()).unwrap();
        });
        assert_eq!(fenced.unwrap_err().kind, FailureKind::Fenced);
    }

    /// Storage that wraps each store that it opens.
    struct Wrapped<W>(VolumeFolder, W);

    impl<W: Fn(BoxedStore) -> BoxedStore + Send + Sync> VolumeStorage for Wrapped<W> {
        fn is_there(&self) -> io::Result<bool> {
            self.0.is_there()
        }
        fn make_ready(&self) -> io::Result<()> {
            self.0.make_ready()
        }
        fn create(&self, shapes: &[TreeShape]) -> Result<(), OpenError> {
            self.0.create(shapes)
        }
        fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
            let OpenedStore { store, condition } = self.0.open(options)?;
            Ok(OpenedStore { store: self.1(store), condition })
        }
        fn remove(&self) -> io::Result<()> {
            self.0.remove()
        }
        fn clear_away(&self) {
            self.0.clear_away();
        }
        fn session(&self) -> io::Result<Option<u64>> {
            self.0.session()
        }
        fn keep_session(&self, session: u64) -> io::Result<()> {
            self.0.keep_session(session)
        }
    }

    #[test]
    fn a_store_without_parts_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        drop(written(&folder));
        let volume = Volume::new(Box::new(Wrapped(storage(&folder), |store| -> BoxedStore {
            Box::new(whole_buckets(store))
        })));
        for refused in [
            volume.open_to_write(2, &Metrics::default()),
            volume.open_to_read(2, false),
            volume.open_to_look(2),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind, FailureKind::Refused);
            assert!(refused.message.contains("parts of buckets"), "{}", refused.message);
        }
        assert!(!volume.is_open());
    }
}
