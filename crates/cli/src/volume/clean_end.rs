//! Ending cleanly, however often that is asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::iterator::Signals;

use crate::error::CliError;
use crate::output;
use crate::signals::{no_signals, take_ending_signals};

/// What the end of a process waits for that has a volume open.
pub(super) const CLOSING: &str = "the volume is about to be closed";

/// What is said at a terminal while that is under way.
pub(super) const CLOSING_NOW: &str = "closing the volume: what was written is being made durable";

/// The end of a process that others write to. A signal asks for it; one more only makes the process say
/// what the end still waits for. What was written is not lost because somebody is impatient.
#[derive(Clone)]
pub(super) struct CleanEnd(Arc<Mutex<State>>);

struct State {
    is_asked: bool,
    waits_for: String,
}

impl CleanEnd {
    /// Listens from now on. To be called once the volume is open: until then nothing can be lost, and
    /// Ctrl-C at the question for a passphrase should end the process. `waits_for` is what the end waits for
    /// until [`Self::now_waits_for`] says otherwise.
    pub(super) fn listen(waits_for: &str) -> Result<Self, CliError> {
        let mut signals = Signals::new(take_ending_signals()).map_err(no_signals)?;
        let waits_for = waits_for.to_owned();
        let end = Self(Arc::new(Mutex::new(State { is_asked: false, waits_for })));
        let told = end.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|_| told.ask()))
            .map_err(no_signals)?;
        Ok(end)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.state().is_asked
    }

    /// The end is under way, whoever asked for it, and now waits for this.
    pub(super) fn now_waits_for(&self, what: impl Into<String>) {
        *self.state() = State { is_asked: true, waits_for: what.into() };
    }

    /// Begins a clean end that no signal has requested.
    pub(super) fn begin(&self) {
        self.state().is_asked = true;
    }

    fn ask(&self) {
        let mut state = self.state();
        if state.is_asked {
            output::remark(&format!(
                "{}; the process ends by itself after that, and nothing is lost",
                state.waits_for
            ));
        }
        state.is_asked = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
