//! Passes the program's accesses through the first-level cache, and writes the resulting records to
//! the raw file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process;

use oblivio_sim::recording::raw::{self, HEADER_BYTES, Progress, RECORD_BYTES, State};
use oblivio_sim::recording::{Access, FirstLevel};

use crate::arguments::Arguments;

/// The number of buffered records at which the buffer is written to the file.
const RECORDS_PER_PIECE: usize = 4096;

/// The number of instructions after which the next access updates the header, so that a warm-up
/// also shows progress.
const INSTRUCTIONS_PER_HEADER: u64 = 10_000_000;

/// A first-level cache, and the file for its records.
pub(crate) struct Recorder {
    first_level: FirstLevel,
    file: File,
    pending: Vec<u8>,
    progress: Progress,
    records_max: u64,
    /// The number of instructions after which the next access updates the header.
    header_is_due: u64,
    /// The id of the recording process. Its forked children do not record.
    process: u32,
}

impl Recorder {
    /// Creates the file for the records, and writes its first header.
    pub(crate) fn start(arguments: Arguments) -> Result<Self, String> {
        let Arguments { output, records_max, first_level } = arguments;
        let first_level = FirstLevel::new(first_level).map_err(|error| error.to_string())?;
        let file =
            File::create(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let mut recorder = Self {
            first_level,
            file,
            pending: Vec::with_capacity((RECORDS_PER_PIECE + 4) * RECORD_BYTES),
            progress: Progress { instructions: 0, records: 0, state: State::Running },
            records_max,
            header_is_due: 0,
            process: process::id(),
        };
        recorder.write();
        Ok(recorder)
    }

    /// Passes an access of the program through the cache, and records its misses. Does nothing once
    /// the recording is full, has ended or has failed.
    pub(crate) fn access(&mut self, access: Access) {
        let Self { first_level, pending, progress, records_max, .. } = self;
        if progress.state != State::Running {
            return;
        }
        progress.instructions = access.instruction;
        first_level.access(access, |record| {
            if progress.records < *records_max {
                pending.extend_from_slice(&raw::encode(record));
                progress.records += 1;
            }
        });
        if progress.records == *records_max {
            progress.state = State::Full;
        }
        let is_due = progress.instructions >= self.header_is_due;
        let is_long = pending.len() >= RECORDS_PER_PIECE * RECORD_BYTES;
        if is_due || is_long || progress.state == State::Full {
            self.write();
        }
    }

    /// Ends the recording, after the program has ended.
    pub(crate) fn end(&mut self, instructions: u64) {
        if self.progress.state == State::Running {
            self.progress.instructions = instructions;
            self.progress.state = State::Ended;
            self.write();
        }
    }

    /// Writes the pending records and the header. If this fails, the recording ends as
    /// [`State::Failed`]. A forked child of the recorded process writes nothing and stops
    /// recording.
    fn write(&mut self) {
        if process::id() != self.process {
            self.progress.state = State::Ended;
            return;
        }
        self.header_is_due = self.progress.instructions.saturating_add(INSTRUCTIONS_PER_HEADER);
        if self.try_write().is_err() {
            self.progress.state = State::Failed;
            // The header overwrites existing bytes, so this works even on a full disk. If this
            // write fails too, the previous header remains, and later records are missing.
            let _ = self.file.write_all_at(&self.progress.encode(), 0);
        }
        self.pending.clear();
    }

    fn try_write(&self) -> io::Result<()> {
        let end = HEADER_BYTES as u64 + self.progress.records * RECORD_BYTES as u64;
        self.file.write_all_at(&self.pending, end.saturating_sub(self.pending.len() as u64))?;
        self.file.write_all_at(&self.progress.encode(), 0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(instruction: u64) -> Access {
        Access { instruction, address: instruction * 64, bytes: 8, is_store: false }
    }

    #[test]
    fn it_writes_the_requested_records_and_their_state() {
        let path = std::env::temp_dir().join(format!("oblivio-recorder-{}", process::id()));
        let out = format!("out={}", path.display());
        for (records_max, accesses, state, records) in
            [(10_000, 20_000, State::Full, 10_000), (10_000, 5000, State::Ended, 5000)]
        {
            let count = format!("records={records_max}");
            let arguments = [out.as_str(), count.as_str()];
            let mut recorder =
                Recorder::start(Arguments::parse(arguments.into_iter()).unwrap()).unwrap();
            (1..=accesses).for_each(|instruction| recorder.access(load(instruction)));
            recorder.end(accesses);
            let bytes = fs::read(&path).unwrap();
            let (header, rest) = bytes.split_first_chunk().unwrap();
            let progress = Progress::decode(header).unwrap();
            assert_eq!(progress, Progress { instructions: records, records, state });
            let (rest, []) = rest.as_chunks() else { panic!("half a record") };
            assert_eq!(rest.len() as u64, records);
            for (line, record) in (1..).zip(rest) {
                assert_eq!(raw::decode(record).unwrap().line, line);
            }
        }
        fs::remove_file(&path).unwrap();
        let nowhere = ["out=/nowhere/at/all"].into_iter();
        assert!(Recorder::start(Arguments::parse(nowhere).unwrap()).is_err());
    }
}
