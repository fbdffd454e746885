//! A thread that does what one member of a stripe is asked for, while others do the same.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use oblivio_core::store::{BucketStore, Piece, SealedTrip};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::opener::BoxedStore;

/// What a trip asks of one member. It goes to the thread and comes back, and keeps its memory.
#[derive(Default)]
pub(crate) struct Share {
    pub(crate) pieces: Vec<Piece>,
    /// Which piece of the trip each of them is.
    pub(crate) which: Vec<usize>,
    /// What a read brought, one piece after the other.
    pub(crate) bytes: Vec<u8>,
    /// How much of it is each piece.
    pub(crate) lengths: Vec<usize>,
}

impl Share {
    /// Has no pieces.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.which.clear();
    }
}

/// One member, and the thread that asks it.
pub(crate) struct Worker {
    /// `None` once the thread is told to end.
    jobs: Option<Sender<Job>>,
    answers: Receiver<(Share, Result<(), StoreError>)>,
    thread: Option<JoinHandle<()>>,
    /// Of the next trip, or the latest.
    pub(crate) share: Share,
    /// It has a job of which it has not told the outcome.
    is_busy: bool,
}

/// They are done in the order in which they come.
enum Job {
    /// Nobody waits for it.
    Prefetch(Vec<Piece>),
    Do(Act, Share),
}

/// What is done with a share.
pub(crate) enum Act {
    Read,
    Write(Arc<SealedTrip>),
    Flush,
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(store: BoxedStore) -> io::Result<Self> {
        let (jobs, to_do) = channel();
        let (done, answers) = channel();
        let serve = move || serve(store, &to_do, &done);
        let thread = thread::Builder::new().name("member".into()).spawn(serve)?;
        let share = Share::default();
        Ok(Self { jobs: Some(jobs), answers, thread: Some(thread), share, is_busy: false })
    }

    /// Has it prefetch.
    pub(crate) fn prefetch(&self, pieces: Vec<Piece>) {
        // A thread that is gone shows with the next job.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(Job::Prefetch(pieces)));
    }

    /// Has it begin with its share of a trip.
    pub(crate) fn begin(&mut self, act: Act) {
        let job = Job::Do(act, mem::take(&mut self.share));
        // A thread that is gone gives no answer either.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
        self.is_busy = true;
    }

    /// Waits for what it began, if it began anything, and has the share back.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        if !mem::take(&mut self.is_busy) {
            return Ok(());
        }
        let (share, outcome) = self.answers.recv().map_err(|_| {
            StoreError::new(StoreErrorKind::Failed, "the thread that used it has ended")
        })?;
        self.share = share;
        outcome
    }
}

fn serve(
    mut store: BoxedStore,
    jobs: &Receiver<Job>,
    done: &Sender<(Share, Result<(), StoreError>)>,
) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Prefetch(pieces) => store.prefetch(&pieces),
            Job::Do(act, mut share) => {
                let outcome = act.carry_out(&mut store, &mut share);
                // Whoever gave the job waits for it.
                let _ = done.send((share, outcome));
            }
        }
    }
}

impl Act {
    /// The sealed trip is given back before the outcome is told.
    fn carry_out(self, store: &mut BoxedStore, share: &mut Share) -> Result<(), StoreError> {
        match self {
            Self::Read => read(store, share),
            Self::Write(sealed) => {
                store.write(&share.pieces, &mut |blanks| sealed.put(&share.which, blanks))
            }
            Self::Flush => store.flush(),
        }
    }
}

fn read(store: &mut BoxedStore, share: &mut Share) -> Result<(), StoreError> {
    share.bytes.clear();
    share.lengths.clear();
    let frames = store.read(&share.pieces)?;
    for i in 0..frames.len() {
        let frame = frames.get(i);
        share.bytes.extend_from_slice(frame);
        share.lengths.push(frame.len());
    }
    Ok(())
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked uses the store no more, and nobody asks it.
            let _ = thread.join();
        }
    }
}
