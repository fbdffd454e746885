//! A view as a file, version 4: usually three to eight bytes per event, and a few more per trip for
//! its time.
//!
//! A *number* is an unsigned 64-bit integer in LEB128: seven bits per byte, lowest first, with the
//! top bit set on all bytes but the last. It must have the shortest encoding, so a view has exactly
//! one file of each version, and a reader refuses longer encodings.
//!
//! ```text
//! file    = "OBLVIEW" version can servers ( [ time ] ( event | message ) )* end
//! version = one byte: 4
//! can     = number: the recorded store's abilities besides moving whole buckets, as a sum
//!             1  parts of buckets: headers and single slots
//!           2 and 4 are reserved for conditional writes and for sums of slots
//! servers = one byte: number of share servers, 7 at most; 0 for a single store, then no more
//!           [ colluding watched ]
//!             colluding  one byte: how many of them may collude, one at least and not all
//!             watched    one byte: bit i is 1 if the file has the messages that server i + 1
//!                        exchanged with others
//! time    = 0x81 number: microseconds, one at least, from the previous time, or the beginning of
//!           the recording, to the next event or message, which must begin a new trip
//! event   = tag trip [ place ] bytes
//! tag     = one byte: operation + 4 · part                       0x00 ..= 0x0F
//!             operation  0 prefetch, 1 read, 2 write, 3 flush
//!             part       0 whole, 1 header, 2 slot, 3 none: for a flush, and only for a flush
//! trip    = number: the trip minus the trip of the previous event or message (modulo 2^64);
//!           for the first one, the trip itself
//! place   = tree level index [ slot ]      absent when the part is "none"
//! tree    = number, 65,535 at most
//! level   = one byte, 40 at most
//! index   = number, less than 2^level
//! slot    = number, 65,535 at most; present when the part is "slot"
//! bytes   = number: bytes that moved
//! message = way trip party partner [tree] eviction attempt round part shares seeds bytes
//! way     = one byte: 0x10 if `party` sent the message, 0x11 if it received it
//! party   = one byte: the server that saw the message, from 1; one of the watched servers
//! partner = one byte: the other server
//! [tree]  = one byte: 0 if the server did not know the tree yet; 1 for the data's tree, then the
//!           position map's, 8 at most
//! eviction, attempt = numbers, as in the message
//! round   = one byte: the level being written; 0 for the message that ends the dealt data
//! part    = number, 2^32 - 1 at most: the index of the part of every block
//! shares, seeds = one byte each: number of shares in the message, and of seeds among them
//! end     = 0x80 number: number of events and messages; nothing follows
//! ```
//!
//! A trip without a time came within the same microsecond as the previous trip.
//!
//! `end` is required, so a truncated file is always detected.
//!
//! A reader refuses a `can` with unknown bits. Other abilities of stores, if they are added, will
//! appear as new operations, whose events an older reader refuses in any case.
//!
//! The tree of an event of share servers also identifies the server: see
//! [`view_tree`](super::view_tree).
//!
//! **Version 3** has no `servers` and no messages. **Version 2** also has no `time`: the times of
//! events are unknown. **Version 1** also has no `can`: the abilities of the store are unknown. All
//! three can be read, but are no longer written.

mod error;
mod reader;
mod sink;
#[cfg(test)]
mod tests;

pub use error::{ViewFileError, ViewFileErrorKind};
pub use reader::{ViewReader, read_view};
pub use sink::FileSink;

/// The first bytes of every view file.
const MAGIC: [u8; 7] = *b"OBLVIEW";

/// The version of the files that this program writes.
const VERSION: u8 = 4;

/// The last version that cannot represent share servers and their messages.
const VERSION_WITHOUT_SERVERS: u8 = 3;

/// The last version that cannot represent the times of events.
const VERSION_WITHOUT_TIMES: u8 = 2;

/// The only version that does not record the capabilities of the store.
const VERSION_WITHOUT_CAPABILITIES: u8 = 1;

/// The tag that marks the end of the view.
const END_TAG: u8 = 0x80;

/// The tag that marks the time of a trip.
const TIME_TAG: u8 = 0x81;

/// The tags of messages between servers: one that the watched server sent, and one that it
/// received.
const SENT_TAG: u8 = 0x10;
const RECEIVED_TAG: u8 = 0x11;

/// The codes of parts of buckets, which are part of an event's tag.
mod part_code {
    pub(super) const WHOLE: u8 = 0;
    pub(super) const HEADER: u8 = 1;
    pub(super) const SLOT: u8 = 2;
    pub(super) const NONE: u8 = 3;
}
