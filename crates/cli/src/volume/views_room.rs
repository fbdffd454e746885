//! What all recordings in one folder may take together, those under way included.
//!
//! Clients decide how often a volume is in use, and how much passes. So each file counts as a MiB at least, which bounds their number as well.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::CliError;

/// As much a file counts at least, and a recording with room for less is not begun.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// A client or another server that does not keep to the protocol can make a recording as long as it likes. One that is longer is given up: some 100 million messages.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// Of a folder in which nobody else records.
pub(super) struct ViewsRoom {
    folder: PathBuf,
    bytes_max: u64,
    /// What is kept free for recordings under way.
    taken: Mutex<u64>,
}

/// What one recording may take. It is given back when that has ended, and its file counts as long as it is.
pub(super) struct Taken {
    room: Arc<ViewsRoom>,
    bytes: u64,
}

impl ViewsRoom {
    /// All files of this folder may take so many bytes.
    pub(super) fn new(folder: &Path, bytes_max: u64) -> Self {
        Self { folder: folder.to_owned(), bytes_max, taken: Mutex::default() }
    }

    /// Takes half of what is left for a recording, 2 GiB at most: so there is some for others that begin meanwhile.
    ///
    /// # Errors
    /// When that is too little, or the folder cannot be looked at.
    pub(super) fn take(self: &Arc<Self>) -> Result<Taken, CliError> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.kept().map_err(|error| {
            CliError::Output(format!("{} cannot be read ({error})", self.folder.display()))
        })?;
        let left = self.bytes_max.saturating_sub(kept).saturating_sub(*taken);
        let bytes = (left / 2).min(FILE_BYTES_MAX);
        if bytes < FILE_BYTES_MIN {
            return Err(CliError::Output(format!(
                "recordings in {} may take {} bytes together, and too few of them are left: remove some, or allow more (--record-views-max)",
                self.folder.display(),
                self.bytes_max
            )));
        }
        *taken += bytes;
        Ok(Taken { room: self.clone(), bytes })
    }

    /// What the files take that are there.
    fn kept(&self) -> io::Result<u64> {
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

impl Taken {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.room.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
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
        let room = Arc::new(ViewsRoom::new(folder.path(), 16 * MIB));
        let file = |name: &str, bytes| {
            File::create(folder.path().join(name)).unwrap().set_len(bytes).unwrap();
        };
        let taken = |of: &[Taken]| of.iter().map(|it| it.bytes() / MIB).collect::<Vec<_>>();
        let mut under_way: Vec<_> = (0..4).map(|_| room.take().unwrap()).collect();
        assert_eq!(taken(&under_way), [8, 4, 2, 1]);
        assert!(room.take().is_err_and(|error| error.to_string().contains("--record-views-max")));
        // The first has ended, and its file is short.
        file("alice-disk-server1-1.view", 3 * MIB);
        under_way.remove(0);
        under_way.push(room.take().unwrap());
        assert_eq!(taken(&under_way), [4, 2, 1, 3]);
        drop(under_way);
        // Of empty ones there are not more than of others.
        (2..13).for_each(|number| file(&format!("alice-disk-server1-{number}.view"), 0));
        assert_eq!(room.take().unwrap().bytes(), MIB);
        file("alice-disk-server1-13.view", 0);
        assert!(room.take().is_err());
        // Something else is no recording.
        fs::remove_file(folder.path().join("alice-disk-server1-1.view")).unwrap();
        file("notes", 9 * MIB);
        assert_eq!(room.take().unwrap().bytes(), 2 * MIB);
        let much = Arc::new(ViewsRoom::new(folder.path(), 1 << 40));
        assert_eq!(much.take().unwrap().bytes(), FILE_BYTES_MAX);
    }
}
