//! Runs a closure for each server, each on its own thread.

use std::io;
use std::thread;

use oblivio_core::{StoreError, StoreErrorKind};

use oblivio_store::{OpenError, OpenErrorKind};

/// Why a thread has no result.
pub(super) enum ThreadError {
    /// The system could not start the thread.
    NotStarted(io::Error),
    /// The thread panicked.
    Ended,
}

const ENDED: &str = "the thread for the server has panicked; report this bug";

/// Runs each closure on its own thread, and waits for all results.
pub(super) fn all_at_once<T: Send>(
    acts: impl Iterator<Item = impl FnOnce() -> T + Send>,
) -> Vec<Result<T, ThreadError>> {
    thread::scope(|scope| {
        let begun: Vec<_> =
            acts.map(|act| thread::Builder::new().spawn_scoped(scope, act)).collect();
        let ended = begun.into_iter().map(|begun| {
            begun.map_err(ThreadError::NotStarted)?.join().map_err(|_| ThreadError::Ended)
        });
        ended.collect()
    })
}

impl From<ThreadError> for StoreError {
    fn from(why: ThreadError) -> Self {
        match why {
            ThreadError::NotStarted(cause) => {
                let message = format!("cannot start a thread for each server: {cause}");
                Self::caused_by(StoreErrorKind::Failed, message, cause)
            }
            ThreadError::Ended => Self::new(StoreErrorKind::Failed, ENDED),
        }
    }
}

impl From<ThreadError> for OpenError {
    fn from(why: ThreadError) -> Self {
        match why {
            ThreadError::NotStarted(cause) => Self::io("start a thread for each server", cause),
            ThreadError::Ended => Self::new(OpenErrorKind::Io, ENDED),
        }
    }
}
