//! Sends `Working` to a client while its request runs, because clients consider a silent server
//! lost.

use std::sync::Mutex;
use std::time::Duration;

use oblivio_wire::Answer;
use oblivio_wire::link::MonotonicTime;

use super::talk::Talk;

/// Called repeatedly by any thread while a request runs.
pub(super) type GoesOn<'a> = dyn Fn() + Sync + 'a;

/// Sends `Working` during one request, on which several threads may work.
pub(super) struct Working<'t, 's> {
    told: Mutex<Told<'t, 's>>,
    /// The interval.
    every: Duration,
}

struct Told<'t, 's> {
    last: MonotonicTime,
    talk: &'t mut Talk<'s>,
}

impl<'t, 's> Working<'t, 's> {
    /// Starts now.
    pub(super) fn new(talk: &'t mut Talk<'s>, every: Duration) -> Self {
        Self { told: Mutex::new(Told { last: MonotonicTime::now(), talk }), every }
    }

    /// Sends `Working` if the interval has passed. Called as often as convenient.
    pub(super) fn goes_on(&self) {
        // Another thread is sending, or has panicked.
        let Ok(mut told) = self.told.try_lock() else { return };
        if told.last.after(self.every).left().is_none() {
            // A lost link is noticed when the answer is sent.
            let _ = told.talk.send(&Answer::Working.encode());
            told.last = MonotonicTime::now();
        }
    }
}
