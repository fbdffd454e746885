//! Saves a study in a file, and resumes it.
//!
//! ```text
//! ┌───────┬─────────┬───────┬───────┬───────┬─────────────────────────┬────────┐
//! │ magic │ version │ what  │ note  │ coins │ counts, frontend, tree  │ CRC-32 │
//! │ 8     │ 8       │ 8 + … │ 8 + … │ 49    │ …                       │ 4 bytes│
//! └───────┴─────────┴───────┴───────┴───────┴─────────────────────────┴────────┘
//! ```
//!
//! *What* is the specification and the seed, as JSON: the state of a study fits no other study. The
//! checksum covers all bytes before it. Numbers are little-endian.

#[cfg(test)]
mod tests;

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};

use crc32fast::Hasher;
use oblivio_core::image::{Image, read_number, refuse, write_number};
use serde::Serialize;

use super::Study;
use crate::SimError;
use crate::controller::OramSpec;

const MAGIC: &[u8; 8] = b"OBLVSTDY";
const VERSION: u64 = 3;

/// Bytes read and written at once, small enough to stay cached until they are checksummed.
const PIECE_BYTES: usize = 1 << 18;

/// Maximum length of a note in bytes.
const NOTE_BYTES_MAX: u64 = 1 << 24;

/// The specification and the seed, which identify the study of a saved state.
#[derive(Serialize)]
struct StudyKey<'a> {
    spec: &'a OramSpec,
    seed: u64,
}

impl Study {
    /// Saves the complete state, with a note from the caller. A [resumed](Self::resume) study takes
    /// the same snapshots as an uninterrupted study.
    ///
    /// # Errors
    /// [`SimError::Output`] if writing fails, or after an earlier error of the engine.
    /// [`SimError::Spec`] for a note of more than 16 MiB.
    pub fn save(&self, note: &str, to: impl Write) -> Result<(), SimError> {
        if note.len() as u64 > NOTE_BYTES_MAX {
            return Err(SimError::Spec("a note on a study has at most 16 MiB".to_owned()));
        }
        let mut to = BufWriter::with_capacity(PIECE_BYTES, Summed::new(to));
        self.write(note, &mut to).map_err(SimError::Output)?;
        let Summed { mut inner, sum } =
            to.into_inner().map_err(|error| SimError::Output(error.into_error()))?;
        inner.write_all(&sum.finalize().to_le_bytes()).map_err(SimError::Output)?;
        inner.flush().map_err(SimError::Output)
    }

    /// Restores the study of `spec` and `seed` that was [saved](Self::save), with its note. The
    /// data are untrusted: apart from a note of at most 16 MiB, they cannot cause a larger memory
    /// allocation than a new study.
    ///
    /// # Errors
    /// [`SimError::Saved`] if the data are damaged or of another study, and the errors of
    /// [`Self::new`].
    pub fn resume(spec: &OramSpec, seed: u64, from: impl Read) -> Result<(Self, String), SimError> {
        let mut study = Self::empty(spec, seed)?;
        let mut from = Summed::new(BufReader::with_capacity(PIECE_BYTES, from));
        let note = study.read(&mut from).map_err(not_saved)?;
        let Summed { mut inner, sum } = from;
        check_end(&mut inner, sum.finalize()).map_err(not_saved)?;
        study.oram.check_image().map_err(not_saved)?;
        Ok((study, note))
    }

    fn write(&self, note: &str, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(MAGIC)?;
        write_number(to, VERSION)?;
        for text in [self.study_key()?.as_bytes(), note.as_bytes()] {
            write_number(to, text.len() as u64)?;
            to.write_all(text)?;
        }
        self.write_state(to)
    }

    fn read(&mut self, from: &mut dyn Read) -> io::Result<String> {
        let mut magic = [0; MAGIC.len()];
        from.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(refuse("no study"));
        }
        if read_number(from)? != VERSION {
            return Err(refuse("a study of another version of this program"));
        }
        let what = self.study_key()?;
        if read_text(from, what.len() as u64)? != what.as_bytes() {
            return Err(refuse(ANOTHER));
        }
        let note = String::from_utf8(read_text(from, NOTE_BYTES_MAX)?)
            .map_err(|_| refuse("a note that is not UTF-8"))?;
        self.read_state(from)?;
        let found = self.oram.found();
        if [&found.data, &found.position_map]
            .iter()
            .any(|found| found.levels.len() > self.slots.len())
        {
            return Err(refuse("more levels than the tree has"));
        }
        Ok(note)
    }

    /// Writes the state, without the identification of the study.
    pub(super) fn write_state(&self, to: &mut dyn Write) -> io::Result<()> {
        self.coins.write_image(to)?;
        self.oram.write_image(to)
    }

    /// Reads the output of [`Self::write_state`] for a study with the same specification and seed.
    pub(super) fn read_state(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.coins.read_image(from)?;
        self.oram.read_image(from)
    }

    fn study_key(&self) -> io::Result<String> {
        Ok(serde_json::to_string(&StudyKey { spec: &self.spec, seed: self.seed })?)
    }
}

const ANOTHER: &str = "the study of another ORAM or another seed";

/// Reads a text of at most `bytes_max` bytes.
fn read_text(from: &mut dyn Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let bytes = read_number(from)?;
    if bytes > bytes_max {
        return Err(refuse(ANOTHER));
    }
    let mut text = Vec::new();
    match from.take(bytes).read_to_end(&mut text)? as u64 {
        read if read == bytes => Ok(text),
        _ => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads the checksum, and checks that the data end there.
fn check_end(from: &mut impl Read, sum: u32) -> io::Result<()> {
    let mut stored = [0; size_of::<u32>()];
    from.read_exact(&mut stored)?;
    if u32::from_le_bytes(stored) != sum {
        return Err(refuse("a wrong checksum"));
    }
    match from.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(refuse("bytes after the end of the study")),
    }
}

fn not_saved(error: io::Error) -> SimError {
    SimError::Saved(match error.kind() {
        ErrorKind::UnexpectedEof => "the study file ends too early".to_owned(),
        ErrorKind::InvalidData => format!("cannot use the study file: {error}"),
        _ => format!("cannot read the study file: {error}"),
    })
}

/// Computes the checksum of the bytes that pass through.
struct Summed<T> {
    inner: T,
    sum: Hasher,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: Hasher::new() }
    }
}

impl<T: Write> Write for Summed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(&bytes[..bytes.len().min(PIECE_BYTES)])?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Summed<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let piece = bytes.len().min(PIECE_BYTES);
        let read = self.inner.read(&mut bytes[..piece])?;
        self.sum.update(&bytes[..read]);
        Ok(read)
    }
}
