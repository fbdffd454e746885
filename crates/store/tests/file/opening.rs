//! Opening a file that was closed a moment ago.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use oblivio_store::{FileOptions, FileStore, OpenError, OpenErrorKind};

const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Opens a file that nobody uses. A process that another test starts has the lock, too, from its fork until its exec:
/// that is waited for.
pub(crate) fn open(path: &Path, options: &FileOptions) -> Result<FileStore, OpenError> {
    let is_locked = |error: &OpenError| error.kind() == OpenErrorKind::Locked;
    for _ in 1..ATTEMPTS {
        match FileStore::open(path, options) {
            Err(error) if is_locked(&error) => sleep(PAUSE),
            answer => return answer,
        }
    }
    FileStore::open(path, options)
}
