//! Entries on their way into chunks, and flushes.

use std::mem;

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use oblivio_core::store::{Blanks, Fill, Piece, Span};
use oblivio_core::{StoreError, StoreErrorKind};

use super::chunk::{Entries, Section, Trailer};
use super::creation::{Created, Creation, create, get};
use super::head::{HEAD_BYTES_MAX, Head, HeadParts, OpenChunk, TailRef};
use super::index::{RUNS_MAX, Slot};
use super::streams::Bucket;
use super::{PackedStore, Writer};
use crate::objects::{ObjectName, Synced};

/// Maximum number of names in one deletion.
const DELETED_AT_ONCE_MAX: usize = 1000;

/// Maximum number of syncs of one flush. Each one after the first follows a failure of the engine
/// that may have lost objects.
const SYNCS_MAX: usize = 16;

/// The number of full heads that a session creates before it deletes objects: an opening deletes
/// nothing on the strength of a single head.
const HEADS_BEFORE_DELETIONS: u64 = 2;

/// The latest two chunks of a stream.
#[derive(Default)]
pub(super) struct StreamWriter {
    /// The number of the chunk that is being filled.
    number: u64,
    /// The next number of a chunk that is not used yet.
    next_number: u64,
    open: Entries,
    complete: Option<CompleteChunk>,
}

/// A complete chunk that is still in memory.
struct CompleteChunk {
    number: u64,
    entries: Entries,
    /// `None` once the object is known to exist.
    creation: Option<Creation>,
}

/// Buckets of a write trip with one level number and index.
struct EntryDraft {
    level: u8,
    place: u64,
    /// The columns with the bytes of their buckets.
    buckets: Vec<(usize, Bytes)>,
}

impl StreamWriter {
    pub(super) fn new() -> Self {
        Self { next_number: 1, ..Self::default() }
    }

    fn open_chunk(&self) -> OpenChunk {
        let entries = self.open.len() as u64;
        OpenChunk { number: self.number, entries, next_number: self.next_number }
    }

    /// The entries of a chunk, if they are in memory.
    pub(super) fn entries(&self, number: u64) -> Option<&Entries> {
        if number == self.number {
            return Some(&self.open);
        }
        let complete = self.complete.as_ref();
        complete.filter(|chunk| chunk.number == number).map(|chunk| &chunk.entries)
    }
}

impl PackedStore {
    pub(super) fn write_buckets(
        &mut self,
        pieces: &[Piece],
        buckets: &[Bucket],
        fill: &mut Fill<'_>,
    ) -> Result<(), StoreError> {
        self.flush_unsynced(buckets)?;
        self.spans.clear();
        let mut bytes = 0;
        for bucket in buckets {
            self.spans.push(Span { start: bytes, bytes: bucket.bytes });
            bytes += bucket.bytes;
        }
        let mut buffer = vec![0; bytes];
        fill(Blanks::new(&mut buffer, &self.spans));
        let buffer = Bytes::from(buffer);
        let mut drafts: Vec<EntryDraft> = Vec::new();
        let mut latest = HashMap::new();
        for ((piece, bucket), span) in pieces.iter().zip(buckets).zip(&self.spans) {
            self.prefetched.is_written(piece);
            let bytes = buffer.slice(span.range());
            if let Some(small) = self.small.find(piece, bucket.bytes) {
                self.small.bytes_mut()[small.range()].copy_from_slice(&bytes);
                continue;
            }
            let Bucket { column, level, place, .. } = *bucket;
            let draft = *latest.entry((level, place)).or_insert(drafts.len());
            match drafts.get_mut(draft) {
                Some(draft) if draft.buckets.iter().all(|(other, _)| *other != column) => {
                    draft.buckets.push((column, bytes));
                }
                // The first bucket of an entry, or a bucket that the trip writes twice.
                _ => {
                    latest.insert((level, place), drafts.len());
                    drafts.push(EntryDraft { level, place, buckets: vec![(column, bytes)] });
                }
            }
        }
        self.forget_useless_gets();
        if let Some(writer) = &mut self.writer
            && !pieces.is_empty()
        {
            writer.is_dirty = true;
        }
        drafts.into_iter().try_for_each(|draft| self.append_draft(draft))
    }

    /// Flushes if an engine that may lose objects has too many bytes that are not durable.
    fn flush_unsynced(&mut self, buckets: &[Bucket]) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let Some(bytes_max) = writer.unsynced_bytes_max else { return Ok(()) };
        let bytes: usize = buckets.iter().map(|bucket| bucket.bytes).sum();
        let is_too_much = writer.new_chunk_bytes + bytes > bytes_max;
        if is_too_much && writer.new_chunk_bytes > 0 { self.write_head() } else { Ok(()) }
    }

    fn append_draft(&mut self, mut draft: EntryDraft) -> Result<(), StoreError> {
        draft.buckets.sort_unstable_by_key(|(column, _)| *column);
        let columns: Vec<_> = draft.buckets.iter().map(|(column, _)| *column).collect();
        debug_assert!(
            columns.iter().all(|column| self.streams.columns()[*column].level == draft.level)
        );
        match self.streams.stream_of(&columns) {
            Some(stream) => {
                let parts = draft.buckets.into_iter().map(|(_, bytes)| bytes);
                self.append(stream, draft.place, parts)
            }
            None => draft.buckets.into_iter().try_for_each(|(column, bytes)| {
                let stream = self.streams.stream_of(&[column]).ok_or_else(too_many_streams)?;
                self.append(stream, draft.place, [bytes])
            }),
        }
    }

    /// Appends an entry to the chunk that is being filled. Starts to create the chunk if it is
    /// complete.
    pub(super) fn append(
        &mut self,
        stream: u16,
        place: u64,
        parts: impl IntoIterator<Item = Bytes>,
    ) -> Result<(), StoreError> {
        let Self { streams, writer, index, .. } = self;
        let (Some(writer), Some(shape)) = (writer, streams.get(stream)) else {
            return Err(too_many_streams());
        };
        let at = usize::from(stream);
        if writer.streams.len() <= at {
            writer.streams.resize_with(at + 1, StreamWriter::new);
        }
        let open = &mut writer.streams[at];
        let number = open.number * shape.slots_per_chunk + open.open.len() as u64;
        open.open.places.push(place);
        open.open.parts.extend(parts);
        let is_complete = open.open.len() as u64 == shape.slots_per_chunk;
        let to = Slot { session: writer.session, stream, number };
        let displaced: Vec<_> =
            shape.columns.iter().filter_map(|column| index.set(*column, place, to)).collect();
        if index.run_count() > RUNS_MAX {
            let message = format!(
                "the index of the store has more than {RUNS_MAX} runs, because buckets were \
                 written in random order; copy the volume to a new store"
            );
            return Err(StoreError::new(StoreErrorKind::Full, message));
        }
        displaced.into_iter().for_each(|slot| self.note_displaced(slot));
        if is_complete { self.complete_chunk(stream) } else { Ok(()) }
    }

    /// Records the object of a slot as unneeded if no bucket lies in it any more.
    pub(super) fn note_displaced(&mut self, slot: Slot) {
        let Some(shape) = self.streams.get(slot.stream) else { return };
        let number = slot.number / shape.slots_per_chunk;
        if !self.chunk_is_live(slot.session, slot.stream, number)
            && let Some(writer) = &mut self.writer
        {
            let is_in_memory = writer.session == slot.session
                && writer
                    .streams
                    .get(usize::from(slot.stream))
                    .is_some_and(|stream| stream.entries(number).is_some());
            // A chunk in memory is looked at again when it leaves memory.
            if !is_in_memory {
                let Slot { session, stream, .. } = slot;
                let name = ObjectName::Chunk { session, stream, number };
                // The columns of one entry leave a chunk one after the other.
                if writer.unneeded.last() != Some(&name) {
                    writer.unneeded.push(name);
                }
            }
        }
    }

    pub(super) fn chunk_is_live(&self, session: u64, stream: u16, number: u64) -> bool {
        let Some(shape) = self.streams.get(stream) else { return false };
        let Some(start) = number.checked_mul(shape.slots_per_chunk) else { return false };
        let slots = start..start.saturating_add(shape.slots_per_chunk);
        self.index.is_live(session, stream, &shape.columns, slots)
    }

    /// Starts to create the chunk that is complete now. Waits for the chunk before it, which leaves
    /// memory.
    fn complete_chunk(&mut self, stream: u16) -> Result<(), StoreError> {
        self.finish_chunk(stream)?;
        let Self { objects, store, streams, writer: Some(writer), .. } = self else {
            return Ok(());
        };
        let session = writer.session;
        let state = &mut writer.streams[usize::from(stream)];
        let left = state.complete.take();
        let entries = mem::take(&mut state.open);
        let number = state.number;
        (state.number, state.next_number) = (state.next_number, state.next_number + 1);
        let section = Section::new(streams, stream, number, &entries);
        let trailer = Trailer { store: *store, session, tail: None, sections: vec![section] };
        let mut parts = entries.parts.clone();
        parts.push(trailer.encode().into());
        writer.new_chunk_bytes += parts.iter().map(Bytes::len).sum::<usize>();
        let name = ObjectName::Chunk { session, stream, number };
        let creation = Some(Creation::begin(&mut **objects, name, parts));
        state.complete = Some(CompleteChunk { number, entries, creation });
        if let Some(CompleteChunk { number, .. }) = left
            && !self.chunk_is_live(session, stream, number)
            && let Some(writer) = &mut self.writer
        {
            writer.unneeded.push(ObjectName::Chunk { session, stream, number });
        }
        Ok(())
    }

    /// Waits until the complete chunk of a stream exists. If its name is lost, gives it another
    /// number.
    fn finish_chunk(&mut self, stream: u16) -> Result<(), StoreError> {
        loop {
            let Self { objects, writer: Some(writer), .. } = self else { return Ok(()) };
            let Some(state) = writer.streams.get_mut(usize::from(stream)) else { return Ok(()) };
            let Some(chunk) = &mut state.complete else { return Ok(()) };
            let Some(mut creation) = chunk.creation.take() else { return Ok(()) };
            match creation.finish(&mut **objects)? {
                Created::Whole if writer.unsynced_bytes_max.is_some() => {
                    writer.unsynced.push((creation.name, creation.into_parts()));
                }
                Created::Whole => {}
                Created::Other => self.renumber(stream),
            }
        }
    }

    /// Moves the complete chunk of a stream to the next unused number. What exists under the old
    /// name is unneeded.
    fn renumber(&mut self, stream: u16) {
        let Self { objects, store, streams, index, writer: Some(writer), .. } = self else {
            return;
        };
        let session = writer.session;
        let Some(shape) = streams.get(stream) else { return };
        let state = &mut writer.streams[usize::from(stream)];
        let Some(chunk) = &mut state.complete else { return };
        let (old, new) = (chunk.number, state.next_number);
        state.next_number += 1;
        let (from, to) = (old * shape.slots_per_chunk, new * shape.slots_per_chunk);
        for column in &shape.columns {
            let slots = from..from + shape.slots_per_chunk;
            for (place, number) in index.buckets_in(session, stream, *column, slots) {
                index.set(*column, place, Slot { session, stream, number: number - from + to });
            }
        }
        writer.unneeded.push(ObjectName::Chunk { session, stream, number: old });
        chunk.number = new;
        let section = Section::new(streams, stream, new, &chunk.entries);
        let trailer = Trailer { store: *store, session, tail: None, sections: vec![section] };
        let mut parts = chunk.entries.parts.clone();
        parts.push(trailer.encode().into());
        let name = ObjectName::Chunk { session, stream, number: new };
        chunk.creation = Some(Creation::begin(&mut **objects, name, parts));
    }

    /// Makes all writes durable and creates a head, if anything was written since the last one.
    pub(super) fn write_head(&mut self) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        if !writer.is_dirty {
            return Ok(());
        }
        for stream in 0..writer.streams.len() {
            self.finish_chunk(stream as u16)?;
        }
        self.create_tail()?;
        self.sync()?;
        self.create_head()?;
        self.sync()?;
        self.delete_unneeded();
        Ok(())
    }

    /// Creates an object with the entries of all incomplete chunks, if there are any.
    fn create_tail(&mut self) -> Result<(), StoreError> {
        let Self { objects, store, streams, writer: Some(writer), .. } = self else {
            return Ok(());
        };
        if let Some(TailRef { session, number, .. }) = writer.tail.take() {
            writer.unneeded.push(ObjectName::Tail { session, number });
        }
        let open = || {
            let streams = (0..).zip(&writer.streams);
            streams.filter(|(_, stream)| !stream.open.is_empty())
        };
        let sections: Vec<_> = open()
            .map(|(stream, state)| Section::new(streams, stream, state.number, &state.open))
            .collect();
        if sections.is_empty() {
            return Ok(());
        }
        let entries: Vec<_> = open().flat_map(|(_, state)| state.open.parts.clone()).collect();
        let mut trailer = Trailer { store: *store, session: writer.session, tail: None, sections };
        loop {
            let session = writer.session;
            let number = writer.next_tail;
            writer.next_tail += 1;
            trailer.tail = Some(number);
            let mut parts = entries.clone();
            parts.push(trailer.encode().into());
            let bytes = parts.iter().map(|part| part.len() as u64).sum();
            let name = ObjectName::Tail { session, number };
            if create(&mut **objects, name, parts.clone())? == Created::Whole {
                writer.tail = Some(TailRef { session, number, bytes });
                if writer.unsynced_bytes_max.is_some() {
                    writer.unsynced.push((name, parts));
                }
                return Ok(());
            }
            writer.unneeded.push(name);
        }
    }

    /// Creates a head with the state of the store under the next number.
    fn create_head(&mut self) -> Result<(), StoreError> {
        let Self { objects, store, geometry, streams, index, small, writer: Some(writer), .. } =
            self
        else {
            return Ok(());
        };
        let Writer { session, session_name, next_tail, tail, .. } = *writer;
        let open_chunks: Vec<_> = writer.streams.iter().map(StreamWriter::open_chunk).collect();
        let unneeded = [&writer.unneeded[..], &writer.unneeded_before].concat();
        let mut older_heads = writer.older_heads.clone();
        older_heads.extend(writer.full_head);
        let head = HeadParts {
            store: *store,
            session,
            session_name,
            geometry: *geometry,
            streams,
            index,
            small,
            open_chunks: &open_chunks,
            next_tail,
            tail,
            past_sessions: &writer.past_sessions,
            older_heads: &older_heads,
            unneeded: &unneeded,
        };
        let encoded = head.encode();
        // A head that cannot be read again would replace the last one that can.
        if !matches!(Head::decode(&encoded), Head::Full(_)) || encoded.len() as u64 > HEAD_BYTES_MAX
        {
            let message = "the state of the store is too long for a head: too many objects could \
                           not be deleted, or too many buckets were written in random order; \
                           permit deletions, and copy the volume to a new store";
            return Err(StoreError::new(StoreErrorKind::Full, message));
        }
        let parts = vec![Bytes::from(encoded)];
        let mut number = self.head.checked_add(1).ok_or_else(fenced)?;
        loop {
            let name = ObjectName::Head(number);
            if create(&mut **objects, name, parts.clone())? == Created::Whole {
                if writer.unsynced_bytes_max.is_some() {
                    writer.unsynced.push((name, parts));
                }
                break;
            }
            let found = get(&mut **objects, name, 0..HEAD_BYTES_MAX)?;
            match Head::decode(&found.unwrap_or_default()) {
                Head::Void => number = number.checked_add(1).ok_or_else(fenced)?,
                _ => return Err(fenced()),
            }
        }
        writer.older_heads = older_heads;
        writer.full_head = Some(number);
        writer.is_dirty = false;
        writer.new_chunk_bytes = 0;
        writer.heads += 1;
        self.head = number;
        Ok(())
    }

    /// Waits until all objects are durable. Creates those again that the engine may have lost.
    fn sync(&mut self) -> Result<(), StoreError> {
        let Self { objects, writer: Some(writer), .. } = self else { return Ok(()) };
        for _ in 0..SYNCS_MAX {
            match objects.sync()? {
                Synced::Durable => {
                    writer.unsynced.clear();
                    return Ok(());
                }
                Synced::MayHaveLost if writer.unsynced_bytes_max.is_none() => {
                    let message = "the storage engine reports lost objects, but should never lose \
                                   any; open the volume again";
                    return Err(StoreError::new(StoreErrorKind::Failed, message));
                }
                Synced::MayHaveLost => {
                    for (name, parts) in &writer.unsynced {
                        if create(&mut **objects, *name, parts.clone())? == Created::Other {
                            return Err(match name {
                                ObjectName::Head(_) => fenced(),
                                _ => replaced(*name),
                            });
                        }
                    }
                }
            }
        }
        let message = "the storage engine keeps losing objects; check its servers";
        Err(StoreError::new(StoreErrorKind::Unreachable, message))
    }

    /// Deletes the objects that neither of the newest two heads needs. Objects that could not be
    /// deleted remain on the list of the next head.
    fn delete_unneeded(&mut self) {
        let Self { objects, writer: Some(writer), .. } = self else { return };
        let mut names = mem::take(&mut writer.unneeded_before);
        writer.unneeded_before = mem::take(&mut writer.unneeded);
        if writer.heads < HEADS_BEFORE_DELETIONS {
            writer.unneeded_before.extend(names);
            return;
        }
        // The newest head is not in the list, so all but the last may go.
        let count = writer.older_heads.len().saturating_sub(1);
        names.extend(writer.older_heads.drain(..count).map(ObjectName::Head));
        while !names.is_empty() {
            let batch = names.len().saturating_sub(DELETED_AT_ONCE_MAX);
            if objects.delete(&names[batch..]).is_err() {
                // The flush has succeeded. The next one tries again.
                writer.unneeded_before.extend(names);
                return;
            }
            names.truncate(batch);
        }
    }
}

/// The error of a writer after another client has opened the store to write.
pub(super) fn fenced() -> StoreError {
    StoreError::new(
        StoreErrorKind::Fenced,
        "another client has opened the volume since; make sure that only one client uses it, and \
         open it again",
    )
}

fn replaced(name: ObjectName) -> StoreError {
    let message = format!("storage replaced object {name}; it does not keep what it acknowledged");
    StoreError::new(StoreErrorKind::Damaged, message)
}

fn too_many_streams() -> StoreError {
    let message = "the store has too many different groups of buckets; copy the volume to a new \
                   store";
    StoreError::new(StoreErrorKind::Full, message)
}
