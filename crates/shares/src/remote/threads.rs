//! What is done with every server at the same time: a thread for each.

use std::io;
use std::thread;

use oblivio_core::{StoreError, StoreErrorKind};

use oblivio_store::{OpenError, OpenErrorKind};

/// Nothing came of a thread.
pub(super) enum NoAnswer {
    /// The system has started none.
    NotStarted(io::Error),
    /// It has panicked.
    Ended,
}

const ENDED: &str = "the thread for the server has ended early";

/// Does all of these, on a thread for each.
pub(super) fn all_at_once<T: Send>(
    acts: impl Iterator<Item = impl FnOnce() -> T + Send>,
) -> Vec<Result<T, NoAnswer>> {
    thread::scope(|scope| {
        let begun: Vec<_> =
            acts.map(|act| thread::Builder::new().spawn_scoped(scope, act)).collect();
        let ended = begun
            .into_iter()
            .map(|begun| begun.map_err(NoAnswer::NotStarted)?.join().map_err(|_| NoAnswer::Ended));
        ended.collect()
    })
}

impl From<NoAnswer> for StoreError {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::NotStarted(cause) => {
                let message = format!("a thread for each server cannot be started: {cause}");
                Self::caused_by(StoreErrorKind::Failed, message, cause)
            }
            NoAnswer::Ended => Self::new(StoreErrorKind::Failed, ENDED),
        }
    }
}

impl From<NoAnswer> for OpenError {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::NotStarted(cause) => Self::io("start a thread for each server", cause),
            NoAnswer::Ended => Self::new(OpenErrorKind::Io, ENDED),
        }
    }
}
