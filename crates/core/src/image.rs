//! The whole state of an ORAM as bytes, for simulations alone.
//!
//! A simulation that takes hours is written down on the way, and goes on from there as if nothing had
//! been. An image holds everything in clear: where each block is, what the position map says, and the
//! coins to come. So there is none of an ORAM on a store: of the schemes here only
//! [`PathScheme`](crate::scheme::PathScheme) over a [`TagTree`](crate::scheme::TagTree) has one, and
//! [`FreecursiveOram`](crate::FreecursiveOram) has one if its scheme and its coins do.
//!
//! ```compile_fail
//! use oblivio_core::MemoryStore;
//! use oblivio_core::image::Image;
//! use oblivio_core::scheme::PathScheme;
//!
//! fn has_an_image<T: Image>() {}
//! has_an_image::<PathScheme<MemoryStore>>();
//! ```
//!
//! Numbers are little-endian. Parameters are not in an image: it is read into an ORAM that was just made
//! with the same ones, and with the same coins, from which its keys follow. Whoever writes images to
//! files adds what tells one from another, and a checksum.

use alloc::format;
use std::io::{Error, ErrorKind, Read, Result, Write};

/// What can be written down, and go on from there.
///
/// What is read may be anybody's: whatever the bytes are, reading ends well or with an error, and takes
/// no more memory than what it reads into has already. Such bytes are [checked](Self::check_image) before anything
/// else is done. Where bytes were written by this process, and nobody else had them, that can be left out.
pub trait Image {
    /// Writes all that what comes next depends on.
    ///
    /// # Errors
    /// Those of `to`, and when an earlier failure has left this broken.
    fn write_image(&self, to: &mut dyn Write) -> Result<()>;

    /// Takes the state that another one [wrote](Self::write_image), which was made with the same
    /// parameters and coins. This one must be as it was made.
    ///
    /// # Errors
    /// Those of `from`, [`UnexpectedEof`](ErrorKind::UnexpectedEof) among them, and
    /// [`InvalidData`](ErrorKind::InvalidData) for what no such one can have written. After an error this
    /// is of no use.
    fn read_image(&mut self, from: &mut dyn Read) -> Result<()>;

    /// Checks what was just [read](Self::read_image) as far as it takes a look at all blocks, which is many times what
    /// reading takes. Nothing, where there is nothing of the kind.
    ///
    /// # Errors
    /// [`InvalidData`](ErrorKind::InvalidData) for what no such one can have written. After an error this
    /// is of no use.
    fn check_image(&mut self) -> Result<()> {
        Ok(())
    }
}

/// No machine counts as far. So counts can be added up, and go on.
const COUNTS: u64 = 1 << 56;

/// Writes a number.
///
/// # Errors
/// Those of `to`.
pub fn write_number(to: &mut dyn Write, number: u64) -> Result<()> {
    to.write_all(&number.to_le_bytes())
}

/// Reads a number.
///
/// # Errors
/// Those of `from`.
pub fn read_number(from: &mut dyn Read) -> Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads a number below `end`, which is called `what` where it is not.
///
/// # Errors
/// Those of `from`, and [`InvalidData`](ErrorKind::InvalidData).
pub fn read_below(from: &mut dyn Read, end: u64, what: &str) -> Result<u64> {
    match read_number(from)? {
        number if number < end => Ok(number),
        _ => Err(refuse(what)),
    }
}

/// Reads how often something happened.
///
/// # Errors
/// Those of `from`, and [`InvalidData`](ErrorKind::InvalidData) for more than can have happened.
pub fn read_count(from: &mut dyn Read) -> Result<u64> {
    read_below(from, COUNTS, "a count past all that can have happened")
}

/// The error of an image that holds `what`, which none can.
pub fn refuse(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("it holds {what}"))
}

#[cfg(test)]
mod tests;
