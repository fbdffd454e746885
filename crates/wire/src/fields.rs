//! Reads and writes the fields of a message: integers and strings.

use crate::message::Invalid;

/// The part of a message that has not been read yet.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(crate) fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Invalid> {
        let (field, rest) =
            self.0.split_first_chunk().ok_or(Invalid("the message is too short"))?;
        self.0 = rest;
        Ok(*field)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Invalid> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Invalid> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Invalid> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Invalid> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Invalid> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Invalid("a flag is neither 0 nor 1")),
        }
    }

    /// Reads a count of elements that follow. Fails if the rest of the message is too short for
    /// that many elements of at least `bytes_min` bytes.
    pub(crate) fn count(&mut self, bytes_min: usize) -> Result<usize, Invalid> {
        let count = self.u32()? as usize;
        let fits = count.checked_mul(bytes_min).is_some_and(|bytes| bytes <= self.0.len());
        fits.then_some(count).ok_or(Invalid("a count exceeds the rest of the message"))
    }

    /// Reads a string with a length prefix.
    pub(crate) fn text(&mut self) -> Result<String, Invalid> {
        let bytes = usize::from(self.u16()?);
        if bytes > TEXT_BYTES_MAX {
            return Err(Invalid("a string is too long"));
        }
        let (text, rest) =
            self.0.split_at_checked(bytes).ok_or(Invalid("the message is too short"))?;
        self.0 = rest;
        let text = str::from_utf8(text).map_err(|_| Invalid("a string is not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn end(self) -> Result<(), Invalid> {
        self.0.is_empty().then_some(()).ok_or(Invalid("trailing bytes"))
    }
}

/// Appends a string with a length prefix. A string longer than [`TEXT_BYTES_MAX`] bytes is cut at
/// the last character boundary within this length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut bytes = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(bytes) {
        bytes -= 1;
    }
    out.extend((bytes as u16).to_le_bytes());
    out.extend(&text.as_bytes()[..bytes]);
}

/// The maximum number of bytes of a string.
const TEXT_BYTES_MAX: usize = 4096;
