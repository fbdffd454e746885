//! Records of runs. Each record is a line of JSON, written when its run ends, so that an
//! interrupted experiment can continue.

use std::io::{Read, Write};

use flate2::read::MultiGzDecoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::LabError;

/// The environment of an experiment whose records have type `R`.
pub trait Host<R>: Sync {
    /// Seconds since an arbitrary start.
    fn seconds(&self) -> f64 {
        0.0
    }

    /// Announces `steps` additional steps, in the unit of
    /// [`Experiment::STEPS`](crate::Experiment::STEPS).
    fn planned(&self, _steps: u64) {}

    /// Reports completed steps.
    fn made(&self, _steps: u64) {}

    /// Reports the number of runs that the results need, including recorded ones.
    fn runs(&self, _count: usize) {}

    /// Writes the record of a finished run.
    ///
    /// # Errors
    /// [`LabError::Output`] if the record cannot be written. The experiment then starts no further
    /// run.
    fn keep(&self, _record: &R) -> Result<(), LabError> {
        Ok(())
    }

    /// Shows a text about the expected amount of work, before the work begins.
    fn foreseen(&self, _text: &str) {}

    /// Shows a remark about a problem that does not stop the experiment, such as a missing run or
    /// an unusable saved tree.
    fn remark(&self, _text: &str) {}

    /// The name of this machine.
    fn machine(&self) -> &str {
        ""
    }

    /// The version of the program.
    fn version(&self) -> &str {
        ""
    }
}

/// A host that writes and shows nothing.
impl<R> Host<R> for () {}

/// The number of runs in words: "1 run", "9 runs".
pub fn counted_runs(count: usize) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

/// Storage for trees, which are large and slow to make. A lost tree can be recreated.
pub trait Trees: Sync {
    /// Opens the tree saved as `name`, if any. Its contents are not checked.
    ///
    /// # Errors
    /// The tree cannot be read.
    fn open(&self, name: &str) -> Result<Option<Box<dyn Read>>, LabError>;

    /// Saves the output of `write` as `name`, and replaces an older tree. A reader sees the old or
    /// the new contents, even after an interruption.
    ///
    /// # Errors
    /// The errors of `write`, and failures to save. The old tree then stays.
    fn replace(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), LabError>,
    ) -> Result<(), LabError>;

    /// Removes the tree saved as `name`, if any.
    ///
    /// # Errors
    /// The tree cannot be removed.
    fn remove(&self, name: &str) -> Result<(), LabError>;
}

/// The [model](oblivio_sim::MODEL) of the simulator in records that have no model number.
pub(crate) fn first_model() -> u32 {
    1
}

/// The line of a record, with its newline.
///
/// # Errors
/// [`LabError::Results`] if serialization fails.
pub fn line_of(record: &impl Serialize) -> Result<String, LabError> {
    Ok(serde_json::to_string(record)? + "\n")
}

/// The maximum size in bytes of an unpacked file of records: more than forty times the largest
/// committed file.
const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// Unpacks `packed`, the contents of the gzip file `file`.
///
/// # Errors
/// [`LabError::Input`] if it is damaged or unpacks to more than 256 MiB.
pub fn unpack(file: &str, packed: impl Read) -> Result<Vec<u8>, LabError> {
    unpack_at_most(UNPACKED_BYTES_MAX, file, packed)
}

fn unpack_at_most(bytes_max: u64, file: &str, packed: impl Read) -> Result<Vec<u8>, LabError> {
    let mut text = Vec::new();
    MultiGzDecoder::new(packed).take(bytes_max + 1).read_to_end(&mut text).map_err(|error| {
        LabError::Input(format!("{file} cannot be unpacked ({error}): download or make it again"))
    })?;
    match text.len() as u64 {
        bytes if bytes > bytes_max => Err(LabError::Input(format!(
            "{file} unpacks to more than {bytes_max} bytes: give a file that the lab wrote"
        ))),
        _ => Ok(text),
    }
}

/// The contents of a file of records.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptRecords<R> {
    /// The records of the file.
    pub records: Vec<R>,
    /// The length of the complete lines. An interruption may leave a torn line after them, which
    /// must be removed before a line is appended.
    pub whole_bytes: usize,
}

impl<R: DeserializeOwned> KeptRecords<R> {
    /// Reads the records from `text`, the contents of the file `file`.
    ///
    /// # Errors
    /// [`LabError::Input`] with the number of the first complete line that is not a record.
    pub fn read(file: &str, text: &[u8]) -> Result<Self, LabError> {
        let whole_bytes = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines = text[..whole_bytes].split_inclusive(|byte| *byte == b'\n');
        let record = |(number, line): (usize, &[u8])| {
            serde_json::from_slice(line).map_err(|error| {
                LabError::Input(format!(
                    "line {number} of {file} is not a record of a run ({error}): remove the line, \
                     or choose another --output"
                ))
            })
        };
        let records = (1..).zip(lines).map(record).collect::<Result<_, _>>()?;
        Ok(Self { records, whole_bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn a_packed_file_that_is_damaged_or_too_long_is_refused() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&[b'0'; 1000]).unwrap();
        let whole = encoder.finish().unwrap();
        assert_eq!(unpack_at_most(1000, "runs.gz", &*whole).unwrap().len(), 1000);
        let error = unpack_at_most(999, "runs.gz", &*whole).unwrap_err().to_string();
        assert!(error.starts_with("runs.gz unpacks to more than 999 bytes"), "{error}");
        let mut flipped = whole.clone();
        flipped[15] ^= 1;
        for damaged in [&whole[..whole.len() - 1], &whole[..2], &flipped[..]] {
            let error = unpack("runs.gz", damaged).unwrap_err().to_string();
            assert!(error.starts_with("runs.gz cannot be unpacked"), "{error}");
        }
    }
}
