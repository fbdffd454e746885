//! A view as a file: three to eight bytes an event, and a few a trip for its time; version 4.
//!
//! A *number* is an unsigned 64-bit integer in LEB128: seven bits a byte, the lowest first, the top
//! bit set on all bytes but the last. It is written as short as possible, so a view has exactly one
//! file of a version, and a reader refuses any other.
//!
//! ```text
//! file    = "OBLVIEW" version can servers ( [ time ] ( event | message ) )* end
//! version = one byte: 4
//! can     = number: what the recorded store could do besides moving whole buckets, as a sum
//!             1  parts of buckets: headers and single slots
//!           2 and 4 are kept for conditional writes and for sums of slots
//! servers = one byte: how many servers hold shares, 7 at most; 0, and nothing more, if storage is one place
//!           [ colluding watched ]
//!             colluding  one byte: how many of them may collude, one at least and not all
//!             watched    one byte: bit i is 1 if the file has what server i + 1 and others sent to each other
//! time    = 0x81 number: microseconds, one at least, between the last time that was said, or the beginning
//!           of the recording, and the trip of what follows; that is the first of its trip
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
//! message = way trip party partner [tree] eviction attempt round part shares seeds bytes
//! way     = one byte: 0x10 for what a server sent, 0x11 for what it got
//! party   = one byte: which server saw it, from 1; one of those that are watched
//! partner = one byte: the other one
//! [tree]  = one byte: 0 if the server did not know yet for which of its trees it is; 1 for that of the data, and so on, 8 at most
//! eviction, attempt = numbers, as the message says them
//! round   = one byte: the level that is made; 0 for the end of what is dealt
//! part    = number, 2^32 - 1 at most: which part of every block
//! shares, seeds = one byte each: how many shares it has, and how many of those are seeds
//! end     = 0x80 number: how many events and messages there were; nothing follows
//! ```
//!
//! A trip without a time of its own came within the same microsecond as the one before it.
//!
//! Since `end` is required, a file cut short anywhere is told from a whole one.
//!
//! A reader refuses a `can` with anything in it that it does not know. Whatever else a store can do is
//! an operation of its own, and events of a new operation need a newer reader anyway.
//!
//! An event of servers that hold shares names by its tree who saw it: see [`tree_of_party`](super::tree_of_party).
//!
//! **Version 3** has no `servers`, and no messages. **Version 2** has no `time` either: when events happened is not known then. **Version 1** has no
//! `can`: what the store could do is not known. They are read still, and nobody writes them any more.

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
const VERSION: u8 = 4;

/// The version that does not say of which servers storage consists.
const VERSION_WITHOUT_SERVERS: u8 = 3;

/// The version that does not say when events happened either.
const VERSION_WITHOUT_TIMES: u8 = 2;

/// The version that does not say what the store could do either.
const VERSION_WITHOUT_CAPABILITIES: u8 = 1;

/// The tag of the end.
const END_TAG: u8 = 0x80;

/// The tag of a time.
const TIME_TAG: u8 = 0x81;

/// The tags of messages between servers.
const SENT_TAG: u8 = 0x10;
const RECEIVED_TAG: u8 = 0x11;

/// `part` in a tag.
mod part_code {
    pub(super) const WHOLE: u8 = 0;
    pub(super) const HEADER: u8 = 1;
    pub(super) const SLOT: u8 = 2;
    pub(super) const NONE: u8 = 3;
}
