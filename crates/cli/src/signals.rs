//! Signals that ask this process to end.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};

use crate::error::CliError;

/// The signals that ask this process to end. The soft limit of processor time is among them: the
/// kernel repeats its signal each second until the hard limit kills the process. A hangup is left
/// out if it was ignored when the process started, as with `nohup`.
pub(crate) fn ending_signals() -> impl Iterator<Item = i32> {
    let ignores_hangups = fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.unwrap_or(0) & 1 << (SIGHUP - 1) != 0
    });
    let hangup = (!ignores_hangups).then_some(SIGHUP);
    [SIGTERM, SIGINT, SIGQUIT, SIGXCPU].into_iter().chain(hangup)
}

/// Returns the signals that ask this process to end, and notes that they are handled. The caller
/// must handle all of them from now on.
pub(crate) fn handle_ending_signals() -> impl Iterator<Item = i32> {
    ARE_HANDLED.store(true, Ordering::Relaxed);
    ending_signals()
}

/// Whether [`handle_ending_signals`] was called.
static ARE_HANDLED: AtomicBool = AtomicBool::new(false);

/// Whether another part of the program handles the signals and decides how to end.
pub(crate) fn are_handled() -> bool {
    ARE_HANDLED.load(Ordering::Relaxed)
}

pub(crate) fn signal_error(error: std::io::Error) -> CliError {
    CliError::Engine(format!("cannot handle signals: {error}"))
}

/// Makes a write past the file size limit (`ulimit -f`) fail with EFBIG instead of a signal that
/// ends this process. Child processes do not inherit the handler, so they receive the signal as
/// usual.
pub fn outlive_file_size_limit() -> Result<(), CliError> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop).map_err(signal_error)
}

/// A flag that is set when a signal asks this process to end. A second signal ends the process at
/// once: use this for work that has nothing to lose, and `GracefulStop` in `volume` for other work.
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Starts to handle the signals.
    pub fn listen() -> Result<Self, CliError> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in handle_ending_signals() {
            // In this order, only a second signal finds the flag set.
            signal_hook::flag::register_conditional_shutdown(signal, 1, requested.clone())
                .and_then(|_| signal_hook::flag::register(signal, requested.clone()))
                .map_err(signal_error)?;
        }
        Ok(Self(requested))
    }

    /// Whether a signal has requested the end of this process.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
