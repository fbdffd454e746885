//! The thread of one member of a stripe.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use oblivio_core::store::{BucketStore, Piece, SealedTrip};
use oblivio_core::{StoreError, StoreErrorKind};

use crate::opener::BoxedStore;

/// A member's share of a trip. The share is moved to the thread and back, so that its memory is
/// reused.
#[derive(Default)]
pub(crate) struct TripShare {
    pub(crate) pieces: Vec<Piece>,
    /// For each piece of the share, its index in the whole trip.
    pub(crate) which: Vec<usize>,
    /// The bytes of a read: the contents of the pieces, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// The length of each piece in `bytes`.
    pub(crate) lengths: Vec<usize>,
}

impl TripShare {
    /// Removes all pieces from the share.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.which.clear();
    }
}

/// A member of a stripe and its thread.
pub(crate) struct Worker {
    /// The sender of jobs to the thread; `None` once the thread must end.
    jobs: Option<Sender<Job>>,
    answers: Receiver<(TripShare, Result<(), StoreError>)>,
    thread: Option<JoinHandle<()>>,
    /// The member's share of the next or the latest trip.
    pub(crate) share: TripShare,
    /// Whether an operation was sent to the thread and its outcome was not received yet.
    is_busy: bool,
}

/// A job of the thread. Jobs are done in order.
enum Job {
    /// Prefetches pieces. This job has no outcome.
    Prefetch(Vec<Piece>),
    Do(Act, TripShare),
}

/// The operation of a member on its share of a trip.
pub(crate) enum Act {
    Read,
    Write(Arc<SealedTrip>),
    Flush,
}

impl Worker {
    /// Starts the thread of the member `store`.
    pub(crate) fn start(store: BoxedStore) -> io::Result<Self> {
        let (jobs, to_do) = channel();
        let (done, answers) = channel();
        let serve = move || serve(store, &to_do, &done);
        let thread = thread::Builder::new().name("member".into()).spawn(serve)?;
        let share = TripShare::default();
        Ok(Self { jobs: Some(jobs), answers, thread: Some(thread), share, is_busy: false })
    }

    /// Passes an announcement to the member, and does not wait.
    pub(crate) fn prefetch(&self, pieces: Vec<Piece>) {
        // The next job reports a thread that has ended.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(Job::Prefetch(pieces)));
    }

    /// Starts an operation on the share of a trip.
    pub(crate) fn begin(&mut self, act: Act) {
        let job = Job::Do(act, mem::take(&mut self.share));
        // If the thread has ended, `finish` fails.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
        self.is_busy = true;
    }

    /// Waits for the operation, if one was started, and takes the share back.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        if !mem::take(&mut self.is_busy) {
            return Ok(());
        }
        let (share, outcome) = self
            .answers
            .recv()
            .map_err(|_| StoreError::new(StoreErrorKind::Failed, "its thread has ended"))?;
        self.share = share;
        outcome
    }
}

fn serve(
    mut store: BoxedStore,
    jobs: &Receiver<Job>,
    done: &Sender<(TripShare, Result<(), StoreError>)>,
) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Prefetch(pieces) => store.prefetch(&pieces),
            Job::Do(act, mut share) => {
                let outcome = act.carry_out(&mut store, &mut share);
                // The caller waits for the outcome.
                let _ = done.send((share, outcome));
            }
        }
    }
}

impl Act {
    /// Performs the operation on the share. Takes the operation by value, so that the sealed trip
    /// is dropped before the thread sends the outcome.
    fn carry_out(self, store: &mut BoxedStore, share: &mut TripShare) -> Result<(), StoreError> {
        match self {
            Self::Read => read(store, share),
            Self::Write(sealed) => {
                store.write(&share.pieces, &mut |blanks| sealed.put(&share.which, blanks))
            }
            Self::Flush => store.flush(),
        }
    }
}

fn read(store: &mut BoxedStore, share: &mut TripShare) -> Result<(), StoreError> {
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
            // Ignore a panic of the thread; it is not needed any more.
            let _ = thread.join();
        }
    }
}
