//! Ends a process with an open volume cleanly after the first signal. Further signals do not
//! interrupt this end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::iterator::Signals;

use crate::error::CliError;
use crate::output;
use crate::signals::{handle_ending_signals, signal_error};

/// The step that the end of a process with an open volume waits for, as [`GracefulStop::listen`]
/// takes it.
pub(super) const CLOSING: &str = "the volume is about to be closed";

/// Shown at a terminal while the volume is being closed.
pub(super) const CLOSING_NOW: &str = "closing the volume: what was written is being made durable";

/// The clean end of a process that may hold unwritten data. The first signal requests it. Further
/// signals only make the process report what the end still waits for, so impatience loses no data.
#[derive(Clone)]
pub(super) struct GracefulStop(Arc<Mutex<State>>);

struct State {
    is_requested: bool,
    waits_for: String,
}

impl GracefulStop {
    /// Starts to handle signals. Call this once the volume is open: before that nothing can be
    /// lost, and Ctrl-C at the passphrase prompt should end the process. `waits_for` names the step
    /// that the end waits for, until [`Self::set_waiting_for`] changes it.
    pub(super) fn listen(waits_for: &str) -> Result<Self, CliError> {
        let mut signals = Signals::new(handle_ending_signals()).map_err(signal_error)?;
        let waits_for = waits_for.to_owned();
        let end = Self(Arc::new(Mutex::new(State { is_requested: false, waits_for })));
        let handler = end.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|_| handler.request()))
            .map_err(signal_error)?;
        Ok(end)
    }

    pub(super) fn is_requested(&self) -> bool {
        self.state().is_requested
    }

    /// Records that the process is ending, even if no signal requested it, and that it ends only
    /// after the step `what`.
    pub(super) fn set_waiting_for(&self, what: impl Into<String>) {
        *self.state() = State { is_requested: true, waits_for: what.into() };
    }

    /// Begins a clean end that no signal has requested.
    pub(super) fn begin(&self) {
        self.state().is_requested = true;
    }

    fn request(&self) {
        let mut state = self.state();
        if state.is_requested {
            output::print_remark(&format!(
                "{}; after that the process ends by itself, and nothing is lost",
                state.waits_for
            ));
        }
        state.is_requested = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
