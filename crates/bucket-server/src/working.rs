//! Sends `Working` to a client while its request runs, because clients consider a silent server
//! lost.

use std::sync::Mutex;
use std::time::Duration;

use oblivio_wire::Answer;
use oblivio_wire::link::MonotonicTime;

use super::server_connection::ServerConnection;

/// A function that any thread calls repeatedly while a request runs.
pub(super) type Progress<'a> = dyn Fn() + Sync + 'a;

/// Sends `Working` during one request, on which several threads may work.
pub(super) struct Working<'t, 's> {
    last_report: Mutex<LastReport<'t, 's>>,
    /// The interval of the messages.
    every: Duration,
}

struct LastReport<'t, 's> {
    last: MonotonicTime,
    connection: &'t mut ServerConnection<'s>,
}

impl<'t, 's> Working<'t, 's> {
    /// Starts the first interval now.
    pub(super) fn new(connection: &'t mut ServerConnection<'s>, every: Duration) -> Self {
        Self {
            last_report: Mutex::new(LastReport { last: MonotonicTime::now(), connection }),
            every,
        }
    }

    /// Sends `Working` if the interval has passed. May be called at any rate.
    pub(super) fn report_progress(&self) {
        // Another thread is sending, or has panicked.
        let Ok(mut last_report) = self.last_report.try_lock() else { return };
        if last_report.last.after(self.every).left().is_none() {
            // A lost link is noticed when the answer is sent.
            let _ = last_report.connection.send(&Answer::Working.encode());
            last_report.last = MonotonicTime::now();
        }
    }
}
