//! Telling a client that what it has asked is still worked on: it takes a server that says nothing for gone.

use std::sync::Mutex;
use std::time::Duration;

use oblivio_wire::Answer;
use oblivio_wire::link::Moment;

use super::talk::Talk;

/// Said again and again while something is done, by any thread.
pub(super) type GoesOn<'a> = dyn Fn() + Sync + 'a;

/// While one thing is done for a client. Several threads may do it.
pub(super) struct Working<'t, 's> {
    told: Mutex<Told<'t, 's>>,
    /// How often it is told.
    every: Duration,
}

struct Told<'t, 's> {
    last: Moment,
    talk: &'t mut Talk<'s>,
}

impl<'t, 's> Working<'t, 's> {
    /// Begins now.
    pub(super) fn new(talk: &'t mut Talk<'s>, every: Duration) -> Self {
        Self { told: Mutex::new(Told { last: Moment::now(), talk }), every }
    }

    /// It goes on. Whoever does it says so again and again, however often.
    pub(super) fn goes_on(&self) {
        // Another thread says it, or has panicked while it did.
        let Ok(mut told) = self.told.try_lock() else { return };
        if told.last.after(self.every).left().is_none() {
            // A link that is lost is found out when the answer is sent.
            let _ = told.talk.send(&Answer::Working.encode());
            told.last = Moment::now();
        }
    }
}
