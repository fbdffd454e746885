//! Access to state files for the fuzzer, whose records are sealed under a fixed key.

use std::io::{self, Cursor};
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::wiped::WipedBytes;
use zeroize::Zeroizing;

use super::file::{Header, StateKey, StateReader, StateWriter};
use super::history::History;
use super::record::Record;
use crate::error::VolumeError;
use crate::state_dir::StateFile;
use crate::superblock::VolumeParams;

/// Reads a state file with the contents `bytes`, for a volume of these parameters.
///
/// # Errors
/// When `bytes` are no valid state file.
pub fn read(bytes: Vec<u8>, params: &VolumeParams) -> Result<(), VolumeError> {
    let reader = StateReader::new(Box::new(Cursor::new(bytes)), &key())?;
    let config = params.config()?;
    let mut history = History::read(reader)?;
    history.restore(&*config)?;
    history.each_section(|_| Ok(()))?;
    history.each_pending(|_| Ok(()))
}

/// A state file with these records, sealed so that [`read`] opens them.
///
/// # Panics
/// If a record is longer than 80 MiB, the limit of a state file.
pub fn seal<'a>(records: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let header = Header { volume: [1; 16], generation: 2, salt: [3; 32] };
    let file = InMemory::default();
    let mut writer =
        StateWriter::begin(Box::new(file.clone()), &header, &key()).expect("it is in memory");
    for record in records {
        writer.append(|out| out.extend_from_slice(record)).expect("it is in memory");
    }
    file.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Decodes a record and encodes it again. `None` if `bytes` are no record.
pub fn rewrite(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = WipedBytes::default();
    Record::read(bytes)?.put(&mut out);
    Some(out.to_vec())
}

fn key() -> StateKey {
    StateKey(Zeroizing::new([4; 32]))
}

#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<Vec<u8>>>);

impl StateFile for InMemory {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
