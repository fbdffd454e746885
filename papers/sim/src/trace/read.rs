//! Reading a trace, whatever it is written in.

use std::io::{self, BufReader, Read};

use super::text::TextFormat;
use super::{Format, RECORDS_MAX, Trace, binary, check_name, packing, text};
use crate::SimError;

impl Trace {
    /// Reads a trace, compressed (gzip, zstd) or not. A binary trace says itself what it is; in text,
    /// the first line decides. `name` is what the file is called in errors, and the trace as well,
    /// unless it is a binary one, which brings its name along.
    ///
    /// # Errors
    /// [`SimError::Trace`] with the first line (text) or byte (binary) that is wrong, when there is no
    /// record or there are too many, or when the file cannot be read or unpacked.
    pub fn read(name: &str, file: impl Read) -> Result<Self, SimError> {
        read(name, None, file)
    }

    /// Reads a trace of which the format is known.
    ///
    /// # Errors
    /// As [`Trace::read`], and when it is of another format.
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
