//! Creates, opens and removes stores over objects.

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use oblivio_core::store::TreeShape;
use oblivio_core::{StoreError, StoreErrorKind};
use rand::TryRng;
use rand::rngs::SysRng;

use super::ahead::Runs;
use super::chunk::{Entries, FOOTER_BYTES, Section, StoreName, Trailer};
use super::creation::{Created, create, get};
use super::head::{
    CONSTANT_MAX, FullHead, Geometry, HEAD_BYTES_MAX, Head, OpenChunk, PastSession, SessionName,
    TailRef, encode_fence,
};
use super::index::{Index, Slot};
use super::probe::probe;
use super::small::SmallTrees;
use super::streams::Streams;
use super::{PackedOptions, PackedStore, Writer};
use crate::StoreFailure;
use crate::container::Container;
use crate::error::{OpenError, OpenErrorKind};
use crate::objects::{Listed, ObjectName, Objects, Prefix, Synced};
use crate::opener::Condition;
use crate::prefetched::{PREFETCHED_BYTES_MAX, Prefetched};

/// Maximum number of attempts to create the fence of an opening. Each one after the first follows
/// another client's opening at the same time.
const FENCES_MAX: usize = 64;

/// The name of a store in the fence of a removal.
const REMOVED: StoreName = [0; 16];

/// Maximum number of listings of heads in an opening. Each one after the first follows the deletion
/// of a head that was listed.
const LISTINGS_MAX: usize = 16;

/// Maximum number of objects in a listing.
const LISTED_MAX: usize = 1 << 26;

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedMode {
    /// To read and write. A client that had it open is fenced.
    Write,
    /// For reading, even while another client writes. Data may change between reads.
    Read,
}

/// What exists under the prefix of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// No objects, or only the fence that a removal leaves.
    Nothing,
    /// Objects, of a store or of an interrupted creation or removal.
    Objects,
}

/// A state that was read, and the newest head of any kind.
struct Found {
    /// `None` if there are heads, but no whole full one.
    full: Option<(u64, FullHead)>,
    newest: u64,
    void: Vec<u64>,
    /// Fences above the state.
    fences: Vec<u64>,
}

impl PackedStore {
    /// Creates a store with trees of these shapes, `TreeId(0)` first, and opens it to write. Tests
    /// first whether the service keeps the contract of [`Objects`].
    ///
    /// # Errors
    /// If objects exist under the prefix, the service is unsuitable, the shapes are invalid, or the
    /// engine fails. After an error nothing is left behind, except if the engine failed.
    pub fn create(
        mut objects: Box<dyn Objects>,
        shapes: &[TreeShape],
        options: &PackedOptions,
    ) -> Result<Self, OpenError> {
        Container::new(shapes)?;
        check_options(options)?;
        let Some(newest) = vacancy(&mut *objects)? else {
            let message = "objects exist there already; choose another place, or remove them first \
                           if they are left of an interrupted creation (oblivio remove)";
            return Err(OpenError::new(OpenErrorKind::Exists, message));
        };
        probe(&mut *objects, u64::from_le_bytes(draw()?))?;
        let geometry =
            Geometry { chunk_bytes: options.chunk_bytes, small_bytes_max: options.small_bytes_max };
        let streams = Streams::new(shapes.to_vec(), geometry.chunk_bytes);
        let session_name = draw()?;
        let writer = Writer {
            // No earlier session of this place had the number.
            session: newest.saturating_add(1),
            session_name,
            streams: Vec::new(),
            next_tail: 1,
            tail: None,
            is_dirty: true,
            new_chunk_bytes: 0,
            unsynced_bytes_max: options.unsynced_bytes_max,
            unsynced: Vec::new(),
            past_sessions: Vec::new(),
            full_head: None,
            older_heads: Vec::new(),
            unneeded: Vec::new(),
            unneeded_before: Vec::new(),
            heads: 0,
        };
        let mut store = Self {
            store: draw()?,
            geometry,
            index: Index::new(streams.columns().len()),
            small: SmallTrees::new(shapes, geometry.small_bytes_max),
            streams,
            head: newest,
            void_heads: Vec::new(),
            writer: Some(writer),
            state: None,
            previous_session: None,
            has_adopted: false,
            tail_entries: HashMap::new(),
            prefetched: Prefetched::new(PREFETCHED_BYTES_MAX),
            runs: Runs::default(),
            tickets: Default::default(),
            next_get: 1,
            buffer: Vec::new(),
            spans: Vec::new(),
            failure: StoreFailure::default(),
            objects,
        };
        match store.write_head() {
            Ok(()) => Ok(store),
            Err(error) if error.kind() == StoreErrorKind::Fenced => {
                let message = "another client has just created a volume with this prefix; choose \
                               another prefix";
                Err(OpenError::caused_by(OpenErrorKind::Exists, message, error))
            }
            Err(error) => Err(open_error("create the first head", error)),
        }
    }

    /// Opens an existing store.
    ///
    /// # Errors
    /// [`OpenErrorKind::Missing`] if there is no store, [`OpenErrorKind::Damaged`] if no whole head
    /// is left, [`OpenErrorKind::UnknownVersion`] if a newer program wrote the newest head, or the
    /// errors of the engine.
    pub fn open(
        mut objects: Box<dyn Objects>,
        mode: PackedMode,
        options: &PackedOptions,
    ) -> Result<(Self, Condition), OpenError> {
        // Before anything is changed: a store of a newer program is left alone.
        let found = find_state(&mut *objects)?;
        let store = match mode {
            PackedMode::Read => {
                let mut store = from_state(objects, found)?;
                store.read_tail().map_err(|error| open_error("read the tail", error))?;
                store
            }
            PackedMode::Write => {
                check_state(found.full.as_ref().map(|(_, full)| full))?;
                let session_name = draw()?;
                let store = found.full.as_ref().map(|(_, full)| full.store).unwrap_or_default();
                let fence = create_fence(&mut *objects, found.newest, store, session_name)?;
                // The older writer may have created heads until the fence existed.
                let found = find_state(&mut *objects)?;
                let mut store = from_state(objects, found)?;
                store.head = fence;
                store.take_over(session_name, fence, options)?;
                store
            }
        };
        let condition = Condition { allocated_bytes: store.live_bytes(), ..Condition::default() };
        Ok((store, condition))
    }

    /// Removes all objects of a store, or of an interrupted creation or removal, except for one
    /// fence of a hundred bytes. It stays for ever, so that a client that has the store open fails,
    /// even after another store was created in the same place.
    ///
    /// # Errors
    /// [`OpenErrorKind::Missing`] if there are no objects, or the errors of the engine. What is
    /// left can be removed by another call.
    pub fn remove(mut objects: Box<dyn Objects>) -> Result<(), OpenError> {
        let objects = &mut *objects;
        if vacancy(objects)?.is_some() {
            return Err(missing());
        }
        let newest = list_heads(objects)?.last().and_then(|listed| number_of(listed.name));
        let fence = create_fence(objects, newest.unwrap_or(0), REMOVED, draw()?)?;
        let fence = ObjectName::Head(fence);
        // Heads last, so that an interrupted removal is still found.
        for keeps_heads in [true, false] {
            let mut after = None;
            loop {
                let page = objects.list(Prefix::All, after);
                let page = page.map_err(|error| open_error("list objects", error))?;
                let Some(last) = page.last() else { break };
                if after.is_some_and(|after| last.name <= after) {
                    break;
                }
                after = Some(last.name);
                let is_kept = |name| name == fence || keeps_heads && number_of(name).is_some();
                let names = page.iter().map(|listed| listed.name);
                let names: Vec<_> = names.filter(|name| !is_kept(*name)).collect();
                objects.delete(&names).map_err(|error| open_error("delete objects", error))?;
            }
        }
        Ok(())
    }

    /// What exists under the prefix of a store.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn remains(mut objects: Box<dyn Objects>) -> Result<Remains, OpenError> {
        remains(&mut *objects)
    }

    /// Reads the newest state again, in a store that is open only for reading. After an error the
    /// store fails, because its parts may be of different states.
    pub(super) fn reload(&mut self) -> Result<(), StoreError> {
        self.try_reload().map_err(|error| self.failure.record(error))
    }

    fn try_reload(&mut self) -> Result<(), StoreError> {
        let found = find_state(&mut *self.objects).map_err(|error| {
            let kind = match error.kind() {
                OpenErrorKind::Unreachable => StoreErrorKind::Unreachable,
                OpenErrorKind::NotAdmitted => StoreErrorKind::Refused,
                OpenErrorKind::UnknownVersion => StoreErrorKind::UnknownVersion,
                OpenErrorKind::Locked => StoreErrorKind::Fenced,
                _ => StoreErrorKind::Damaged,
            };
            StoreError::caused_by(kind, error.to_string(), error)
        })?;
        let Some((number, full)) = found.full else { return Ok(()) };
        if full.streams.shapes() != self.streams.shapes() || full.store != self.store {
            let message = "storage shows another store than before; open the volume again";
            return Err(StoreError::new(StoreErrorKind::Damaged, message));
        }
        self.head = number.max(found.newest);
        self.void_heads.clear();
        let tail = full.tail;
        (self.streams, self.index, self.small) = (full.streams, full.index, full.small);
        for ticket in std::mem::take(&mut self.tickets).into_values() {
            self.objects.forget(ticket);
        }
        self.prefetched = Prefetched::new(PREFETCHED_BYTES_MAX);
        self.load_tail(tail)
    }

    /// Continues the state that was read as a new session: adopts chunks that the last session
    /// created after its last head, and creates a head of this session.
    fn take_over(
        &mut self,
        session_name: SessionName,
        session: u64,
        options: &PackedOptions,
    ) -> Result<(), OpenError> {
        let reading = |error| open_error("read the state", error);
        let state = self.state.take().ok_or_else(no_whole_head)?;
        let mut writer = Writer {
            session,
            session_name,
            streams: Vec::new(),
            next_tail: 1,
            tail: None,
            is_dirty: true,
            new_chunk_bytes: 0,
            unsynced_bytes_max: options.unsynced_bytes_max,
            unsynced: Vec::new(),
            past_sessions: Vec::new(),
            full_head: Some(state.number),
            older_heads: state.older_heads,
            unneeded: state.unneeded,
            unneeded_before: Vec::new(),
            heads: 0,
        };
        let mut last = PastSession {
            session: state.session,
            next_chunks: state.open_chunks.iter().map(|chunk| chunk.number).collect(),
            next_tail: state.next_tail,
        };
        let adopted = self.created_since(&mut last).map_err(reading)?;
        // Sessions that created no head may have created chunks and a tail.
        let without_head = state.fences.iter().filter(|fence| **fence != session);
        let without_head = without_head.map(|fence| PastSession {
            session: *fence,
            next_chunks: Vec::new(),
            next_tail: 0,
        });
        let without_head: Vec<_> = without_head.collect();
        for mut past in state.past_sessions.into_iter().chain(without_head.iter().cloned()) {
            for Listed { name, .. } in self.created_since(&mut past).map_err(reading)? {
                let is_live = match name {
                    ObjectName::Chunk { session, stream, number } => {
                        self.chunk_is_live(session, stream, number)
                    }
                    _ => false,
                };
                if !is_live {
                    writer.unneeded.push(name);
                }
            }
        }
        writer.past_sessions = without_head;
        writer.past_sessions.push(last);
        self.writer = Some(writer);
        for listed in adopted {
            let from = match unknown_entries(listed.name, &state.open_chunks) {
                Some(from) => from,
                None => continue,
            };
            // Retained first, so that an adopted chunk cannot disappear.
            let is_kept = !(options.has_late_syncs || options.unsynced_bytes_max.is_some())
                || self.retain_unsynced(listed).map_err(reading)?;
            if is_kept && self.adopt(listed, from).map_err(reading)? {
                self.has_adopted = true;
                continue;
            }
            if let Some(writer) = &mut self.writer {
                writer.unneeded.push(listed.name);
            }
        }
        self.load_tail(state.tail).map_err(reading)?;
        self.append_tail_entries(state.tail).map_err(reading)?;
        self.write_head().map_err(|error| open_error("create a head", error))
    }

    /// Lists the chunks and tails that a session created after the numbers in `past`, and advances
    /// these numbers.
    fn created_since(&mut self, past: &mut PastSession) -> Result<Vec<Listed>, StoreError> {
        let session = past.session;
        let mut found = Vec::new();
        for (stream, next) in (0..).zip(&mut past.next_chunks) {
            let after =
                next.checked_sub(1).map(|number| ObjectName::Chunk { session, stream, number });
            let after = after.or_else(|| {
                let stream = stream.checked_sub(1)?;
                Some(ObjectName::Chunk { session, stream, number: u64::MAX })
            });
            list_all(&mut *self.objects, Prefix::Stream { session, stream }, after, &mut found)?;
            if let Some(ObjectName::Chunk { number, .. }) = found.last().map(|last| last.name)
                && found.last().is_some_and(|last| is_in(last.name, session, stream))
            {
                *next = (*next).max(number.saturating_add(1));
            }
        }
        // Streams that are newer than the head, and tails.
        let known = past.next_chunks.len() as u16;
        let after = known.checked_sub(1).map(|stream| ObjectName::Chunk {
            session,
            stream,
            number: u64::MAX,
        });
        let mut newer = Vec::new();
        list_all(&mut *self.objects, Prefix::Session(session), after, &mut newer)?;
        newer.retain(|listed| match listed.name {
            ObjectName::Tail { number, .. } => number >= past.next_tail,
            _ => true,
        });
        for listed in &newer {
            match listed.name {
                ObjectName::Chunk { stream, number, .. } => {
                    let at = usize::from(stream);
                    if past.next_chunks.len() <= at {
                        past.next_chunks.resize(at + 1, 0);
                    }
                    past.next_chunks[at] = past.next_chunks[at].max(number.saturating_add(1));
                }
                ObjectName::Tail { number, .. } => past.next_tail = number.saturating_add(1),
                _ => {}
            }
        }
        found.extend(newer);
        Ok(found)
    }

    /// Adds the buckets of a chunk to the index, if the chunk is whole, from entry `from` on. They
    /// count as writes that were not flushed and survived. Without them, storage would forget
    /// evictions that the client needs in order to detect an old copy of its directory (ADR 5).
    fn adopt(&mut self, listed: Listed, from: u64) -> Result<bool, StoreError> {
        let ObjectName::Chunk { session, stream, number } = listed.name else { return Ok(false) };
        let Some(trailer) = self.trailer_of(listed)? else { return Ok(false) };
        let is_ours = (trailer.store, trailer.session) == (self.store, session);
        let [section] = &trailer.sections[..] else { return Ok(false) };
        if !is_ours
            || (section.stream, section.number) != (stream, number)
            || section.check(&mut self.streams).is_none()
        {
            return Ok(false);
        }
        let Some(shape) = self.streams.get(stream).cloned() else { return Ok(false) };
        let is_full = section.places.len() as u64 == shape.slots_per_chunk;
        let start = number.checked_mul(shape.slots_per_chunk);
        let end = start.and_then(|start| start.checked_add(shape.slots_per_chunk));
        let (true, Some(start), Some(_)) = (is_full, start, end) else { return Ok(false) };
        let entries = (start..).zip(&section.places);
        for (number, place) in entries.skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            for column in &shape.columns {
                let to = Slot { session, stream, number };
                if let Some(displaced) = self.index.set(*column, *place, to) {
                    self.note_displaced(displaced);
                }
            }
        }
        Ok(true)
    }

    /// Keeps a chunk of the last session in memory until the next sync, if the engine may lose it:
    /// that session may have died before it synced. Creating it again lets the sync cover it.
    /// Returns `false` if the chunk is cut off or already lost.
    fn retain_unsynced(&mut self, listed: Listed) -> Result<bool, StoreError> {
        let Self { objects, writer: Some(writer), .. } = self else { return Ok(true) };
        let Listed { name, bytes } = listed;
        let Some(mut whole) = get(&mut **objects, name, 0..bytes)? else { return Ok(false) };
        let footer = whole.len().checked_sub(FOOTER_BYTES).map(|start| whole.slice(start..));
        let trailer = footer.and_then(|footer| Trailer::bytes_from(&footer));
        let Some(data) = trailer.and_then(|trailer| whole.len().checked_sub(trailer)) else {
            return Ok(false);
        };
        let trailer = whole.split_off(data);
        let parts = vec![whole, trailer];
        let created = create(&mut **objects, name, parts.clone())?;
        if created == Created::Whole && writer.unsynced_bytes_max.is_some() {
            writer.unsynced.push((name, parts));
        }
        Ok(created == Created::Whole)
    }

    /// The trailer of an object; `None` if the object is cut off or damaged.
    fn trailer_of(&mut self, listed: Listed) -> Result<Option<Trailer>, StoreError> {
        let Listed { name, bytes } = listed;
        let Some(start) = bytes.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let footer = get(&mut *self.objects, name, start..bytes)?.unwrap_or_default();
        let trailer_bytes = Trailer::bytes_from(&footer).map(|bytes| bytes as u64);
        let Some(start) = trailer_bytes.and_then(|trailer| bytes.checked_sub(trailer)) else {
            return Ok(None);
        };
        let trailer = get(&mut *self.objects, name, start..bytes)?.unwrap_or_default();
        let Some(trailer) = Trailer::decode(&trailer) else { return Ok(None) };
        let entry_bytes = |section: &Section| {
            let columns = section.columns.iter().map(|(tree, level)| {
                let column = self.streams.column(*tree, *level)?;
                Some(self.streams.columns()[column].bucket_bytes as u64)
            });
            let bytes: Option<u64> = columns.sum();
            bytes?.checked_mul(section.places.len() as u64)
        };
        let data: Option<u64> = trailer.sections.iter().map(entry_bytes).sum();
        Ok((data == Some(start)).then_some(trailer))
    }

    fn read_tail(&mut self) -> Result<(), StoreError> {
        let tail = self.state.take().and_then(|state| state.tail);
        self.load_tail(tail)
    }

    /// Reads the entries of incomplete chunks into memory.
    fn load_tail(&mut self, tail: Option<TailRef>) -> Result<(), StoreError> {
        self.tail_entries.clear();
        let Some(TailRef { session, number, bytes }) = tail else { return Ok(()) };
        let name = ObjectName::Tail { session, number };
        let damaged = || {
            let message = format!("object {name} is missing or damaged: storage has lost data");
            StoreError::new(StoreErrorKind::Damaged, message)
        };
        let Some(trailer) = self.trailer_of(Listed { name, bytes })? else {
            return Err(damaged());
        };
        // Before the entries are requested: a forged trailer may claim any number of them.
        for section in &trailer.sections {
            section.check(&mut self.streams).ok_or_else(damaged)?;
        }
        let mut rest = get(&mut *self.objects, name, 0..bytes)?.ok_or_else(damaged)?;
        for section in &trailer.sections {
            let shape = self.streams.get(section.stream).ok_or_else(damaged)?;
            let mut entries = Entries { places: section.places.clone(), parts: Vec::new() };
            for _ in &section.places {
                for column in &shape.columns {
                    let bytes = self.streams.columns()[*column].bucket_bytes;
                    if rest.len() < bytes {
                        return Err(damaged());
                    }
                    entries.parts.push(rest.split_to(bytes));
                }
            }
            self.tail_entries.insert((session, section.stream, section.number), entries);
        }
        Ok(())
    }

    /// Appends the entries of incomplete chunks of the last session to chunks of this session, as
    /// far as buckets still lie there.
    fn append_tail_entries(&mut self, tail: Option<TailRef>) -> Result<(), StoreError> {
        let Some(TailRef { session, .. }) = tail else { return Ok(()) };
        let mut loaded: Vec<_> = std::mem::take(&mut self.tail_entries).into_iter().collect();
        loaded.sort_unstable_by_key(|(key, _)| *key);
        for ((_, stream, number), entries) in loaded {
            let Some(shape) = self.streams.get(stream).cloned() else { continue };
            let Some(first) = number.checked_mul(shape.slots_per_chunk) else { continue };
            for (entry, place) in entries.places.iter().enumerate() {
                let slot = Slot { session, stream, number: first + entry as u64 };
                let (mut columns, mut parts) = (Vec::new(), Vec::new());
                for (position, column) in shape.columns.iter().enumerate() {
                    if self.index.get(*column, *place) == Some(slot)
                        && let Some(bytes) = entries.bucket(entry, position, shape.columns.len())
                    {
                        columns.push(*column);
                        // A copy: a slice would keep the whole tail in memory.
                        parts.push(Bytes::copy_from_slice(bytes));
                    }
                }
                if columns.is_empty() {
                    continue;
                }
                match self.streams.stream_of(&columns) {
                    Some(stream) => self.append(stream, *place, parts)?,
                    None => {
                        let message = "the store has too many different groups of buckets";
                        return Err(StoreError::new(StoreErrorKind::Full, message));
                    }
                }
            }
        }
        let Some(TailRef { session, number, .. }) = tail else { return Ok(()) };
        if let Some(writer) = &mut self.writer {
            writer.unneeded.push(ObjectName::Tail { session, number });
        }
        Ok(())
    }
}

/// The parts of a full head that only an opening needs.
pub(super) struct OpeningState {
    number: u64,
    session: u64,
    open_chunks: Vec<OpenChunk>,
    /// Fences above the state: sessions that created no head.
    fences: Vec<u64>,
    next_tail: u64,
    tail: Option<TailRef>,
    past_sessions: Vec<PastSession>,
    older_heads: Vec<u64>,
    unneeded: Vec<ObjectName>,
}

fn from_state(objects: Box<dyn Objects>, found: Found) -> Result<PackedStore, OpenError> {
    let Found { full, newest, void, fences } = found;
    let (number, full) = full.ok_or_else(no_whole_head)?;
    let FullHead { store, session, geometry, streams, index, small, open_chunks, .. } = full;
    let state = OpeningState {
        number,
        session,
        open_chunks,
        fences,
        next_tail: full.next_tail,
        tail: full.tail,
        past_sessions: full.past_sessions,
        older_heads: full.older_heads,
        unneeded: full.unneeded,
    };
    Ok(PackedStore {
        objects,
        store,
        geometry,
        streams,
        index,
        small,
        head: newest,
        void_heads: void,
        writer: None,
        state: Some(state),
        previous_session: Some(session),
        has_adopted: false,
        tail_entries: HashMap::new(),
        prefetched: Prefetched::new(PREFETCHED_BYTES_MAX),
        runs: Runs::default(),
        tickets: Default::default(),
        next_get: 1,
        buffer: Vec::new(),
        spans: Vec::new(),
        failure: StoreFailure::default(),
    })
}

/// The first entry of a chunk that the last head did not know; `None` if it knew all of them.
fn unknown_entries(name: ObjectName, open_chunks: &[OpenChunk]) -> Option<u64> {
    let ObjectName::Chunk { stream, number, .. } = name else { return Some(0) };
    match open_chunks.get(usize::from(stream)) {
        Some(open) if number == open.number => Some(open.entries),
        Some(open) if number < open.next_number => None,
        _ => Some(0),
    }
}

/// Finds the newest full head that is whole.
fn find_state(objects: &mut dyn Objects) -> Result<Found, OpenError> {
    for _ in 0..LISTINGS_MAX {
        if let Some(found) = find_listed_state(objects)? {
            return Ok(found);
        }
    }
    let message = "heads of the volume disappear while they are read: another client writes, or \
                   storage lists deleted objects; try again";
    Err(OpenError::new(OpenErrorKind::Locked, message))
}

/// Finds the newest full head that is whole; `None` if a listed head was deleted meanwhile.
fn find_listed_state(objects: &mut dyn Objects) -> Result<Option<Found>, OpenError> {
    let heads = list_heads(objects)?;
    let newest = heads.last().and_then(|listed| number_of(listed.name)).ok_or_else(missing)?;
    if heads.len() == 1 && vacancy(objects)?.is_some() {
        return Err(missing());
    }
    let mut found = Found { full: None, newest, void: Vec::new(), fences: Vec::new() };
    let mut store = None;
    for listed in heads.iter().rev() {
        let Some(number) = number_of(listed.name) else { continue };
        let bytes = get(objects, listed.name, 0..HEAD_BYTES_MAX)
            .map_err(|error| open_error("read a head", error))?;
        let Some(bytes) = bytes else { return Ok(None) };
        match Head::decode(&bytes) {
            Head::Full(full) => {
                if store.is_some_and(|store| store != full.store) {
                    return Err(two_stores());
                }
                found.full = Some((number, *full));
                return Ok(Some(found));
            }
            Head::Fence { store: other } => {
                found.fences.push(number);
                match store {
                    // A removal creates a fence without a name.
                    _ if other == REMOVED => {}
                    None => store = Some(other),
                    Some(store) if store == other => {}
                    Some(_) => return Err(two_stores()),
                }
            }
            Head::Void => found.void.push(number),
            Head::UnknownVersion(version) => {
                let message = format!(
                    "the store has format {version}, which this program does not know; use a \
                     newer program"
                );
                return Err(OpenError::new(OpenErrorKind::UnknownVersion, message));
            }
        }
    }
    Ok(Some(found))
}

/// Checks that a head with these options can be read again.
fn check_options(options: &PackedOptions) -> Result<(), OpenError> {
    let is_valid = options.chunk_bytes <= CONSTANT_MAX && options.small_bytes_max <= CONSTANT_MAX;
    is_valid.then_some(()).ok_or_else(|| {
        let message = format!("chunks and small trees have at most {CONSTANT_MAX} bytes");
        OpenError::new(OpenErrorKind::InvalidShapes, message)
    })
}

fn check_state(full: Option<&FullHead>) -> Result<(), OpenError> {
    full.map(drop).ok_or_else(no_whole_head)
}

/// Creates a fence under the first number after `newest` that is free, and returns the number.
fn create_fence(
    objects: &mut dyn Objects,
    newest: u64,
    store: StoreName,
    session_name: SessionName,
) -> Result<u64, OpenError> {
    let fencing = |error| open_error("create a fence", error);
    let parts = vec![Bytes::from(encode_fence(store, session_name))];
    let mut number = newest.saturating_add(1);
    for _ in 0..FENCES_MAX {
        let name = ObjectName::Head(number);
        match create(objects, name, parts.clone()).map_err(fencing)? {
            Created::Whole => match objects.sync().map_err(fencing)? {
                Synced::Durable => return Ok(number),
                // The fence may be lost: created again, under the same number.
                Synced::MayHaveLost => {}
            },
            Created::Other => number = number.saturating_add(1),
        }
    }
    let message = format!(
        "storage has taken the next {FENCES_MAX} numbers of heads; make sure that only one client \
         opens the volume, and open it again"
    );
    Err(OpenError::new(OpenErrorKind::Locked, message))
}

fn list_heads(objects: &mut dyn Objects) -> Result<Vec<Listed>, OpenError> {
    let mut found = Vec::new();
    list_all(objects, Prefix::Heads, None, &mut found)
        .map_err(|error| open_error("list objects", error))?;
    Ok(found)
}

fn list_all(
    objects: &mut dyn Objects,
    prefix: Prefix,
    mut after: Option<ObjectName>,
    found: &mut Vec<Listed>,
) -> Result<(), StoreError> {
    loop {
        let page = objects.list(prefix, after)?;
        let Some(last) = page.last() else { return Ok(()) };
        // A listing that does not advance never ends.
        if after.is_some_and(|after| last.name <= after) {
            let message = format!("storage lists objects under {prefix} in the wrong order");
            return Err(StoreError::new(StoreErrorKind::Damaged, message));
        }
        after = Some(last.name);
        found.extend(page);
        if found.len() > LISTED_MAX {
            let message = format!("storage lists more than {LISTED_MAX} objects under {prefix}");
            return Err(StoreError::new(StoreErrorKind::Damaged, message));
        }
    }
}

fn remains(objects: &mut dyn Objects) -> Result<Remains, OpenError> {
    Ok(vacancy(objects)?.map_or(Remains::Objects, |_| Remains::Nothing))
}

/// The number of the newest head if there is no store: that of the fence that a removal has left,
/// or 0. `None` if there are other objects.
fn vacancy(objects: &mut dyn Objects) -> Result<Option<u64>, OpenError> {
    let page =
        objects.list(Prefix::All, None).map_err(|error| open_error("list objects", error))?;
    let [only] = &page[..] else { return Ok(page.is_empty().then_some(0)) };
    let Some(number) = number_of(only.name) else { return Ok(None) };
    let bytes = get(objects, only.name, 0..HEAD_BYTES_MAX)
        .map_err(|error| open_error("read a head", error))?;
    let is_left = matches!(
        Head::decode(&bytes.unwrap_or_default()),
        Head::Fence { store } if store == REMOVED
    );
    Ok(is_left.then_some(number))
}

fn number_of(name: ObjectName) -> Option<u64> {
    match name {
        ObjectName::Head(number) => Some(number),
        _ => None,
    }
}

fn is_in(name: ObjectName, session: u64, stream: u16) -> bool {
    Prefix::Stream { session, stream }.contains(name)
}

fn draw<const BYTES: usize>() -> Result<[u8; BYTES], OpenError> {
    let mut bytes = [0; BYTES];
    SysRng.try_fill_bytes(&mut bytes).map_err(|cause| {
        let message = format!("the system provides no random numbers: {cause}");
        OpenError::new(OpenErrorKind::Io, message)
    })?;
    Ok(bytes)
}

/// Maps an error of the engine to an error of opening. `act` names the operation, as the end of
/// the sentence "cannot …".
pub(super) fn open_error(act: &str, error: StoreError) -> OpenError {
    let kind = match error.kind() {
        StoreErrorKind::Refused => OpenErrorKind::NotAdmitted,
        kind => kind.into(),
    };
    OpenError::caused_by(kind, format!("cannot {act}: {error}"), error)
}

fn missing() -> OpenError {
    OpenError::new(
        OpenErrorKind::Missing,
        "there is no volume with this prefix; check the URL, or create one (oblivio create)",
    )
}

fn no_whole_head() -> OpenError {
    OpenError::new(
        OpenErrorKind::Damaged,
        "storage has no whole head of the volume: its creation was interrupted (remove it with \
         oblivio remove), or storage has lost data",
    )
}

fn two_stores() -> OpenError {
    OpenError::new(
        OpenErrorKind::Damaged,
        "the prefix has heads of two different stores; use one prefix per volume",
    )
}
