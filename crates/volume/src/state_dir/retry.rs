//! Retries system calls that fail temporarily.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

/// Maximum number of calls.
const CALLS_MAX: usize = 100;

/// The pause before another call while no file descriptor is free. With [`CALLS_MAX`] calls, five
/// seconds in total.
const PAUSE: Duration = Duration::from_millis(50);

/// Repeats a call that a signal interrupted, or that failed because the process or the system had
/// no free file descriptor.
///
/// # Errors
/// Any other error of the call, or the error of the last call.
pub(super) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..CALLS_MAX {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) if lacks_descriptor(&error) => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    call()
}

fn lacks_descriptor(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing_first(error: Errno, times: usize) -> (usize, io::Result<usize>) {
        let mut calls = 0;
        let outcome = retry(|| {
            calls += 1;
            if calls <= times { Err(error.into()) } else { Ok(calls) }
        });
        (calls, outcome)
    }

    #[test]
    fn what_fails_for_a_moment_is_done_again_and_anything_else_is_an_error() {
        for (error, times) in [(Errno::INTR, 50), (Errno::MFILE, 3), (Errno::NFILE, 1)] {
            assert_eq!(failing_first(error, times).1.unwrap(), times + 1);
        }
        let (calls, outcome) = failing_first(Errno::INTR, usize::MAX);
        assert_eq!((calls, outcome.unwrap_err().kind()), (CALLS_MAX, ErrorKind::Interrupted));
        for error in [Errno::NOSPC, Errno::IO, Errno::NOENT] {
            let (calls, outcome) = failing_first(error, 1);
            assert_eq!((calls, Errno::from_io_error(&outcome.unwrap_err())), (1, Some(error)));
        }
    }
}
