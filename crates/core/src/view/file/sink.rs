//! Writes a view file while the view is recorded.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Debug;
use std::io::{self, Write};

use super::{END_TAG, MAGIC, RECEIVED_TAG, SENT_TAG, TIME_TAG, VERSION, part_code};
use crate::geometry::{BucketId, LEAF_LEVEL_MAX};
use crate::pieces::{Part, Piece};
use crate::store::Capabilities;
use crate::view::{
    Direction, Event, EventSink, Operation, PeerMessage, PeerMessageSink, TREES_OF_SERVER_MAX,
    ViewServers,
};

/// The last bucket of the deepest tree.
const LAST_BUCKET: BucketId = BucketId((1 << (LEAF_LEVEL_MAX + 1)) - 2);

/// Writes events to `W` as they come, in small pieces: `W` should be buffered. The contents of
/// events are not kept.
///
/// A sink cannot refuse an event, so the first error is kept, nothing is written after it, and
/// [`Self::finish`] returns it.
#[must_use = "a view file is complete only after `finish`"]
pub struct FileSink<W> {
    out: W,
    servers: Option<ViewServers>,
    events: u64,
    last_trip: u64,
    /// The present time, in microseconds from the start of the recording.
    now: u64,
    /// The last time that was written.
    written_now: u64,
    /// Maximum number of bytes that the sink may still write.
    room: u64,
    /// The encoding of the current event.
    record: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> FileSink<W> {
    /// Starts the file of a store with these capabilities and, if any, these share servers.
    pub fn new(out: W, capabilities: Capabilities, servers: Option<ViewServers>) -> Self {
        let mut record = [&MAGIC[..], &[VERSION]].concat();
        put_number(&mut record, u64::from(capabilities.bits()));
        match servers {
            Some(these) => record.extend([these.count(), these.colluding(), these.watched()]),
            None => record.push(0),
        }
        let (events, last_trip, now, written_now, room, error) = (0, 0, 0, 0, u64::MAX, None);
        let mut sink =
            Self { out, servers, events, last_trip, now, written_now, room, record, error };
        sink.put_record();
        sink
    }

    /// Limits the file to `bytes` more bytes, for recordings whose length another party controls.
    /// If an event does not fit, [`Self::finish`] returns an error, because a file without that
    /// event would be wrong.
    pub fn with_room(self, bytes: u64) -> Self {
        Self { room: bytes, ..self }
    }

    /// Sets the time of later events, in microseconds since the start of the recording. The time
    /// never goes back: an earlier value is ignored. A trip has the time of its first event.
    pub fn set_micros(&mut self, micros: u64) {
        self.now = self.now.max(micros);
    }

    /// Ends the file and returns the writer, flushed.
    ///
    /// # Errors
    /// The first error of any write, an event that exceeded [the limit](Self::with_room), or an
    /// event that no file can represent, for example a bucket past the deepest tree, a flush with a
    /// piece, a message between unknown servers, or a tree of an unknown server.
    pub fn finish(mut self) -> io::Result<W> {
        self.record.push(END_TAG);
        put_number(&mut self.record, self.events);
        self.put_record();
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Writes the encoded record, unless an earlier write failed.
    fn put_record(&mut self) {
        if self.error.is_none() {
            let room = self.room.checked_sub(self.record.len() as u64);
            self.error = match room {
                Some(_) => self.out.write_all(&self.record).err(),
                None => {
                    let message = format!(
                        "the view file exceeds its size limit after {} events",
                        self.events
                    );
                    Some(io::Error::new(io::ErrorKind::FileTooLarge, message))
                }
            };
            self.room = room.unwrap_or(0);
        }
        self.record.clear();
    }
}

impl<W: Write> FileSink<W> {
    /// Writes one item. If the item starts a trip and time has passed, first writes the time.
    fn put(&mut self, trip: u64, what: &dyn Debug, encode: impl FnOnce(&mut Self) -> Option<()>) {
        let begins_trip = self.events == 0 || trip != self.last_trip;
        if begins_trip && self.now > self.written_now {
            self.record.push(TIME_TAG);
            put_number(&mut self.record, self.now - self.written_now);
            self.written_now = self.now;
        }
        if encode(self).is_none() {
            self.record.clear();
            self.error.get_or_insert_with(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("a view file cannot represent event {}: {what:?}", self.events),
                )
            });
        }
        self.put_record();
        self.last_trip = trip;
        self.events += 1;
    }
}

impl<W: Write> EventSink for FileSink<W> {
    fn record(&mut self, event: &Event, _: &[u8]) {
        self.put(event.trip, event, |sink| {
            let has_tree = |piece: Piece| sink.servers.is_none_or(|it| it.have_tree(piece.tree));
            event.piece.is_none_or(has_tree).then_some(())?;
            encode(event, sink.last_trip, &mut sink.record)
        });
    }
}

impl<W: Write> PeerMessageSink for FileSink<W> {
    fn record_message(&mut self, exchange: &PeerMessage, _: &[u8]) {
        self.put(exchange.trip, exchange, |sink| {
            sink.servers.filter(|servers| exchange.is_between(*servers))?;
            encode_exchange(exchange, sink.last_trip, &mut sink.record)
        });
    }
}

/// Appends an event to `out`. Returns `None` if the format cannot represent the event.
fn encode(event: &Event, last_trip: u64, out: &mut Vec<u8>) -> Option<()> {
    let Event { trip, operation, piece, bytes } = *event;
    let part = match piece.map(|piece| piece.part) {
        Some(Part::Whole) => part_code::WHOLE,
        Some(Part::Header) => part_code::HEADER,
        Some(Part::Slot(_)) => part_code::SLOT,
        None => part_code::NONE,
    };
    if (operation == Operation::Flush) != piece.is_none() {
        return None;
    }
    out.push(operation as u8 | part << 2);
    put_number(out, trip.wrapping_sub(last_trip));
    if let Some(Piece { tree, bucket, part }) = piece {
        if bucket > LAST_BUCKET {
            return None;
        }
        put_number(out, u64::from(tree.0));
        out.push(bucket.level());
        put_number(out, bucket.index());
        if let Part::Slot(slot) = part {
            put_number(out, u64::from(slot));
        }
    }
    put_number(out, bytes);
    Some(())
}

/// Appends a message between servers to `out`. Returns `None` if the format cannot represent the
/// message.
fn encode_exchange(exchange: &PeerMessage, last_trip: u64, out: &mut Vec<u8>) -> Option<()> {
    let PeerMessage {
        trip,
        party,
        partner,
        tree,
        eviction,
        attempt,
        round,
        part,
        shares,
        seeds,
        ..
    } = *exchange;
    if tree.is_some_and(|tree| tree >= TREES_OF_SERVER_MAX) || seeds > shares {
        return None;
    }
    out.push(match exchange.direction {
        Direction::Sent => SENT_TAG,
        Direction::Received => RECEIVED_TAG,
    });
    put_number(out, trip.wrapping_sub(last_trip));
    out.extend([party, partner, tree.map_or(0, |tree| tree + 1)]);
    put_number(out, eviction);
    put_number(out, attempt);
    out.push(round);
    put_number(out, part.into());
    out.extend([shares, seeds]);
    put_number(out, exchange.bytes);
    Some(())
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
