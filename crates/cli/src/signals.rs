//! Being asked to end.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};

use crate::error::CliError;

/// The signals that ask this process to end. The soft limit of processor time is one of them: the
/// kernel repeats it each second until the hard limit kills the process. A hangup does not if it
/// was ignored when the process started, as `nohup` arranges.
pub(crate) fn ending_signals() -> impl Iterator<Item = i32> {
    let ignores_hangups = fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.unwrap_or(0) & 1 << (SIGHUP - 1) != 0
    });
    let hangup = (!ignores_hangups).then_some(SIGHUP);
    [SIGTERM, SIGINT, SIGQUIT, SIGXCPU].into_iter().chain(hangup)
}

/// Those that ask this process to end, for who listens from now on. They end it as usual no more.
pub(crate) fn take_ending_signals() -> impl Iterator<Item = i32> {
    ARE_TAKEN.store(true, Ordering::Relaxed);
    ending_signals()
}

/// Whether somebody listens for them.
static ARE_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether somebody listens, and decides what becomes of them.
pub(crate) fn are_taken() -> bool {
    ARE_TAKEN.load(Ordering::Relaxed)
}

pub(crate) fn no_signals(error: std::io::Error) -> CliError {
    CliError::Engine(format!("signals cannot be had: {error}"))
}

/// From now on a write past the limit on the length of files (`ulimit -f`) fails with EFBIG; its
/// signal would end this process. Programs that this one starts have the signal as usual, because a
/// handler is not inherited.
pub fn outlive_file_size_limit() -> Result<(), CliError> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop).map_err(no_signals)
}

/// Set once a signal has asked this process to end. The second one ends it at once: this is for work
/// that has nothing to lose. `CleanEnd` in `volume` is for what has.
pub struct EndAsked(Arc<AtomicBool>);

impl EndAsked {
    /// Listens from now on.
    pub fn listen() -> Result<Self, CliError> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in take_ending_signals() {
            // In this order: only a second signal finds the flag set.
            signal_hook::flag::register_conditional_shutdown(signal, 1, asked.clone())
                .and_then(|_| signal_hook::flag::register(signal, asked.clone()))
                .map_err(no_signals)?;
        }
        Ok(Self(asked))
    }

    /// Whether a signal has asked this process to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
