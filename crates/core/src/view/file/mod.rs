//! A view as a file: three to eight bytes an event, and a few a trip for its time; version 3.
//!
//! A *number* is an unsigned 64-bit integer in LEB128: seven bits a byte, the lowest first, the top
//! bit set on all bytes but the last. It is written as short as possible, so a view has exactly one
//! file of a version, and a reader refuses any other.
//!
//! ```text
//! file    = "OBLVIEW" version can ( [ time ] event )* end
//! version = one byte: 3
//! can     = number: what the recorded store could do besides moving whole buckets, as a sum
//!             1  parts of buckets: headers and single slots
//!           2 and 4 are kept for conditional writes and for sums of slots
//! time    = 0x81 number: microseconds, one at least, between the last time that was said, or the beginning
//!           of the recording, and the trip of the event that follows; that event is the first of its trip
//! event   = tag trip [ place ] bytes
//! tag     = one byte: operation + 4 · part                       0x00 ..= 0x0F
//!             operation  0 prefetch, 1 read, 2 write, 3 flush
//!             part       0 whole, 1 header, 2 slot, 3 none: for a flush, and only for a flush
//! trip    = number: how much larger the trip is than that of the event before (modulo 2^64);
//!           the event before the first has trip 0
//! place   = tree level index [ slot ]      absent when the part is "none"
//! tree    = number, 65,535 at most
//! level   = one byte, 40 at most
//! index   = number, less than 2^level
//! slot    = number, 65,535 at most; present when the part is "slot"
//! bytes   = number: bytes that moved
//! end     = 0x80 number: how many events there were; nothing follows
//! ```
//!
//! A trip without a time of its own came within the same microsecond as the one before it.
//!
//! Since `end` is required, a file cut short anywhere is told from a whole one.
//!
//! A reader refuses a `can` with anything in it that it does not know. Whatever else a store can do is
//! an operation of its own, and events of a new operation need a newer reader anyway.
//!
//! **Version 2** has no `time`: when events happened is not known then. **Version 1** has no `can` either: what
//! the store could do is not known. Both are read still, and nobody writes them any more.

mod error;
mod reader;
mod sink;
#[cfg(test)]
mod tests;

pub use error::{ViewFileError, ViewFileErrorKind};
pub use reader::{ViewReader, read_view};
pub use sink::FileSink;

/// What every view file starts with.
const MAGIC: [u8; 7] = *b"OBLVIEW";

/// The version that is written.
const VERSION: u8 = 3;

/// The version that does not say when events happened.
const VERSION_WITHOUT_TIMES: u8 = 2;

/// The version that does not say what the store could do either.
const VERSION_WITHOUT_CAPABILITIES: u8 = 1;

/// The tag of the end.
const END_TAG: u8 = 0x80;

/// The tag of a time.
const TIME_TAG: u8 = 0x81;

/// `part` in a tag.
mod part_code {
    pub(super) const WHOLE: u8 = 0;
    pub(super) const HEADER: u8 = 1;
    pub(super) const SLOT: u8 = 2;
    pub(super) const NONE: u8 = 3;
}
