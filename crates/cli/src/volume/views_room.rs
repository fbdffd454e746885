//! Space for all recordings in one folder, including recordings in progress.
//!
//! Clients decide how often a volume is in use, and how much they transfer. So each file counts as
//! at least 1 MiB, which also bounds the number of files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::CliError;

/// Minimum number of bytes for which a file counts. A recording with less space is not begun.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// Maximum bytes of a recording, some 100 million messages. A client or server that breaks the
/// protocol could make a recording of any length; a longer one is given up.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// The maximum bytes of all recordings in a folder, and the bytes reserved so far. No other process
/// may record to the folder.
pub(super) struct RecordingQuota {
    folder: PathBuf,
    bytes_max: u64,
    /// Bytes reserved for recordings in progress.
    reserved: Mutex<u64>,
}

/// Bytes reserved for one recording. Released when the recording ends and its file counts with its
/// actual length.
pub(super) struct Reservation {
    room: Arc<RecordingQuota>,
    bytes: u64,
}

impl RecordingQuota {
    /// A quota of `bytes_max` bytes for the files of `folder`.
    pub(super) fn new(folder: &Path, bytes_max: u64) -> Self {
        Self { folder: folder.to_owned(), bytes_max, reserved: Mutex::default() }
    }

    /// Reserves half of the remaining space for one recording, but at most 2 GiB, so that other
    /// recordings can begin meanwhile.
    ///
    /// # Errors
    /// If half of the remaining space is less than 1 MiB, or the folder cannot be read.
    pub(super) fn reserve(self: &Arc<Self>) -> Result<Reservation, CliError> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = self.recorded().map_err(|error| {
            CliError::Output(format!("{} cannot be read ({error})", self.folder.display()))
        })?;
        let left = self.bytes_max.saturating_sub(recorded).saturating_sub(*reserved);
        let bytes = (left / 2).min(FILE_BYTES_MAX);
        if bytes < FILE_BYTES_MIN {
            return Err(CliError::Output(format!(
                "too little of the {1} bytes allowed for recordings in {0} is left: remove some, \
                 or raise --record-views-max",
                self.folder.display(),
                self.bytes_max
            )));
        }
        *reserved += bytes;
        Ok(Reservation { room: self.clone(), bytes })
    }

    /// Bytes of the quota that the complete recordings in the folder use.
    fn recorded(&self) -> io::Result<u64> {
        let mut bytes = 0u64;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|it| it == "view") {
                bytes = bytes.saturating_add(entry.metadata()?.len().max(FILE_BYTES_MIN));
            }
        }
        Ok(bytes)
    }
}

impl Reservation {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *self.room.reserved.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn files_and_recordings_under_way_take_no_more_together_than_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let room = Arc::new(RecordingQuota::new(folder.path(), 16 * MIB));
        let file = |name: &str, bytes| {
            File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
        };
        let reserved =
            |of: &[Reservation]| of.iter().map(|it| it.bytes() / MIB).collect::<Vec<_>>();
        let mut under_way: Vec<_> = (0..4).map(|_| room.reserve().unwrap()).collect();
        assert_eq!(reserved(&under_way), [8, 4, 2, 1]);
        assert!(
            room.reserve().is_err_and(|error| error.to_string().contains("--record-views-max"))
        );
        // The first recording has ended, and its file is short.
        file("alice-disk-server1-1.view", 3 * MIB);
        under_way.remove(0);
        under_way.push(room.reserve().unwrap());
        assert_eq!(reserved(&under_way), [4, 2, 1, 3]);
        drop(under_way);
        // Empty files count with the minimum, so their number is limited, too.
        (2..13).for_each(|number| file(&format!("alice-disk-server1-{number}.view"), 0));
        assert_eq!(room.reserve().unwrap().bytes(), MIB);
        file("alice-disk-server1-13.view", 0);
        assert!(room.reserve().is_err());
        // Other files are not recordings.
        fs::remove_file(folder.path().join("alice-disk-server1-1.view")).unwrap();
        file("notes", 9 * MIB);
        assert_eq!(room.reserve().unwrap().bytes(), 2 * MIB);
        let much = Arc::new(RecordingQuota::new(folder.path(), 1 << 40));
        assert_eq!(much.reserve().unwrap().bytes(), FILE_BYTES_MAX);
    }
}
