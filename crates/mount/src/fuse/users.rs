//! Who uses the file: how often it is open, and whether it can be opened at all.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The users of a served file.
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

    /// It is unmounted everywhere: no user is left, and none will come.
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

    /// Waits, and says whether the wait was long enough.
    fn wait_while(&self, patience: Duration, goes_on: impl Fn(&State) -> bool) -> bool {
        let waited =
            self.changed.wait_timeout_while(self.state(), patience, |state| goes_on(state));
        !waited.expect("no thread panics while it holds this").1.timed_out()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds this")
    }
}
