//! The file between the emulator, which makes the records, and the program that writes the trace.
//!
//! A header of fixed size has the state of the recording, and is rewritten regularly. So the header
//! also shows progress, and remains valid if the program is killed. The records follow the header;
//! their line numbers come from the program's own addresses. The file exists only during the
//! recording; it is not a storage format.

use crate::SimError;
use crate::trace::{AccessKind, Record};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 16;

const MAGIC: [u8; 8] = *b"oblirec1";

/// The state of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The recording is running, or the program was killed.
    Running,
    /// The recording has all requested records.
    Full,
    /// The program has exited.
    Ended,
    /// Writing the file failed.
    Failed,
}

/// The progress of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Instructions of the program so far, including the warm-up.
    pub instructions: u64,
    /// Records in the file.
    pub records: u64,
    /// The state of the recording.
    pub state: State,
}

impl Progress {
    /// Encodes the progress as the header of a raw file.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let state: u64 = match self.state {
            State::Running => 0,
            State::Full => 1,
            State::Ended => 2,
            State::Failed => 3,
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.instructions.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.records.to_le_bytes());
        bytes[24..].copy_from_slice(&state.to_le_bytes());
        bytes
    }

    /// Decodes the header of a raw file.
    ///
    /// # Errors
    /// [`SimError::Trace`] if the bytes are not a header. Plugin and program are then of different
    /// versions.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, SimError> {
        let state = match number(&bytes[24..]) {
            _ if bytes[..8] != MAGIC => return Err(foreign("header")),
            0 => State::Running,
            1 => State::Full,
            2 => State::Ended,
            3 => State::Failed,
            _ => return Err(foreign("state")),
        };
        Ok(Self { instructions: number(&bytes[8..16]), records: number(&bytes[16..24]), state })
    }
}

/// Encodes a record for a raw file.
pub fn encode(record: Record) -> [u8; RECORD_BYTES] {
    let kind: u32 = match record.kind {
        AccessKind::Read => 0,
        AccessKind::Write => 1,
    };
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&record.line.to_le_bytes());
    bytes[8..12].copy_from_slice(&record.gap.to_le_bytes());
    bytes[12..].copy_from_slice(&kind.to_le_bytes());
    bytes
}

/// Decodes a record of a raw file.
///
/// # Errors
/// [`SimError::Trace`] if the bytes are not a record.
pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Result<Record, SimError> {
    let kind = match number(&bytes[12..]) {
        0 => AccessKind::Read,
        1 => AccessKind::Write,
        _ => return Err(foreign("record")),
    };
    let gap = u32::try_from(number(&bytes[8..12])).map_err(|_| foreign("record"))?;
    Ok(Record { gap, kind, line: number(&bytes[..8]) })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn foreign(part: &str) -> SimError {
    SimError::Trace(format!(
        "the plugin wrote an unknown {part}: build plugin and program from the same sources"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_bytes_are_refused() {
        let progress = Progress { instructions: 1, records: 2, state: State::Ended };
        for (place, value) in [(0, b'x'), (24, 4), (31, 1)] {
            let mut bytes = progress.encode();
            bytes[place] = value;
            let message = Progress::decode(&bytes).unwrap_err().to_string();
            assert!(message.contains("same sources"), "{message}");
        }
        let mut bytes = encode(Record { gap: 1, kind: AccessKind::Write, line: 2 });
        bytes[12] = 2;
        assert!(decode(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            instructions: u64, records: u64, state in 0usize..4, gap: u32, writes: bool, line: u64,
        ) {
            let state = [State::Running, State::Full, State::Ended, State::Failed][state];
            let progress = Progress { instructions, records, state };
            prop_assert_eq!(Progress::decode(&progress.encode()).unwrap(), progress);
            let kind = if writes { AccessKind::Write } else { AccessKind::Read };
            let record = Record { gap, kind, line };
            prop_assert_eq!(decode(&encode(record)).unwrap(), record);
        }
    }
}
