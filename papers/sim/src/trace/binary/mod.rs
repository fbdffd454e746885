//! The binary format, version 1: about four bytes per record.
//!
//! A *number* is an unsigned 64-bit integer in LEB128: seven bits per byte, lowest first, with the
//! top bit set on all bytes but the last. It is written in its shortest form, so each trace has
//! exactly one encoding. A reader refuses any other.
//!
//! ```text
//! file     = "OBLTRACE" version name count record* checksum
//! version  = one byte: 1
//! name     = number: length in bytes, at most 1024; then the name: UTF-8, no control characters
//! count    = number: records in the file, from 1 to 2^26
//! record   = number: 2 · gap + kind                 gap less than 2^32; kind 0 read, 1 write
//!            number: zig-zag of (line - line of the record before), each line less than 2^58;
//!            the record before the first has line 0
//! checksum = four bytes: CRC-32 (IEEE) of all bytes before it, lowest byte first; nothing follows
//! ```
//!
//! Zig-zag moves the sign into the lowest bit: 0, -1, 1, -2 become 0, 1, 2, 3. Most differences are
//! short, because neighbours in a trace are often neighbours in memory.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::read;
pub(super) use write::write;

/// The first bytes of every binary trace.
pub(super) const MAGIC: [u8; 8] = *b"OBLTRACE";

/// The only version so far.
const VERSION: u8 = 1;
