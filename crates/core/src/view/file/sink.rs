//! Writes a view file while the view comes into being.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Debug;
use std::io::{self, Write};

use super::{END_TAG, MAGIC, RECEIVED_TAG, SENT_TAG, TIME_TAG, VERSION, part_code};
use crate::geometry::{BucketId, LEAF_LEVEL_MAX};
use crate::pieces::{Part, Piece};
use crate::store::Capabilities;
use crate::view::{
    Direction, Event, EventSink, Exchange, ExchangeSink, Operation, TREES_OF_SERVER_MAX,
    ViewServers,
};

/// The last bucket of the deepest tree.
const LAST_BUCKET: BucketId = BucketId((1 << (LEAF_LEVEL_MAX + 1)) - 2);

/// Writes events to `W` as they come, in small pieces: hand it something buffered. Contents are not
/// kept.
///
/// A sink cannot refuse an event, so the first error is kept, nothing is written after it, and
/// [`Self::finish`] returns it.
#[must_use = "a view file is complete only after `finish`"]
pub struct FileSink<W> {
    out: W,
    servers: Option<ViewServers>,
    events: u64,
    last_trip: u64,
    /// Microseconds from the beginning of the recording to now, and to what was said last.
    now: u64,
    said: u64,
    /// What may still be written.
    room: u64,
    /// The event being encoded.
    record: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> FileSink<W> {
    /// Begins the file of a store that can do these, and of these servers if there are several which hold shares.
    pub fn new(out: W, capabilities: Capabilities, servers: Option<ViewServers>) -> Self {
        let mut record = [&MAGIC[..], &[VERSION]].concat();
        put_number(&mut record, u64::from(capabilities.bits()));
        match servers {
            Some(these) => record.extend([these.count(), these.colluding(), these.watched()]),
            None => record.push(0),
        }
        let (events, last_trip, now, said, room, error) = (0, 0, 0, 0, u64::MAX, None);
        let mut sink = Self { out, servers, events, last_trip, now, said, room, record, error };
        sink.put_record();
        sink
    }

    /// Writes so many bytes at most from now on: for whoever records what others can make as long as they like. An event past them is an error of [`Self::finish`],
    /// because a file that says less than there was says something wrong.
    pub fn with_room(self, bytes: u64) -> Self {
        Self { room: bytes, ..self }
    }

    /// Says that what is recorded from now on happens so many microseconds after the beginning of the recording. A time
    /// before the one that was said last counts as that. A trip has the time of its first event.
    pub fn set_micros(&mut self, micros: u64) {
        self.now = self.now.max(micros);
    }

    /// Ends the file and hands back what it was written to, flushed.
    ///
    /// # Errors
    /// The first error of any write, an event for which there is [no room](Self::with_room), or one that no file can hold: a bucket past the deepest
    /// tree, a flush with a piece, a message between servers that there are not, or a tree of one.
    pub fn finish(mut self) -> io::Result<W> {
        self.record.push(END_TAG);
        put_number(&mut self.record, self.events);
        self.put_record();
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Writes what has been encoded, unless something failed before.
    fn put_record(&mut self) {
        if self.error.is_none() {
            let room = self.room.checked_sub(self.record.len() as u64);
            self.error = match room {
                Some(_) => self.out.write_all(&self.record).err(),
                None => {
                    let message =
                        format!("it is longer than it may be, after {} events", self.events);
                    Some(io::Error::new(io::ErrorKind::FileTooLarge, message))
                }
            };
            self.room = room.unwrap_or(0);
        }
        self.record.clear();
    }
}

impl<W: Write> FileSink<W> {
    /// Writes one thing, with its time in front if it begins a trip.
    fn put(&mut self, trip: u64, what: &dyn Debug, encode: impl FnOnce(&mut Self) -> Option<()>) {
        let begins_trip = self.events == 0 || trip != self.last_trip;
        if begins_trip && self.now > self.said {
            self.record.push(TIME_TAG);
            put_number(&mut self.record, self.now - self.said);
            self.said = self.now;
        }
        if encode(self).is_none() {
            self.record.clear();
            self.error.get_or_insert_with(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("no view file can hold event {}: {what:?}", self.events),
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

impl<W: Write> ExchangeSink for FileSink<W> {
    fn exchanged(&mut self, exchange: &Exchange, _: &[u8]) {
        self.put(exchange.trip, exchange, |sink| {
            sink.servers.filter(|servers| exchange.is_between(*servers))?;
            encode_exchange(exchange, sink.last_trip, &mut sink.record)
        });
    }
}

/// Appends the event to `out`, or answers `None` for one that cannot be.
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

/// The same of a message between servers.
fn encode_exchange(exchange: &Exchange, last_trip: u64, out: &mut Vec<u8>) -> Option<()> {
    let Exchange {
        trip, party, partner, tree, eviction, attempt, round, part, shares, seeds, ..
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
