//! A thread that starts write-back while the store continues to work.
//!
//! Written bytes stay in the page cache until a sync. If only the flush synced, the disk would be
//! idle before the flush, and the store during it.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// Syncs one file, and keeps its errors. The system reports each error only to the next sync, so
/// all syncs of the file must go through this thread once it exists.
pub(crate) struct Syncer {
    /// The sender of requests to the thread; `None` once the thread must end.
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

enum Request {
    /// Starts write-back. The thread does not answer.
    Begin,
    /// Answers once all writes so far are durable, or with an error if this sync or an earlier one
    /// failed.
    Finish(Sender<io::Result<()>>),
}

impl Syncer {
    /// Starts the thread that syncs `file`.
    pub(crate) fn start(file: File) -> io::Result<Self> {
        // One running sync and one waiting one: more would sync nothing more.
        let (requests, queue) = sync_channel(1);
        let thread =
            thread::Builder::new().name("sync".into()).spawn(move || serve(&file, &queue))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Starts write-back of all writes so far.
    pub(crate) fn begin(&self) {
        if let Some(requests) = &self.requests {
            // If the queue is full, the waiting request covers this one.
            let _ = requests.try_send(Request::Begin);
        }
    }

    /// Returns once all writes so far are durable. Fails if this sync or an earlier one failed.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let thread_ended = || io::Error::other("the sync thread has ended");
        let (done, outcome) = channel();
        let requests = self.requests.as_ref().ok_or_else(thread_ended)?;
        requests.send(Request::Finish(done)).map_err(|_| thread_ended())?;
        outcome.recv().map_err(|_| thread_ended())?
    }
}

fn serve(file: &File, queue: &Receiver<Request>) {
    let mut so_far = Ok(());
    while let Ok(request) = queue.recv() {
        so_far = so_far.and_then(|()| file.sync_data());
        if let Request::Finish(done) = request {
            let outcome = std::mem::replace(&mut so_far, Ok(()));
            if outcome.is_err() {
                so_far = Err(io::Error::other("an earlier sync failed"));
            }
            // The caller waits for the answer.
            let _ = done.send(outcome);
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread; it is not needed any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn started_syncs_are_finished() {
        let mut file = tempfile::tempfile().unwrap();
        let syncer = Syncer::start(file.try_clone().unwrap()).unwrap();
        for _ in 0..100 {
            file.write_all(&[7; 10_000]).unwrap();
            syncer.begin();
        }
        syncer.finish().unwrap();
    }

    #[test]
    fn an_error_of_a_background_sync_is_reported_and_stays() {
        // A pipe cannot be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let syncer = Syncer::start(File::from(std::os::fd::OwnedFd::from(writer))).unwrap();
        syncer.begin();
        assert!(syncer.finish().is_err());
        assert!(syncer.finish().is_err());
    }
}
