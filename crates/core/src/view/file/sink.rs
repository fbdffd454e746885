//! Writes a view file while the view comes into being.

use alloc::format;
use alloc::vec::Vec;
use std::io::{self, Write};

use super::{END_TAG, MAGIC, TIME_TAG, VERSION, part_code};
use crate::geometry::{BucketId, LEAF_LEVEL_MAX};
use crate::pieces::{Part, Piece};
use crate::store::Capabilities;
use crate::view::{Event, EventSink, Operation};

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
    events: u64,
    last_trip: u64,
    /// Microseconds from the beginning of the recording to now, and to what was said last.
    now: u64,
    said: u64,
    /// The event being encoded.
    record: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> FileSink<W> {
    /// Begins the file of a store that can do these.
    pub fn new(out: W, capabilities: Capabilities) -> Self {
        let mut record = [&MAGIC[..], &[VERSION]].concat();
        put_number(&mut record, u64::from(capabilities.bits()));
        let mut sink = Self { out, events: 0, last_trip: 0, now: 0, said: 0, record, error: None };
        sink.put_record();
        sink
    }

    /// Says that what is recorded from now on happens so many microseconds after the beginning of the recording. A time
    /// before the one that was said last counts as that. A trip has the time of its first event.
    pub fn set_micros(&mut self, micros: u64) {
        self.now = self.now.max(micros);
    }

    /// Ends the file and hands back what it was written to, flushed.
    ///
    /// # Errors
    /// The first error of any write, or an event that no file can hold: a bucket past the deepest
    /// tree, or a flush with a piece.
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
            self.error = self.out.write_all(&self.record).err();
        }
        self.record.clear();
    }
}

impl<W: Write> EventSink for FileSink<W> {
    fn record(&mut self, event: &Event, _: &[u8]) {
        let begins_trip = self.events == 0 || event.trip != self.last_trip;
        if begins_trip && self.now > self.said {
            self.record.push(TIME_TAG);
            put_number(&mut self.record, self.now - self.said);
            self.said = self.now;
        }
        if encode(event, self.last_trip, &mut self.record).is_none() {
            self.record.clear();
            self.error.get_or_insert_with(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("no view file can hold event {}: {event:?}", self.events),
                )
            });
        }
        self.put_record();
        self.last_trip = event.trip;
        self.events += 1;
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

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
