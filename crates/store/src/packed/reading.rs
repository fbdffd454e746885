//! Gets of buckets.
//!
//! A get reads consecutive requested buckets of one chunk, and no other bytes. Buckets in memory
//! need no get. Which these are follows from the calls of the store.

use std::ops::Range;

use bytes::Bytes;
use oblivio_core::store::{Piece, Span};
use oblivio_core::{StoreError, StoreErrorKind};

use super::PackedStore;
use super::ahead;
use super::creation::{create, get, wrong_answer};
use super::head::{HEAD_BYTES_MAX, Head};
use super::index::Slot;
use super::streams::Bucket;
use super::writing::fenced;
use crate::objects::{Answer, ObjectName, Prefix, Ticket};

/// The number of entries that one get reads of a stream that is read in order: ten evictions.
const ENTRIES_AHEAD: u64 = 10;

/// A requested bucket in storage.
struct Located {
    /// The index of the piece in its trip.
    piece: usize,
    name: ObjectName,
    bytes: Range<u64>,
}

/// A get of buckets that lie one after the other in a chunk.
struct Get {
    name: ObjectName,
    bytes: Range<u64>,
    /// The indices of the pieces in the trip, in the order of their bytes.
    pieces: Vec<usize>,
}

impl PackedStore {
    /// Requests announced buckets, so that a later read finds them.
    pub(super) fn announce(&mut self, pieces: &[Piece]) {
        let slots = self.slots_of(pieces);
        let is_run = self.runs.add(slots);
        self.request(pieces, is_run);
    }

    /// Requests buckets that are neither in memory nor requested. If the trip is part of a run,
    /// also requests the entries behind those that are requested now.
    fn request(&mut self, pieces: &[Piece], is_run: bool) {
        let mut all = pieces.to_vec();
        let mut located = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            let Some(bucket) = self.streams.bucket(piece) else { continue };
            if self.prefetched.request(piece).is_some() {
                self.prefetched.announce(self.next_get, piece, bucket.bytes);
            } else if let Some(found) = self.locate(i, bucket) {
                located.push(found);
            }
        }
        if is_run {
            let requested: Vec<_> = located.iter().map(|it| pieces[it.piece]).collect();
            // Only the last slot of a stream has slots behind it that are not in this trip.
            for (_, last) in ahead::ends_of_streams(self.slots_of(&requested)) {
                self.add_entries_behind(last, &mut all, &mut located);
            }
        }
        let first = self.next_get;
        let mut repeated = Vec::new();
        let gets = gets_of(located, &mut repeated);
        for (number, get) in (first..).zip(&gets) {
            for i in &get.pieces {
                let Some(bucket) = self.streams.bucket(&all[*i]) else { continue };
                if *i < pieces.len() {
                    self.prefetched.announce(number, &all[*i], bucket.bytes);
                } else {
                    self.prefetched.add_unannounced(number, &all[*i], bucket.bytes);
                }
            }
        }
        for i in repeated {
            let Some(bucket) = self.streams.bucket(&all[i]) else { continue };
            self.prefetched.announce(first, &all[i], bucket.bytes);
        }
        self.next_get += gets.len() as u64;
        if self.prefetched.make_room() {
            for (number, Get { name, bytes, .. }) in (first..).zip(gets) {
                self.tickets.insert(number, self.objects.begin_get(name, bytes));
            }
        } else {
            (first..self.next_get).for_each(|number| self.prefetched.forget_read(number));
        }
        self.forget_useless_gets();
    }

    /// Adds the buckets in the slots behind `slot`, as far as they are in storage and not
    /// requested.
    fn add_entries_behind(&self, slot: Slot, all: &mut Vec<Piece>, located: &mut Vec<Located>) {
        let Some(stream) = self.streams.get(slot.stream) else { return };
        let behind = slot.number.saturating_add(1)..slot.number.saturating_add(ENTRIES_AHEAD);
        for column in &stream.columns {
            let Slot { session, stream, .. } = slot;
            for (place, _) in self.index.buckets_in(session, stream, *column, behind.clone()) {
                let piece = self.streams.piece(*column, place);
                let Some(bucket) = self.streams.bucket(&piece) else { continue };
                if self.prefetched.request(&piece).is_none()
                    && let Some(found) = self.locate(all.len(), bucket)
                {
                    all.push(piece);
                    located.push(found);
                }
            }
        }
    }

    /// The slots of the buckets of a trip, each once.
    fn slots_of(&self, pieces: &[Piece]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        for piece in pieces {
            let bucket = self.streams.bucket(piece);
            let slot = bucket.and_then(|bucket| self.index.get(bucket.column, bucket.place));
            slots.extend(slot.filter(|slot| !slots.contains(slot)));
        }
        slots
    }

    /// Reads the buckets of a trip into the buffer.
    pub(super) fn read_buckets(
        &mut self,
        pieces: &[Piece],
        buckets: &[Bucket],
    ) -> Result<(), StoreError> {
        let outcome = self.try_read_buckets(pieces, buckets);
        let is_missing =
            outcome.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Damaged);
        if !is_missing {
            return outcome;
        }
        // An object may be gone because another client has written since: this reads its state, or
        // fails with `Fenced`.
        let before = self.head;
        self.look_for_newer_head()?;
        if self.head == before { outcome } else { self.try_read_buckets(pieces, buckets) }
    }

    fn try_read_buckets(&mut self, pieces: &[Piece], buckets: &[Bucket]) -> Result<(), StoreError> {
        self.place(buckets);
        if pieces.iter().zip(buckets).any(|(piece, bucket)| {
            self.prefetched.request(piece).is_none() && self.locate(0, *bucket).is_some()
        }) {
            let slots = self.slots_of(pieces);
            if self.runs.add(slots) {
                self.request(pieces, true);
            }
        }
        let mut located = Vec::new();
        for (i, (piece, bucket)) in pieces.iter().zip(buckets).enumerate() {
            let span = self.spans[i];
            if let Some(small) = self.small.find(piece, bucket.bytes) {
                self.buffer[span.range()].copy_from_slice(&self.small.bytes()[small.range()]);
            } else if let Some(slot) = self.index.get(bucket.column, bucket.place)
                && let Some(bytes) = self.in_memory(bucket.column, slot)
            {
                let bytes = bytes.clone();
                self.buffer[span.range()].copy_from_slice(&bytes);
            } else if self.prefetched.request(piece).is_none() {
                located.extend(self.locate(i, *bucket));
            }
        }
        let mut repeated = Vec::new();
        let gets = gets_of(located, &mut repeated);
        let tickets: Vec<_> =
            gets.iter().map(|get| self.objects.begin_get(get.name, get.bytes.clone())).collect();
        let outcome = self.take_prefetched(pieces);
        let mut tickets = tickets.into_iter();
        let outcome = outcome.and_then(|()| {
            gets.iter().try_for_each(|get| {
                let Some(ticket) = tickets.next() else { return Ok(()) };
                self.take(get, ticket, buckets)
            })
        });
        tickets.for_each(|ticket| self.objects.forget(ticket));
        outcome?;
        for i in repeated {
            let same = (0..pieces.len()).find(|other| *other != i && pieces[*other] == pieces[i]);
            let Some(Span { start, .. }) = same.map(|same| self.spans[same]) else { continue };
            let to = self.spans[i];
            self.buffer.copy_within(start..start + to.bytes, to.start);
        }
        pieces.iter().for_each(|piece| self.prefetched.was_read(piece));
        self.forget_useless_gets();
        Ok(())
    }

    /// Drops the answers to gets that no announced piece needs any more.
    pub(super) fn forget_useless_gets(&mut self) {
        for number in self.prefetched.take_useless() {
            if let Some(ticket) = self.tickets.remove(&number) {
                self.objects.forget(ticket);
            }
        }
    }

    /// Fails if another client has opened the store to write. A store that is open only for
    /// reading reads the newest state instead. The small trees are in heads, so that anchors are
    /// always current.
    pub(super) fn look_for_newer_head(&mut self) -> Result<(), StoreError> {
        let mut after = self.void_heads.last().copied().unwrap_or(self.head).max(self.head);
        let mut is_superseded = false;
        loop {
            let page = self.objects.list(Prefix::Heads, Some(ObjectName::Head(after)))?;
            let Some(last) = page.last() else { break };
            for listed in &page {
                let ObjectName::Head(number) = listed.name else { continue };
                let bytes = listed.bytes.min(HEAD_BYTES_MAX);
                let found = get(&mut *self.objects, listed.name, 0..bytes)?;
                match Head::decode(&found.unwrap_or_default()) {
                    Head::Void => self.void_heads.push(number),
                    _ if self.writer.is_some() => return Err(fenced()),
                    _ => is_superseded = true,
                }
            }
            match last.name {
                // A listing that does not advance never ends.
                ObjectName::Head(last) if last > after => after = last,
                _ => break,
            }
        }
        if is_superseded { self.reload() } else { Ok(()) }
    }

    /// Makes room for the frames of a trip, all zeros.
    fn place(&mut self, buckets: &[Bucket]) {
        self.spans.clear();
        let mut start = 0;
        for bucket in buckets {
            self.spans.push(Span { start, bytes: bucket.bytes });
            start += bucket.bytes;
        }
        self.buffer.clear();
        self.buffer.resize(start, 0);
    }

    /// The position of a bucket in storage; `None` if it was never written, or is in memory.
    fn locate(&self, piece: usize, bucket: Bucket) -> Option<Located> {
        let slot = self.index.get(bucket.column, bucket.place)?;
        if self.in_memory(bucket.column, slot).is_some() {
            return None;
        }
        let stream = self.streams.get(slot.stream)?;
        let (_, offset) = stream.find(bucket.column)?;
        let number = slot.number / stream.slots_per_chunk;
        let entry = slot.number % stream.slots_per_chunk;
        let start = entry * stream.entry_bytes as u64 + offset as u64;
        let name = ObjectName::Chunk { session: slot.session, stream: slot.stream, number };
        Some(Located { piece, name, bytes: start..start + bucket.bytes as u64 })
    }

    /// Waits for the prefetched answers to a trip, and copies them into the buffer.
    fn take_prefetched(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        for (i, piece) in pieces.iter().enumerate() {
            let Some(number) = self.prefetched.request(piece) else { continue };
            if let Some(ticket) = self.tickets.remove(&number) {
                match self.objects.wait(ticket) {
                    Ok(Answer::Bytes(bytes)) => self.prefetched.answered(number, bytes),
                    Ok(_) => self.prefetched.answered(number, Bytes::new()),
                    Err(error) => {
                        self.prefetched.forget_read(number);
                        return Err(error);
                    }
                }
            }
            let span = self.spans[i];
            let bytes = self.prefetched.find(piece).and_then(|found| found.get(span.bytes));
            match bytes {
                Some(bytes) => self.buffer[span.range()].copy_from_slice(bytes),
                // Requested again, so that the error names the object.
                None => self.read_again(i, piece)?,
            }
        }
        Ok(())
    }

    /// Reads a bucket whose prefetched answer is too short.
    fn read_again(&mut self, i: usize, piece: &Piece) -> Result<(), StoreError> {
        let Some(bucket) = self.streams.bucket(piece) else { return Ok(()) };
        let Some(Located { name, bytes, .. }) = self.locate(i, bucket) else { return Ok(()) };
        let found = self.get_created(name, bytes.clone())?;
        let found = whole(name, &bytes, found)?;
        self.buffer[self.spans[i].range()].copy_from_slice(&found);
        Ok(())
    }

    /// Waits for a get, and copies its buckets into the buffer.
    fn take(&mut self, get: &Get, ticket: Ticket, buckets: &[Bucket]) -> Result<(), StoreError> {
        let found = match self.objects.wait(ticket)? {
            Answer::Bytes(bytes) => Some(bytes),
            Answer::Absent => self.get_created(get.name, get.bytes.clone())?,
            Answer::Created | Answer::Exists | Answer::Unknown => {
                return Err(wrong_answer(get.name));
            }
        };
        let found = whole(get.name, &get.bytes, found)?;
        let mut rest = &found[..];
        for i in &get.pieces {
            let (bucket, behind) = rest.split_at(buckets[*i].bytes);
            self.buffer[self.spans[*i].range()].copy_from_slice(bucket);
            rest = behind;
        }
        Ok(())
    }

    /// Reads a part of an object. If the engine has lost the object before a sync, creates it again
    /// from memory.
    fn get_created(
        &mut self,
        name: ObjectName,
        bytes: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        if let Some(found) = get(&mut *self.objects, name, bytes.clone())? {
            return Ok(Some(found));
        }
        let unsynced = self.writer.as_ref().and_then(|writer| {
            let found = writer.unsynced.iter().find(|(unsynced, _)| *unsynced == name);
            found.map(|(_, parts)| parts.clone())
        });
        let Some(parts) = unsynced else { return Ok(None) };
        let whole = Bytes::from(parts.concat());
        create(&mut *self.objects, name, parts)?;
        let range = (bytes.start as usize).min(whole.len())..(bytes.end as usize).min(whole.len());
        Ok(Some(whole.slice(range)))
    }
}

/// Checks that a get was answered in full.
fn whole(name: ObjectName, bytes: &Range<u64>, found: Option<Bytes>) -> Result<Bytes, StoreError> {
    let message = match found {
        Some(found) if found.len() as u64 == bytes.end - bytes.start => return Ok(found),
        Some(_) => format!("object {name} is too short: storage has damaged it"),
        None => format!("object {name} is missing from storage"),
    };
    Err(StoreError::new(StoreErrorKind::Damaged, message))
}

/// Joins buckets that lie one after the other in an object. A piece that occurs again goes to
/// `repeated`.
fn gets_of(mut located: Vec<Located>, repeated: &mut Vec<usize>) -> Vec<Get> {
    located.sort_by_key(|located| (located.name, located.bytes.start, located.piece));
    let mut gets: Vec<Get> = Vec::new();
    for Located { piece, name, bytes } in located {
        match gets.last_mut() {
            Some(get) if get.name == name && get.bytes.end == bytes.start => {
                get.bytes.end = bytes.end;
                get.pieces.push(piece);
            }
            Some(get) if get.name == name && get.bytes.end >= bytes.end => repeated.push(piece),
            _ => gets.push(Get { name, bytes, pieces: vec![piece] }),
        }
    }
    gets
}
