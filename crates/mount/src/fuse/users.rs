//! Counts the open handles of the file, and records whether the file system has ended.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The open handles of a served file.
#[derive(Default)]
pub(crate) struct Users {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    opens: u64,
    ended: bool,
}

impl Users {
    pub(super) fn opened(&self) {
        self.state().opens += 1;
    }

    pub(super) fn closed(&self) {
        let mut state = self.state();
        state.opens = state.opens.saturating_sub(1);
        self.changed.notify_all();
    }

    /// Notes that the file system is unmounted everywhere: no process has the file open or can open
    /// it.
    pub(super) fn ended(&self) {
        let mut state = self.state();
        *state = State { opens: 0, ended: true };
        self.changed.notify_all();
    }

    pub(super) fn wait_until_none(&self, patience: Duration) -> bool {
        self.wait_while(patience, |state| state.opens > 0)
    }

    pub(super) fn wait_until_ended(&self, patience: Duration) -> bool {
        self.wait_while(patience, |state| !state.ended)
    }

    /// Waits, for at most `patience`, while `is_pending` holds. Returns whether it stopped holding
    /// in time.
    fn wait_while(&self, patience: Duration, is_pending: impl Fn(&State) -> bool) -> bool {
        let waited =
            self.changed.wait_timeout_while(self.state(), patience, |state| is_pending(state));
        !waited.expect("no thread panics while it holds the lock").1.timed_out()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }
}
