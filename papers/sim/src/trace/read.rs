//! Reads traces in any format.

use std::io::{self, BufReader, Read};

use super::text::TextFormat;
use super::{Format, RECORDS_MAX, Trace, binary, check_name, packing, text};
use crate::SimError;

impl Trace {
    /// Reads a trace, compressed (gzip, zstd) or not. The format is detected from the magic number,
    /// or from the first line of a text. `name` is the name of the file in messages. It also
    /// becomes the name of the trace, except for a binary file, which contains a name.
    ///
    /// # Errors
    /// [`SimError::Trace`] with the first invalid line (text) or byte (binary). Also if the file
    /// has no records or too many, or cannot be read or decompressed, or `name` is not a valid
    /// name.
    pub fn read(name: &str, file: impl Read) -> Result<Self, SimError> {
        read(name, None, file)
    }

    /// Reads a trace in a given format.
    ///
    /// # Errors
    /// The errors of [`Trace::read`], and an error if the file has another format.
    pub fn read_as(format: Format, name: &str, file: impl Read) -> Result<Self, SimError> {
        read(name, Some(format), file)
    }
}

fn read(name: &str, format: Option<Format>, file: impl Read) -> Result<Trace, SimError> {
    check_name(name).map_err(SimError::Trace)?;
    let unreadable = |error: io::Error| text::unreadable(name, 1, &error);
    let file = packing::unpack(file).map_err(unreadable)?;
    let (start, file) = packing::peek(file, binary::MAGIC.len()).map_err(unreadable)?;
    let file = BufReader::new(file);
    let format = match format {
        None if start == binary::MAGIC => Some(Format::Binary),
        format => format,
    };
    let format = match format {
        Some(Format::Binary) => return binary::read(name, file),
        Some(Format::Usimm) => Some(TextFormat::Usimm),
        Some(Format::Ramulator) => Some(TextFormat::Ramulator),
        None => None,
    };
    let records = text::read(name, format, file, RECORDS_MAX)?;
    Ok(Trace { name: name.to_owned(), records })
}
