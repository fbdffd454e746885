//! The complete state of an ORAM as bytes. For simulations only.
//!
//! A simulation that takes hours saves its state and resumes from it with identical results. An
//! image is not encrypted: it holds the location of each block, the position map and the state of
//! the random generator. So an ORAM on a store has no image. Among the schemes, only
//! [`PathScheme`](crate::scheme::PathScheme) over a [`TagTree`](crate::scheme::TagTree) has one.
//! [`FreecursiveOram`](crate::FreecursiveOram) has one if its scheme and its coins have images.
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
//! Numbers are little-endian. An image does not contain parameters: read it into a new ORAM with
//! the same parameters and the same coins, from which its keys follow. A caller that writes images
//! to files must add an identifier and a checksum.

use alloc::format;
use std::io::{Error, ErrorKind, Read, Result, Write};

/// State that can be saved and resumed.
///
/// An image is untrusted. Whatever its bytes are, reading the image returns a value or an error,
/// and allocates no more memory than the target already has. After reading, call
/// [`check_image`](Self::check_image) before anything else. A process may skip that for bytes that
/// it wrote itself and kept private.
pub trait Image {
    /// Writes all state on which the later behaviour of this object depends.
    ///
    /// # Errors
    /// The errors of `to`, and an error if an earlier failure left this object unusable.
    fn write_image(&self, to: &mut dyn Write) -> Result<()>;

    /// Reads a state [written](Self::write_image) by an object with the same parameters and coins.
    /// This object must be newly made.
    ///
    /// # Errors
    /// The errors of `from`, including [`UnexpectedEof`](ErrorKind::UnexpectedEof), and
    /// [`InvalidData`](ErrorKind::InvalidData) if no such object can have written the bytes. After
    /// an error this object must not be used.
    fn read_image(&mut self, from: &mut dyn Read) -> Result<()>;

    /// Completes the checks of a state that was just [read](Self::read_image). Makes the checks
    /// that scan all blocks, which take many times as long as reading. By default there is nothing
    /// to check.
    ///
    /// # Errors
    /// [`InvalidData`](ErrorKind::InvalidData) if no such object can have written the bytes. After
    /// an error this object must not be used.
    fn check_image(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The bound on counts of events in an image. Such a count can still grow without overflowing.
const COUNTS: u64 = 1 << 56;

/// Writes a number in eight bytes.
///
/// # Errors
/// The errors of `to`.
pub fn write_number(to: &mut dyn Write, number: u64) -> Result<()> {
    to.write_all(&number.to_le_bytes())
}

/// Reads a number of eight bytes.
///
/// # Errors
/// The errors of `from`.
pub fn read_number(from: &mut dyn Read) -> Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads a number below `end`. If the number is too large, the error describes it with `what`.
///
/// # Errors
/// The errors of `from`, and [`InvalidData`](ErrorKind::InvalidData).
pub fn read_below(from: &mut dyn Read, end: u64, what: &str) -> Result<u64> {
    match read_number(from)? {
        number if number < end => Ok(number),
        _ => Err(refuse(what)),
    }
}

/// Reads a count of events.
///
/// # Errors
/// The errors of `from`, and [`InvalidData`](ErrorKind::InvalidData) if the count is impossibly
/// large.
pub fn read_count(from: &mut dyn Read) -> Result<u64> {
    read_below(from, COUNTS, "an impossibly large count")
}

/// The error for an invalid image. `what` describes the defect.
pub fn refuse(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the image holds {what}"))
}

#[cfg(test)]
mod tests;
